"""A Python function that compiled code calls: what it takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Spec = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and element type of an array."""


class HostFunction(NamedTuple):
    """A Python function that compiled code calls."""

    name: str
    """What messages call it."""
    function: Callable[..., Any]
    """Takes the state of the run (a dictionary of its own for each call of compiled code, which the backward pass of
    that call gets too) and read-only arrays, and returns a sequence of arrays of the types of ``results``."""
    operands: tuple[Spec, ...]
    results: tuple[Spec, ...]
    takes_only: bool = False
    """Whether it takes numbers as if the call had ended: what it changes is for the next one."""
    lends: bool = False
    """Whether it gets the memory of operands and results, in this order behind the state, and fills the latter itself,
    at once or until a later call that has both among its operands. It returns nothing, and is called once in a run."""
