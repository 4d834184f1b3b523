"""Shared batching rules: operands of a batched application, and helpers that normalize them.

The first dimension of a batched operand, and of every result, is the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.records import NamedTuple
from graphc.ir.op import REGISTRY, Attrs, OpDef
from graphc.ops import dispatch


class BatchedOperand(NamedTuple):
    """An operand of a batched application."""

    value: Any
    batched: bool
    """Whether its first dimension is the batch; otherwise all entries share it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one entry."""
        return tuple(self.value.shape[1:] if self.batched else self.value.shape)


BatchRule = Callable[[OpDef, int, Sequence[BatchedOperand], Attrs], Any]
"""``rule(op, size of the batch, operands, attributes)`` returns the batched result, or a tuple of them, or None to
apply the op to one entry after the other."""


def spread(entry: BatchedOperand, size: int) -> Any:
    """Return the operand with a batch dimension, repeated if it had none."""
    if entry.batched:
        return entry.value
    return dispatch.apply(REGISTRY["broadcast_to"], (entry.value,), {"shape": (size, *entry.value.shape)})


def leading(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    """Apply a batching rule for ops that accept any number of leading dimensions."""
    return dispatch.apply(op, [spread(e, size) for e in operands], attrs)


def shifted(**moved: Callable[[Any], Any]) -> BatchRule:
    """Return a batching rule for ops that change only in their attributes: ``moved[attribute]`` maps the old value to
    the new one."""

    def rule(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
        new = {name: moved[name](value) if name in moved else value for name, value in attrs.items()}
        return leading(op, size, operands, new)

    return rule


def all_one_more(axes: Sequence[int]) -> tuple[int, ...]:
    """Shift axes by one for the batch dimension."""
    return tuple(a + 1 for a in axes)


along_axes = shifted(axes=all_one_more)
"""Batching rule of ops with an attribute ``axes``."""
along_axis = shifted(axis=lambda axis: axis + 1)
"""Batching rule of ops with an attribute ``axis``."""


def move(value: Any, source: int, count: int, target: int) -> Any:
    """Move ``count`` dimensions that start at ``source`` to start at ``target``."""
    rank = len(value.shape)
    moved = list(range(source, source + count))
    rest = [d for d in range(rank) if d not in moved]
    order = (*rest[:target], *moved, *rest[target:])
    same = order == tuple(range(rank))
    return value if same else dispatch.apply(REGISTRY["transpose"], (value,), {"permutation": order})
