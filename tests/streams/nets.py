"""All nets of the tests of streams by name."""

from __future__ import annotations

from types import ModuleType

from tests.streams import argument_nets, attention_nets, loop_nets, sample_nets, window_nets
from tests.streams.cases import NETS


def names_of(module: ModuleType) -> list[str]:
    """Return the names of the nets that a file defines."""
    return [name for name, build in NETS.items() if vars(module).get(name) is build]


WINDOWS, SAMPLES, LOOPS, ATTENTION, ARGUMENTS = map(
    names_of, (window_nets, sample_nets, loop_nets, attention_nets, argument_nets)
)
