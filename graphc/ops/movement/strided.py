"""The op that views a tensor with arbitrary strides: as_strided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided as as_strided_array

from graphc.base.dtypes import float32, int64
from graphc.base.errors import AttributeValueError, IndexRangeError
from graphc.ir.kernel.index import Index, flatten, unflatten
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.op import Attr, Attrs, ErrorSample, OpDef, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops import bounds, dispatch
from graphc.ops.batch import BatchedOperand
from graphc.ops.define import define
from graphc.ops.movement.shape import filled, reshape, shared_memory
from graphc.ops.pointwise.elementwise import add, mul, where
from graphc.ops.rules import check_sizes, show
from graphc.ops.samples import floats, integers, plain
from graphc.ops.selection.index import gather, iota, scatter_add

Indices = tuple[Index, ...]
_F = TensorType(float32, (2, 3))


def _infer_as_strided(x: TensorType, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> TensorType:
    check_sizes("as_strided", shape)
    if len(strides) != len(shape) or any(s < 0 for s in strides):
        what = f"as_strided: strides {show(strides)} do not fit the shape {show(shape)}"
        raise AttributeValueError(what, remedy="pass one nonnegative stride per dimension")
    last = offset + sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True))
    if 0 not in shape and not 0 <= offset <= last < x.size:
        what = f"as_strided: shape {show(shape)} with strides {show(strides)} takes elements {offset} to {last}"
        raise IndexRangeError(f"{what} of {x.size}", remedy="pass a smaller shape, strides or offset")
    return TensorType(x.dtype, shape)


def strided_view(x: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> np.ndarray:
    """Return the elements of the row-major ``x`` at ``offset + sum(index * stride)``; read-only where they overlap."""
    flat = np.ascontiguousarray(x).reshape(-1)
    if 0 in shape:
        return flat[:0].reshape(shape)
    steps = tuple(s * x.itemsize for s in strides)
    return as_strided_array(flat[offset:], shape, steps, writeable=x.flags.writeable and not overlaps(shape, strides))


def overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Check whether two indices may name one element (exact for dimensions that nest in each other)."""
    reach = 0
    for step, extent in sorted((s, e) for e, s in zip(shape, strides, strict=True) if e > 1):
        if step <= reach:
            return True
        reach += step * (extent - 1)
    return False


def _lower_as_strided(
    c: LowerContext, index: Indices, x: OperandRef, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> Scalar:
    if 0 in shape:
        return c.nest.const(0, x.dtype)
    return c.load(x, unflatten(flatten(index, strides) + offset, x.shape))


def _as_strided_gradient(
    g: Any, result: Any, x: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> Any:
    """Add every element's gradient at its offset."""
    offsets = filled(offset, int64, shape)
    for axis, step in enumerate(strides):
        offsets = add(offsets, mul(iota(shape=shape, axis=axis), step))
    size, count = math.prod(x.shape), math.prod(shape)
    zeros = filled(0, x.dtype, (size,))
    if count:
        zeros = scatter_add(zeros, reshape(offsets, shape=(count,)), reshape(g, shape=(count,)), axis=0)
    return reshape(zeros, shape=x.shape)


def _batched_as_strided(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    (x,) = operands
    strides = (math.prod(x.shape), *attrs["strides"])
    return as_strided(x.value, shape=(size, *attrs["shape"]), strides=strides, offset=attrs["offset"])


def _put_strided(content: Any, value: Any, shape: Any, strides: Any, offset: int) -> Any:
    if overlaps(shape, strides):
        raise shared_memory()
    if 0 in shape:
        return content
    size = math.prod(content.shape)
    offsets = strided_view(np.arange(size), shape, strides, offset)
    mask, order = np.zeros(size, bool), np.zeros(size, np.int64)
    mask[offsets] = True
    order[offsets.reshape(-1)] = np.arange(offsets.size)
    written, sources = (dispatch.current().constant(a.reshape(content.shape)) for a in (mask, order))
    return where(written, gather(reshape(value, shape=(offsets.size,)), sources, axis=0), content)


as_strided = define(
    "as_strided",
    "The element of x at position offset + sum of index * stride in row-major order, for every index of the shape.",
    "x",
    _infer_as_strided,
    attrs=[
        Attr("shape", "ints", "the shape of the result"),
        Attr("strides", "ints", "for each dimension, the distance of neighbours"),
        Attr("offset", "int", "the position of the first element", 0, False),
    ],
    reference=strided_view,
    vjp=(_as_strided_gradient,),
    lower=_lower_as_strided,
    traits=Trait.PURE | Trait.VIEW,
    bounds=bounds.of_first,
    batch=_batched_as_strided,
    alias=_put_strided,
    samples=lambda: [
        Sample((floats((4, 5)),), {"shape": (3, 2), "strides": (1, 7), "offset": 2}),
        Sample((floats((12,), "float32"),), {"shape": (5, 4), "strides": (2, 1)}),
        Sample((floats((2, 3)),), {"shape": (4,), "strides": (0,), "offset": 5}),
        Sample((floats((2, 3)),), {"shape": (), "strides": (), "offset": 3}),
        Sample((floats((2, 3)),), {"shape": (0, 2), "strides": (1, 1)}),
        plain(integers((3, 4), "int8"), shape=(4, 3), strides=(1, 4)),
    ],
    error_samples=[
        ErrorSample(
            (_F,), "takes elements 1 to 7 of 6", {"shape": (3,), "strides": (3,), "offset": 1}, IndexRangeError
        ),
        ErrorSample((_F,), "strides [-1] do not fit", {"shape": (3,), "strides": (-1,)}, AttributeValueError),
        ErrorSample((_F,), "strides [1] do not fit", {"shape": (2, 2), "strides": (1,)}, AttributeValueError),
    ],
)
