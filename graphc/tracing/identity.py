"""Identity and memory sharing among the arguments of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError

_WORK = 10_000
"""Limit of steps for the overlap test of interleaved memory; beyond it, memory counts as shared."""


def repeats(leaves: Sequence[Any]) -> tuple[int, ...]:
    """Return for each tensor the index of the first argument with the same identity; empty if all are distinct."""
    if len(leaves) < 2 or len(set(map(id, leaves))) == len(leaves):
        return ()
    first: dict[int, int] = {}
    return tuple([first.setdefault(id(leaf), i) for i, leaf in enumerate(leaves)])


def check_apart(name: str, written: Sequence[int], leaves: Sequence[Any]) -> None:
    """Raise ArgumentError if a tensor the function writes to shares memory with another argument: a compiled
    function writes to a copy, which the other argument would not see. ``written`` holds the indices of such tensors."""
    for i in written:
        for j, other in enumerate(leaves):
            # NOTE: numpy's stubs only accept the two named limits.
            work: Any = _WORK
            if other is not leaves[i] and np.may_share_memory(leaves[i]._data, other._data, work):
                raise ArgumentError(
                    f"{name} writes to tensor {i}, which shares memory with tensor {j}; compiled code would not change "
                    f"the other one",
                    remedy="pass tensor.clone() for one of them, or return a new tensor instead of writing",
                )
