"""Batching rules that op families share: operands of a batched application, and how they are brought into form.

A batched operand has the batch as its first dimension; so has every result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphc.ir.op import REGISTRY, Attrs, OpDef
from graphc.ops import dispatch


class Entry(NamedTuple):
    """An operand of a batched application."""

    value: Any
    batched: bool
    """Whether its first dimension is the batch; else it is the same for every entry."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one entry."""
        return tuple(self.value.shape[1:] if self.batched else self.value.shape)


BatchRule = Callable[[OpDef, int, Sequence[Entry], Attrs], Any]
"""``rule(op, size of the batch, operands, attributes)`` gives the batched result, or a tuple of them; None where the op
is to be applied to one entry after the other."""


def spread(entry: Entry, size: int) -> Any:
    """The operand with a batch dimension: repeated where it had none."""
    if entry.batched:
        return entry.value
    return dispatch.apply(REGISTRY["broadcast_to"], (entry.value,), {"shape": (size, *entry.value.shape)})


def leading(op: OpDef, size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    """Of ops that take any number of dimensions in front."""
    return dispatch.apply(op, [spread(e, size) for e in operands], attrs)


def shifted(**moved: Callable[[Any], Any]) -> BatchRule:
    """Of ops of operands that become batched by new attributes: ``moved[attribute]`` gives the new from the old one."""

    def rule(op: OpDef, size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
        new = {name: moved[name](value) if name in moved else value for name, value in attrs.items()}
        return leading(op, size, operands, new)

    return rule


def all_one_more(axes: Sequence[int]) -> tuple[int, ...]:
    """Dimensions behind that of the batch."""
    return tuple(a + 1 for a in axes)


along_axes = shifted(axes=all_one_more)
"""Of ops along the dimensions that their attribute ``axes`` names."""
along_axis = shifted(axis=lambda axis: axis + 1)
"""Of ops along the dimension that their attribute ``axis`` names."""


def move(value: Any, source: int, count: int, target: int) -> Any:
    """``count`` dimensions from ``source`` on moved so that they begin at ``target``."""
    rank = len(value.shape)
    moved = list(range(source, source + count))
    rest = [d for d in range(rank) if d not in moved]
    order = (*rest[:target], *moved, *rest[target:])
    same = order == tuple(range(rank))
    return value if same else dispatch.apply(REGISTRY["transpose"], (value,), {"permutation": order})
