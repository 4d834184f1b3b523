"""Arguments given as one number or one per spatial dimension, and inputs with or without a batch dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.sizes.size import is_size
from graphc.ops.movement import shape
from graphc.tensors.tensor import Tensor

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]
IntOrInts = int | Sequence[int]


def per_dimension(value: Any, rank: int, name: str) -> Ints:
    """Return ``value`` for each of ``rank`` spatial dimensions; raise AttributeValueError for a wrong number of
    entries."""
    if isinstance(value, int):
        return (value,) * rank
    entries = tuple(value)
    if len(entries) == 1:
        return entries * rank
    if len(entries) != rank:
        raise AttributeValueError(f"{name} must be one number or {rank}, got {len(entries)}: {entries}")
    return entries


def repeated(rank: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that turns a sequence into a tuple, and any other value into a tuple of ``rank`` copies."""

    def function(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * rank

    return function


single, pair, triple, quadruple = map(repeated, (1, 2, 3, 4))


def symmetric(padding: Ints) -> Pairs:
    """Return the same padding before and after, per dimension."""
    return tuple((p, p) for p in padding)


def padded(x: Tensor, padding: Pairs, value: Any = 0) -> Tensor:
    """Pad the last dimensions. Negative numbers crop."""
    if not any(is_size(side) or side for pair in padding for side in pair):
        return x
    lead = len(x.shape) - len(padding)
    low, high = zip(*((0, 0),) * lead, *padding, strict=True)
    filling = float(value) if x.dtype.is_floating_point else value
    return shape.pad(x, low=low, high=high, interior=(0,) * len(low), value=filling)


def batched(x: Tensor, rank: int, name: str) -> tuple[Tensor, bool]:
    """Return ``x`` as [batch, channels, *spatial], and whether the batch dimension was added.

    Raises ShapeError for an input with a wrong number of dimensions.
    """
    if len(x.shape) == rank + 2:
        return x, False
    if len(x.shape) == rank + 1:
        return x.reshape(1, *x.shape), True
    raise ShapeError(
        f"{name}: the input has {len(x.shape)} dimensions {list(x.shape)}, expected {rank + 2} "
        f"(or {rank + 1} without a batch)",
        remedy="add dimensions: x.unsqueeze(...), or x.reshape(batch, channels, ...)",
    )


def unbatched(result: Tensor, added: bool) -> Tensor:
    """Remove the batch dimension that ``batched`` added."""
    return result.reshape(*result.shape[1:]) if added else result
