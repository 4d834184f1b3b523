"""What a peer hands to the worker for one workload: a call to time, and numbers to compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.workloads import Array

CHECKED_STEPS = 3


class NotProvidedError(Exception):
    """The peer has no version of this workload."""


@dataclass(frozen=True)
class Prepared:
    """A workload that is compiled and has run once."""

    call: Callable[[], object]
    """One inference or one training step, from Python, inputs ready."""
    numbers: Array
    """The output of inference, or the losses of the first steps."""
    first_call_s: float
    """Seconds from the model to its first result: tracing, compiling, loading, running."""
    unlimited: str = ""
    """What runs with more instructions than the target has, although the peer is held to it."""
