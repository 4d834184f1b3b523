"""Which arguments of a call are one and the same tensor, and which share memory with one that is written to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError

_WORK = 10_000
"""Steps after which two interleaved pieces of memory count as shared."""


def repeats(leaves: Sequence[Any]) -> tuple[int, ...]:
    """For each tensor the place of the first one that is the same object; nothing where all are different."""
    if len(leaves) < 2 or len(set(map(id, leaves))) == len(leaves):
        return ()
    first: dict[int, int] = {}
    return tuple([first.setdefault(id(leaf), i) for i, leaf in enumerate(leaves)])


def check_apart(name: str, written: Sequence[int], leaves: Sequence[Any]) -> None:
    """Raises ArgumentError where a tensor shares memory with another one, at one of the places ``written``, to which
    the function writes: a compiled function writes to a copy of it."""
    for i in written:
        for j, other in enumerate(leaves):
            # NOTE: numpy's stubs know no limits of work but the two that have names.
            work: Any = _WORK
            if other is not leaves[i] and np.may_share_memory(leaves[i]._data, other._data, work):
                raise ArgumentError(
                    f"{name} writes to its tensor {i}, whose memory tensor {j} shares; compiled, the other one would "
                    "not see it",
                    remedy="tensor.clone() of one of them, or a function that makes a new tensor instead of writing",
                )
