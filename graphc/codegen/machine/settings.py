"""Settings of the schedule: named changes of costs that tuning tries on a whole program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from graphc.base.records import dataclass
from graphc.codegen.machine.costs import Costs

Change = Mapping[str, Any]
"""Values by names of costs, such as ``{"memory.tile_step": 0.5}``."""


@dataclass(frozen=True)
class Setting:
    """A change of costs that may make a program faster."""

    name: str
    changes: Change
    lowers: bool = False
    """Whether the lowered program may become another one, which strict order excludes: it fixes the order of sums."""


SETTINGS = (
    Setting("one chain at a time", {"lanes.long_copies": 1}),
    Setting("no tiles across kernels", {"memory.tile_step": 0.5}),
    Setting("only close tiles across kernels", {"memory.tile_step": 2.0}),
    Setting("panels fill the L1 cache", {"contraction.panel_l1": Fraction(1)}),
    Setting("panels take a third of the L1 cache", {"contraction.panel_l1": Fraction(1, 3)}),
    Setting("groups of rows from one L2 cache", {"contraction.far_row_caches": 1}),
    Setting("groups of rows from two L2 caches", {"contraction.far_row_caches": 2}),
    Setting("stores through the caches", {"memory.non_temporal_bytes": 0}),
    Setting("stores past the caches from 4 MiB", {"memory.non_temporal_bytes": 4 << 20}),
    Setting("no Winograd", {"rewrites.winograd_advantage": 1e9}, lowers=True),
    Setting("Winograd without a gain by estimate", {"rewrites.winograd_advantage": 0.8}, lowers=True),
    Setting("no images innermost", {"fusion.batch_last": 1 << 30}, lowers=True),
)
"""Settings in the order of their trial: each switches a transformation off, or moves one of its thresholds to either
side of the value in use."""


def with_changes(costs: Costs, changes: Change) -> Costs:
    """Return costs with these values in place of others. Raise KeyError for a cost that does not exist."""
    for name, value in changes.items():
        group, _, field = name.partition(".")
        _present(costs, name)
        costs = replace(costs, **{group: replace(getattr(costs, group), **{field: value})})
    return costs


def print_changes(changes: Change) -> str:
    """Format changes as ``lanes.long_copies=1 memory.tile_step=0.5``."""
    return " ".join(f"{name}={value}" for name, value in sorted(changes.items()))


def parse_changes(text: str, costs: Costs) -> dict[str, Any]:
    """Parse the text of ``print_changes``. Raise KeyError for an unknown cost, ValueError for a wrong value."""
    changes: dict[str, Any] = {}
    for item in text.split():
        name, _, value = item.partition("=")
        changes[name] = type(_present(costs, name))(value)
    return changes


def _present(costs: Costs, name: str) -> Any:
    """Return the value of a cost: a number. Raise KeyError where there is none."""
    group, _, field = name.partition(".")
    value = getattr(getattr(costs, group, None), field, None)
    if not isinstance(value, int | float | Fraction) or isinstance(value, bool):
        raise KeyError(f"there is no cost {name!r}")
    return value
