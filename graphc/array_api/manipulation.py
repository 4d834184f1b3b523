"""Functions that rearrange elements: shapes, axes, joining, repeating."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.array_api import promotion
from graphc.array_api.array import broadcast_together, standard
from graphc.base.errors import ArgumentError, AttributeValueError, IndexRangeError, ShapeError
from graphc.base.sizes.dims import common_shape, dim_of, dims_of
from graphc.ops.movement import shape as shapes
from graphc.tensors.methods.shaping import concatenate, stacked
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor


@standard
def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Repeat arrays to their common shape."""
    need_tensor("broadcast_arrays", *arrays)
    return tuple(broadcast_together(*arrays))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape. Raises ShapeError where shapes do not broadcast."""
    return common_shape(*shapes) if shapes else ()


@standard
def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Repeat to a shape, without copying."""
    need_tensor("broadcast_to", x)
    return shapes.broadcast_to(x, shape=_sequence(shape))


@standard
def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Join arrays along an axis (flattened for None), in their common type."""
    need_tensor("concat", *arrays)
    if axis is None:
        arrays, axis = [a.reshape(-1) if a.numel() else a.reshape(0) for a in arrays], 0
    return concatenate(promotion.promoted("concat", *arrays), axis)


@standard
def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Insert axes of size 1 at these positions of the result. Raises IndexRangeError."""
    need_tensor("expand_dims", x)
    axes = _sequence(axis)
    rank = x.ndim + len(axes)
    if len({_position(a, rank) for a in axes}) < len(axes):
        raise AttributeValueError(f"expand_dims: an axis is listed twice in {axes}")
    extents = iter(x.shape)
    positions = {_position(a, rank) for a in axes}
    return shapes.reshape(x, shape=tuple(1 if d in positions else next(extents) for d in range(rank)))


def _position(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise IndexRangeError(f"axis {axis} is out of range", remedy=f"pass an axis from {-rank} to {rank - 1}")
    return axis % rank


@standard
def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Reverse the order of elements along axes (all for None)."""
    need_tensor("flip", x)
    return shapes.flip(x, axes=() if axis == () else dims_of(axis, x.ndim))


@standard
def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """Move axes to other positions. The others keep their order."""
    need_tensor("moveaxis", x)
    return x.movedim(source, destination)


@standard
def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Reorder the axes."""
    need_tensor("permute_dims", x)
    return x.permute(tuple(axes))


@standard
def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Repeat each entry of an axis (of the flattened array for None) next to itself."""
    need_tensor("repeat", x)
    return x.repeat_interleave(repeats, axis)


@standard
def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Change the shape. One size may be -1. Returns a view where possible, unless ``copy``.

    Raises ArgumentError where ``copy`` is False and a copy is needed.
    """
    need_tensor("reshape", x)
    target = _sequence(shape)
    reshaped = x.reshape(target if x.numel() or -1 not in target else _emptied(target))
    if copy is False and reshaped._view is None and x.numel():
        raise ArgumentError("reshape: this shape needs a copy, and copy is False", remedy="pass copy=None")
    return reshaped.clone() if copy else reshaped


def _sequence(value: int | Sequence[int]) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


def _emptied(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Resolve -1 in the shape of an array without elements."""
    if 0 in shape:
        raise ShapeError(f"reshape: the -1 in {list(shape)} could be any size", remedy="pass a size instead of -1")
    return tuple(0 if s == -1 else s for s in shape)


@standard
def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Rotate elements along axes (of the flattened array for None)."""
    need_tensor("roll", x)
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    if not x.numel() or not x.shape:
        return x.clone()
    return x.roll(shift, axis)


@standard
def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Remove axes of size 1. Raises ShapeError for an axis of another size."""
    need_tensor("squeeze", x)
    axes = {_position(a, x.ndim) for a in _sequence(axis)}
    if any(x.shape[a] != 1 for a in axes):
        raise ShapeError(f"squeeze: {axis} of {list(x.shape)} is not of size 1")
    return shapes.reshape(x, shape=tuple(s for d, s in enumerate(x.shape) if d not in axes))


@standard
def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join arrays of one shape along a new axis, in their common type."""
    need_tensor("stack", *arrays)
    return stacked(promotion.promoted("stack", *arrays), axis)


@standard
def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeat the entire array along each axis."""
    need_tensor("tile", x)
    return x.tile(_sequence(repetitions)) if _sequence(repetitions) else x.clone()


@standard
def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the entries of an axis."""
    need_tensor("unstack", x)
    return x.unbind(dim_of(axis, x.ndim))


__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis"]
__all__ += ["permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack"]
