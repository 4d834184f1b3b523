"""Rules of ONNX operators that reshape, reorder, join and split tensors, and of their effect on static sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.sizes.dims import common_shape
from graphc.base.sizes.size import is_size
from graphc.interop.onnx.call import Call
from graphc.interop.onnx.registry import host, op
from graphc.interop.onnx.values import MOST_KNOWN, Value, array_of_sizes
from graphc.interop.onnx.version_6 import ALIGN, OWN
from graphc.tensors import free_functions as free
from graphc.tensors.tensor import Tensor


@op("Shape", values=True)
def shape(data: Value, *, start: int = 0, end: int | None = None) -> Any:
    """Return the sizes, which are known without computing the tensor."""
    return array_of_sizes(data.shape[slice(start, end)])


@op("Size", values=True)
def size(data: Value) -> Any:
    return array_of_sizes([math.prod(data.shape)]).reshape(())


@op("Reshape", since=5, host="shape", moves=True)
def reshape(data: Tensor, shape: Sequence[Any], *, allowzero: int = 0) -> Tensor:
    """Change the shape. A size of 0 keeps the operand's size of that dimension, unless ``allowzero``."""
    return data.reshape(_sizes(data.shape, shape, allowzero))


@host("Reshape")
def reshape_known(data: np.ndarray, shape: np.ndarray, *, allowzero: int = 0) -> np.ndarray:
    return data.reshape(_sizes(data.shape, shape.tolist(), allowzero))


def _sizes(operand: Sequence[Any], shape: Sequence[Any], allowzero: int) -> tuple[Any, ...]:
    return tuple([operand[i] if not allowzero and type(n) is int and n == 0 else n for i, n in enumerate(shape)])


@op("Flatten", moves=True)
def flatten(data: Tensor, *, axis: int = 1) -> Tensor:
    return data.reshape(_two_sizes(data.shape, axis))


@host("Flatten")
def flatten_known(data: np.ndarray, *, axis: int = 1) -> np.ndarray:
    return data.reshape(_two_sizes(data.shape, axis))


def _two_sizes(shape: Sequence[Any], axis: int) -> tuple[Any, Any]:
    at = axis + len(shape) if axis < 0 else axis
    return math.prod(shape[:at]), math.prod(shape[at:])


@op("Transpose", moves=True)
def transpose(data: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    return data.permute(tuple(perm if perm is not None else reversed(range(data.ndim))))


host("Transpose")(lambda data, *, perm=None: np.transpose(data, perm))


@op("Concat")
def concat(*inputs: Tensor, axis: int = 1) -> Tensor:
    return free.cat(list(inputs), axis)


@host("Concat")
def concat_known(*inputs: np.ndarray, axis: int = 1) -> np.ndarray:
    return np.concatenate(inputs, axis)


@op("Split", host="split", values=True)
def split(
    input: Value, split: Value | None = None, *, axis: int = 0, num_outputs: int | None = None, call: Call
) -> Any:
    """Split into tensors of the given sizes, or into equal ones of which the last may be smaller."""
    requested = split.numbers if isinstance(split, Value) else split
    sizes = requested or _equal_sizes(input.shape[axis], num_outputs or call.outputs)
    if input.is_known and not any(map(is_size, sizes)):
        ends = list(accumulate(sizes))[:-1]
        return tuple([Value(input.element, None, chunk) for chunk in np.split(input.array, ends, axis)])
    return tuple([Value(input.element, chunk) for chunk in input.tensor.split(list(sizes), axis)])


def _equal_sizes(extent: Any, count: int) -> list[Any]:
    each = -(-extent // count)
    return [*[each] * (count - 1), extent - (count - 1) * each]


@op("Squeeze", host="axes", moves=True)
def squeeze(data: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    return data.reshape(_without(data.shape, axes))


@host("Squeeze")
def squeeze_known(data: np.ndarray, axes: Any = None) -> np.ndarray:
    return data.reshape(_without(data.shape, axes))


def _without(shape: Sequence[Any], axes: Sequence[int] | None) -> tuple[Any, ...]:
    """Return the sizes without the squeezed axes. Raises ShapeError for an axis whose size is not 1."""
    if axes is None:
        return tuple([s for s in shape if s != 1])
    squeezed = {_axis(a, len(shape)) for a in np.asarray(axes).reshape(-1).tolist()}
    for axis in squeezed:
        if shape[axis] != 1:
            raise ShapeError(f"cannot squeeze axis {axis} of the shape {list(shape)}: its size is not 1")
    return tuple([s for i, s in enumerate(shape) if i not in squeezed])


@op("Unsqueeze", host="axes", moves=True)
def unsqueeze(data: Tensor, axes: Sequence[int]) -> Tensor:
    return data.reshape(_with(data.shape, axes))


@host("Unsqueeze")
def unsqueeze_known(data: np.ndarray, axes: Any) -> np.ndarray:
    return data.reshape(_with(data.shape, axes))


def _with(shape: Sequence[Any], axes: Any) -> tuple[Any, ...]:
    numbers = np.asarray(axes).reshape(-1).tolist()
    rank = len(shape) + len(numbers)
    new = {_axis(a, rank) for a in numbers}
    if len(new) != len(numbers):
        raise AttributeValueError(f"unsqueeze: axes {numbers} contain a duplicate")
    sizes = iter(shape)
    return tuple([1 if i in new else next(sizes) for i in range(rank)])


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise AttributeValueError(f"axis {axis} is out of range for {rank} dimensions")
    return axis % rank


@op("Expand", host="shape", moves=True)
def expand(data: Tensor, shape: Sequence[Any]) -> Tensor:
    """Broadcast data and ``shape`` to each other: a 1 in ``shape`` keeps the size of the data."""
    return data.expand(common_shape(tuple(data.shape), tuple(shape)))


@host("Expand")
def expand_known(data: np.ndarray, shape: np.ndarray) -> np.ndarray | None:
    target = common_shape(data.shape, tuple(shape.tolist()))
    return np.broadcast_to(data, target) if math.prod(target) <= MOST_KNOWN else None


@op("Tile", since=6, host="repeats", moves=True)
def tile(input: Tensor, repeats: Sequence[Any]) -> Tensor:
    return input.repeat(tuple(repeats))


@host("Tile")
def tile_known(input: np.ndarray, repeats: np.ndarray) -> np.ndarray | None:
    counts = repeats.tolist()
    if math.prod(counts) * input.size > MOST_KNOWN:
        return None
    return np.tile(input, counts)


@op(ALIGN, domain=OWN)
def align_axis(x: Tensor, like: Tensor, *, axis: int) -> Tensor:
    """Append dimensions of 1 to x to align it with an axis of the other operand. A single element stays as it is."""
    if x.numel() == 1:
        return x.reshape((1,) * like.ndim)
    trailing = like.ndim - axis % like.ndim - x.ndim
    return x.reshape((*x.shape, *(1,) * trailing))
