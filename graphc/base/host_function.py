"""Description of a Python function that compiled code calls: its operands, results and calling convention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.records import NamedTuple

Spec = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and element type of an array."""


class HostFunction(NamedTuple):
    """Python function that compiled code calls."""

    name: str
    """Name in messages."""
    function: Callable[..., Any]
    """Called with the state of the run and read-only arrays; returns a sequence of arrays of the types in ``results``.
    The state is a dictionary per call of compiled code, shared with the backward pass of that call."""
    operands: tuple[Spec, ...]
    results: tuple[Spec, ...]
    takes_only: bool = False
    """Whether the function only receives values, as if the call had ended: its changes take effect in the next call."""
    lends: bool = False
    """Whether the function borrows the memory of operands and results, passed in this order after the state, and writes
    the results itself, either at once or before a later call that has both among its operands. It returns nothing, and
    is called once per run."""
