"""A peer's prepared workload for the child process: a call to time, and numbers to compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CHECKED_STEPS = 3


class NotProvidedError(Exception):
    """Raised by a peer without a version of this workload."""


@dataclass(frozen=True)
class Prepared:
    """A workload, compiled and run once."""

    call: Callable[[], object]
    """One inference or one training step, from Python, inputs ready."""
    numbers: np.ndarray
    """The output of inference, or the losses of the first steps."""
    first_call_s: float
    """Seconds from the model to its first result: tracing, compiling, loading, running."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else there is to say; ``unlimited`` names kernels that use more instructions than the target has, although
    the peer is limited to it."""
