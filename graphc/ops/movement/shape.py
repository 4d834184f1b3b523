"""Ops that rearrange elements: reshape, transpose, broadcast, slice, pad, concat, flip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter, methodcaller
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bool_, float32, int64
from graphc.base.errors import AttributeValueError, DTypeError, GradientError, GraphcError, IndexRangeError, ShapeError
from graphc.base.sizes.size import is_one, is_size
from graphc.base.sizes.size_relations import at_most
from graphc.ir.kernel.index import Index, reshaped
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.kernel.statements import Bound
from graphc.ir.op import REGISTRY, Attr, Attrs, Bounds, Dims, ErrorSample, Halo, ImageRule, OpDef, Sample, Trait, Types
from graphc.ir.types import TensorType
from graphc.ops import bounds, dispatch
from graphc.ops.batch import BatchedOperand, all_one_more, along_axes, along_axis
from graphc.ops.define import define
from graphc.ops.pointwise.parts_of_complex import Complex
from graphc.ops.prepared import Prepared
from graphc.ops.rules import (
    check_axes,
    check_axis,
    check_count,
    check_kind,
    check_one_dtype,
    check_sizes,
    show,
)
from graphc.ops.samples import booleans, floats, integers, plain, with_attrs
from graphc.ops.size_numbers import number

VIEW = Trait.PURE | Trait.VIEW
Indices = tuple[Index, ...]
_F = TensorType(float32, (2, 3))


# ---- reshape


def _infer_reshape(x: TensorType, shape: tuple[int, ...]) -> TensorType:
    check_sizes("reshape", shape)
    if math.prod(shape) != x.size:
        what = f"reshape: {show(x.shape)} has {x.size} elements and {show(shape)} has {math.prod(shape)}"
        raise ShapeError(what, remedy="choose a shape with as many elements")
    return TensorType(x.dtype, shape)


def _lower_reshape(c: LowerContext, index: Indices, x: OperandRef, shape: tuple[int, ...]) -> Scalar:
    if 0 in shape:
        return c.nest.const(0, x.dtype)
    return c.load(x, reshaped(index, shape, x.shape))


def _batched_reshape(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    return reshape(operands[0].value, shape=(size, *attrs["shape"]))


reshape = define(
    "reshape",
    "The same elements in row-major order under another shape of the same size.",
    "x",
    _infer_reshape,
    attrs=[Attr("shape", "ints", "the new shape")],
    reference=Prepared(lambda shape: methodcaller("reshape", shape)),
    vjp=(lambda g, result, x, shape: reshape(g, shape=x.shape),),
    lower=_lower_reshape,
    traits=VIEW,
    bounds=bounds.of_first,
    batch=_batched_reshape,
    alias=lambda content, value, shape: reshape(value, shape=content.shape),
    samples=lambda: [
        *with_attrs(floats((2, 3, 4)), [{"shape": s} for s in ((24,), (4, 6), (2, 1, 12), (3, 2, 2, 2), (2, 3, 4))]),
        Sample((floats((), "float32"),), {"shape": (1, 1)}),
        Sample((floats((1,), "float32"),), {"shape": ()}),
        Sample((floats((0, 3), "float32"),), {"shape": (5, 0, 2)}),
        plain(integers((6, 5), "int8"), shape=(10, 3)),
        plain(booleans((6,)), shape=(3, 2)),
    ],
    error_samples=[
        ErrorSample((_F,), "[2,3] has 6 elements and [4,2] has 8", {"shape": (4, 2)}, ShapeError),
        ErrorSample((_F,), "[-2,-3] has a negative dimension", {"shape": (-2, -3)}, ShapeError),
    ],
)


# ---- transpose


def _infer_transpose(x: TensorType, permutation: tuple[int, ...]) -> TensorType:
    if sorted(permutation) != list(range(x.rank)):
        what = f"transpose: {list(permutation)} is not a permutation of the {x.rank} dimensions of {show(x.shape)}"
        raise AttributeValueError(what, remedy=f"name each of 0 to {x.rank - 1} once" if x.rank else "use []")
    return TensorType(x.dtype, tuple(x.shape[p] for p in permutation))


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """Return the inverse permutation."""
    return tuple(sorted(range(len(permutation)), key=lambda i: permutation[i]))


def _batched_transpose(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    return transpose(operands[0].value, permutation=(0, *all_one_more(attrs["permutation"])))


transpose = define(
    "transpose",
    "Reorders dimensions: dimension i of the result is dimension permutation[i] of x.",
    "x",
    _infer_transpose,
    attrs=[Attr("permutation", "ints", "for each dimension of the result its dimension in x")],
    reference=Prepared(lambda permutation: methodcaller("transpose", permutation)),
    vjp=(lambda g, result, x, permutation: transpose(g, permutation=inverse(permutation)),),
    lower=lambda c, index, x, permutation: c.load(x, [index[i] for i in inverse(permutation)]),
    traits=VIEW,
    bounds=bounds.of_first,
    batch=_batched_transpose,
    permutes=lambda attrs: attrs["permutation"],
    alias=lambda content, value, permutation: transpose(value, permutation=inverse(permutation)),
    samples=lambda: [
        *with_attrs(floats((2, 3, 4)), [{"permutation": p} for p in ((0, 1, 2), (2, 0, 1), (1, 0, 2), (2, 1, 0))]),
        Sample((floats((5, 7), "float32"),), {"permutation": (1, 0)}),
        Sample((floats(()),), {"permutation": ()}),
        Sample((floats((0, 3)),), {"permutation": (1, 0)}),
        plain(integers((3, 2), "uint8"), permutation=(1, 0)),
    ],
    error_samples=[
        ErrorSample((_F,), "[0, 0] is not a permutation of the 2 dim", {"permutation": (0, 0)}, AttributeValueError),
        ErrorSample((_F,), "[0, 1, 2] is not a permutation", {"permutation": (0, 1, 2)}, AttributeValueError),
    ],
)


# ---- broadcast_to


def _infer_broadcast_to(x: TensorType, shape: tuple[int, ...]) -> TensorType:
    check_sizes("broadcast_to", shape)
    tail = shape[len(shape) - x.rank :] if x.rank <= len(shape) else None
    if tail is None or any(
        not (is_one(have) or have == want or have == 1) for have, want in zip(x.shape, tail, strict=True)
    ):
        what = f"broadcast_to: {show(x.shape)} does not broadcast to {show(shape)}"
        raise ShapeError(what, remedy="make each dimension, counted from the last, equal or 1")
    return TensorType(x.dtype, shape)


def _batched_broadcast_to(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    (x,) = operands
    aligned = reshape(x.value, shape=(size, *(1,) * (len(attrs["shape"]) - len(x.shape)), *x.shape))
    return broadcast_to(aligned, shape=(size, *attrs["shape"]))


def shared_memory() -> GradientError:
    """Build the error for a write to a view whose elements share memory."""
    return GradientError(
        "elements of an expanded tensor share memory, so they cannot be written to",
        remedy="write to tensor.clone() instead",
    )


def _put_broadcast(content: Any, value: Any, shape: Any) -> Any:
    if content.shape == shape:
        return value
    if not math.prod(value.shape):
        return content
    raise shared_memory()


@lru_cache(maxsize=1024)
def _repeating(shape: tuple[int, ...], strides: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Return the strides of ``rank`` dimensions in which dimensions of size 1, and new leading ones, repeat."""
    steps = [0 if size == 1 else step for size, step in zip(shape, strides, strict=True)]
    return (*(0,) * (rank - len(steps)), *steps)


def _repeated(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Do the same as ``numpy.broadcast_to`` in a fifth of its time."""
    if not x.size or not x.flags.c_contiguous:
        return np.broadcast_to(x, shape)
    try:
        result = np.ndarray(shape, x.dtype, x, 0, _repeating(x.shape, x.strides, len(shape)))
    except ValueError as error:  # More bytes than the address space holds.
        raise MemoryError(str(error)) from None
    result.flags.writeable = False
    return result


broadcast_to = define(
    "broadcast_to",
    "Repeats dimensions of size 1, and new leading ones, to reach a shape (numpy's rules).",
    "x",
    _infer_broadcast_to,
    attrs=[Attr("shape", "ints", "the shape of the result")],
    reference=_repeated,
    vjp=(lambda g, result, x, shape: g,),
    lower=lambda c, index, x, shape: c.broadcast(x, index),
    traits=VIEW,
    bounds=bounds.of_first,
    batch=_batched_broadcast_to,
    alias=_put_broadcast,
    samples=lambda: [
        *with_attrs(floats((3, 1)), [{"shape": s} for s in ((3, 4), (2, 3, 5), (3, 1), (3, 0))]),
        Sample((floats((), "float32"),), {"shape": (2, 2)}),
        Sample((floats(()),), {"shape": ()}),
        plain(integers((1, 4), "int32"), shape=(3, 4)),
        plain(booleans((2, 1, 3)), shape=(2, 2, 3)),
    ],
    error_samples=[
        ErrorSample((_F,), "[2,3] does not broadcast to [2,4]", {"shape": (2, 4)}, ShapeError),
        ErrorSample((_F,), "[2,3] does not broadcast to [3]", {"shape": (3,)}, ShapeError),
    ],
)


def filled(value: bool | int | float, dtype: DType, shape: Sequence[int]) -> Any:
    """Return a tensor of one value, as an op application (a scalar constant, broadcast when the rank is not 0)."""
    scalar = number(value, dtype)
    return broadcast_to(scalar, shape=tuple(shape)) if tuple(shape) else scalar


def zeros_like(x: Any) -> Any:
    """Return zeros of the type of ``x``; the gradient of ops that are flat almost everywhere."""
    return filled(0, x.dtype, x.shape)


# ---- slice


def _infer_slice(x: TensorType, starts: tuple[int, ...], stops: tuple[int, ...], steps: tuple[int, ...]) -> TensorType:
    for name, values in (("starts", starts), ("stops", stops), ("steps", steps)):
        check_count("slice", name, values, x.rank)
    for dim, (start, stop, step, extent) in enumerate(zip(starts, stops, steps, x.shape, strict=True)):
        if step < 1:
            raise AttributeValueError(f"slice: step {step} at dim {dim} is not positive", remedy="use flip for it")
        if not 0 <= start <= stop <= extent:
            what = f"slice: {start}:{stop} at dim {dim} is not inside 0:{extent}"
            raise IndexRangeError(what, remedy="pass 0 <= start <= stop <= size")
    counts = ((stop - start + step - 1) // step for start, stop, step in zip(starts, stops, steps, strict=True))
    return TensorType(x.dtype, tuple(counts))


def _slices(starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]) -> tuple[Any, ...]:
    return tuple([np.s_[a:b:s] for a, b, s in zip(starts, stops, steps, strict=True)])


def _slice_gradient(g: Any, result: Any, x: Any, starts: Any, stops: Any, steps: Any) -> Any:
    low, high = [], []
    for start, step, count, extent in zip(starts, steps, result.shape, x.shape, strict=True):
        low.append(start if count else extent)
        high.append(extent - 1 - start - (count - 1) * step if count else 0)
    return pad(g, low=low, high=high, interior=[s - 1 for s in steps], value=0)


def _batched_slice(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    starts, stops, steps = (0, *attrs["starts"]), (size, *attrs["stops"]), (1, *attrs["steps"])
    return slice(operands[0].value, starts=starts, stops=stops, steps=steps)


def _put_slice(content: Any, value: Any, starts: Any, stops: Any, steps: Any) -> Any:
    extents = content.shape
    sides = zip(extents, starts, steps, value.shape, strict=True)
    high = tuple(behind(*side) for side in sides)
    around = {"low": starts, "high": high, "interior": tuple(s - 1 for s in steps)}
    padded = pad(value, **around)
    if any(map(is_size, (*extents, *starts, *value.shape))):
        mask = pad(filled(True, bool_, value.shape), **around, value=False)
    else:
        written = np.zeros(extents, bool)
        written[_slices(starts, stops, steps)] = True
        mask = dispatch.current().constant(written)
    return dispatch.apply(REGISTRY["where"], (mask, padded, content), {})


def behind(extent: int, start: int, step: int, count: int) -> int:
    """Return the number of elements after the last one of a slice."""
    if is_one(step):
        return extent - start - count
    return extent - start - (count - 1) * step - 1 if count else extent - start


slice = define(
    "slice",
    "Elements starts, starts + steps, ... before stops along each dimension.",
    "x",
    _infer_slice,
    attrs=[
        Attr("starts", "ints", "first element per dimension"),
        Attr("stops", "ints", "end (exclusive) per dimension, at most its size"),
        Attr("steps", "ints", "distance per dimension, 1 or more"),
    ],
    # NOTE: with an Ellipsis, numpy returns an array even if no dimension is left.
    reference=Prepared(lambda starts, stops, steps: itemgetter((*_slices(starts, stops, steps), ...))),
    vjp=(_slice_gradient,),
    lower=lambda c, index, x, starts, stops, steps: c.load(
        x, [i * step + start for i, start, step in zip(index, starts, steps, strict=True)]
    ),
    traits=VIEW,
    bounds=bounds.of_first,
    batch=_batched_slice,
    alias=_put_slice,
    samples=lambda: [
        Sample((floats((5, 6)),), {"starts": (1, 0), "stops": (4, 6), "steps": (1, 2)}),
        Sample((floats((5, 6)),), {"starts": (0, 5), "stops": (5, 6), "steps": (3, 4)}),
        Sample((floats((2, 7, 3), "float32"),), {"starts": (0, 1, 1), "stops": (2, 7, 2), "steps": (1, 4, 1)}),
        Sample((floats((4,)),), {"starts": (2,), "stops": (2,), "steps": (1,)}),
        Sample((floats(()),), {"starts": (), "stops": (), "steps": ()}),
        plain(integers((9,), "int8"), starts=(1,), stops=(9,), steps=(3,)),
        plain(booleans((3, 3)), starts=(1, 1), stops=(3, 2), steps=(1, 1)),
    ],
    error_samples=[
        ErrorSample(
            (_F,),
            "1:4 at dim 1 is not inside 0:3",
            {"starts": (0, 1), "stops": (2, 4), "steps": (1, 1)},
            IndexRangeError,
        ),
        ErrorSample(
            (_F,), "step 0 at dim 0", {"starts": (0, 0), "stops": (2, 3), "steps": (0, 1)}, AttributeValueError
        ),
        ErrorSample(
            (_F,), "starts has 1 entries", {"starts": (0,), "stops": (2, 3), "steps": (1, 1)}, AttributeValueError
        ),
    ],
)


# ---- pad


def _infer_pad(
    x: TensorType, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...], value: bool | int | float
) -> TensorType:
    check_kind("pad", 0, x.dtype, "fiubc")
    for name, values in (("low", low), ("high", high), ("interior", interior)):
        check_count("pad", name, values, x.rank)
    if any(i < 0 for i in interior):
        raise AttributeValueError(f"pad: interior {list(interior)} has a negative entry", remedy="use slice with steps")
    if isinstance(value, float) and x.dtype.kind not in "fc":
        raise DTypeError(f"pad: value {value} does not fit {x.dtype.name}", remedy="pad with an integer, or cast x")
    if x.dtype is bool_ and not isinstance(value, bool) and value not in (0, 1):
        raise DTypeError(f"pad: value {value} does not fit bool", remedy="pad with True or False")
    sides = zip(low, x.shape, high, interior, strict=True)
    shape = tuple(a + n + b + (i * max(n - 1, 0) if i else 0) for a, n, b, i in sides)
    check_sizes("pad", shape)
    return TensorType(x.dtype, shape)


def _pad_reference(x: np.ndarray, low: Any, high: Any, interior: Any, value: Any) -> np.ndarray:
    shape = _infer_pad(TensorType(float32, x.shape), low, high, interior, 0).shape
    result = np.full(shape, np.asarray(value).astype(x.dtype))
    target, source = [], []
    for first, gap, count, extent in zip(low, interior, x.shape, shape, strict=True):
        step = gap + 1
        begin = max(0, -(first // step))
        end = max(begin, min(count, (extent - 1 - first) // step + 1))
        source.append(np.s_[begin:end])
        target.append(np.s_[first + begin * step : first + end * step : step] if end > begin else np.s_[0:0])
    result[tuple(target)] = x[tuple(source)]
    return result


def _pad_gradient(g: Any, result: Any, x: Any, low: Any, high: Any, interior: Any, value: Any) -> Any:
    zeros = (0,) * len(low)
    if any(low) or any(high):
        g = pad(g, low=[-i for i in low], high=[-i for i in high], interior=zeros, value=0)
    if any(interior):
        g = slice(g, starts=zeros, stops=g.shape, steps=[i + 1 for i in interior])
    return g


def _lower_pad(
    c: LowerContext, index: Indices, x: OperandRef, low: Any, high: Any, interior: Any, value: Any
) -> Scalar:
    guard, source = [], []
    for i, first, gap, count in zip(index, low, interior, x.shape, strict=True):
        offset = i - first
        if gap:
            guard += [Bound(offset, 0, max((count - 1) * (gap + 1) + 1, 0)), Bound(offset % (gap + 1), 0, 1)]
        else:
            guard.append(Bound(offset, 0, count))
        source.append(offset // (gap + 1))
    return c.load(x, source, tuple(guard), value)


def _pad_attrs(low: Any, high: Any, interior: Any = None, value: Any = 0) -> dict[str, Any]:
    return {"low": low, "high": high, "interior": interior or (0,) * len(low), "value": value}


def _pad_bounds(ranges: bounds.Ranges, types: bounds.Types, attrs: Attrs) -> Bounds:
    (low, high), fill = ranges[0], int(attrs["value"])
    return bounds.least((low, fill)), bounds.most((high, fill))


def _pad_halo(attrs: Attrs) -> Halo | None:
    """Return the halo of a padding that neither crops nor spreads elements, else None."""
    low, high = attrs["low"], attrs["high"]
    grows = all(at_most(0, n) for n in (*low, *high))
    return Halo(low, high, attrs["value"]) if grows and not any(attrs["interior"]) else None


def _batched_pad(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    low, high, interior = ((0, *attrs[name]) for name in ("low", "high", "interior"))
    return pad(operands[0].value, low=low, high=high, interior=interior, value=attrs["value"])


pad = define(
    "pad",
    "Puts a constant before (low), after (high) and between (interior) the elements of each dimension; "
    "a negative low or high cuts elements off, after the interior padding.",
    "x",
    _infer_pad,
    attrs=[
        Attr("low", "ints", "elements before, per dimension; negative ones are cut off"),
        Attr("high", "ints", "elements after, per dimension; negative ones are cut off"),
        Attr("interior", "ints", "elements between two neighbours, per dimension"),
        Attr("value", "scalar", "the constant", 0, False),
    ],
    reference=_pad_reference,
    vjp=(_pad_gradient,),
    lower=_lower_pad,
    complex=lambda x, value, **attrs: Complex(pad(x.real, value=value, **attrs), pad(x.imag, value=0, **attrs)),
    traits=VIEW,
    bounds=_pad_bounds,
    image=ImageRule((Dims.SAME,), Dims.SAME),
    batch=_batched_pad,
    halo=_pad_halo,
    samples=lambda: [
        Sample((floats((3, 4)),), _pad_attrs((1, 0), (2, 3), value=0.5)),
        Sample((floats((3, 4)),), _pad_attrs((1, 2), (0, 1), (2, 1))),
        Sample((floats((5, 3)),), _pad_attrs((-1, 1), (-2, -1), (1, 0), 7.0)),
        Sample((floats((4,)),), _pad_attrs((-4,), (-3,), (2,))),
        Sample((floats((2,)),), _pad_attrs((-2,), (3,), (0,), 1)),
        Sample((floats((2, 3, 5), "float32"),), _pad_attrs((0, 1, 1), (0, 1, 1))),
        Sample((floats((0, 2)),), _pad_attrs((1, 0), (1, 0), (3, 0), -1.0)),
        Sample((floats(()),), _pad_attrs((), ())),
        plain(floats((3,), "float32"), **_pad_attrs((1,), (1,), value=float("-inf"))),
        plain(integers((3,), "int8"), **_pad_attrs((1,), (1,), (1,), -128)),
        plain(booleans((2, 2)), **_pad_attrs((1, 0), (0, 1), value=True)),
    ],
    error_samples=[
        ErrorSample((_F,), "low has 1 entries for an operand of rank 2", _pad_attrs((1,), (1, 1)), AttributeValueError),
        ErrorSample((_F,), "[-1,3] has a negative dimension", _pad_attrs((-3, 0), (0, 0)), ShapeError),
        ErrorSample((_F,), "interior [-1, 0]", _pad_attrs((0, 0), (0, 0), (-1, 0)), AttributeValueError),
        ErrorSample(
            (TensorType(int64, (2,)),), "value 0.5 does not fit i64", _pad_attrs((1,), (1,), value=0.5), DTypeError
        ),
        ErrorSample((TensorType(bool_, (2,)),), "value 2 does not fit", _pad_attrs((1,), (1,), value=2), DTypeError),
    ],
)


# ---- concat


def _infer_concat(*types: TensorType, axis: int) -> TensorType:
    if not types:
        raise ShapeError("concat: there is nothing to join", remedy="pass at least one operand")
    check_one_dtype("concat", types)
    first = types[0]
    check_axis("concat", axis, first.rank)
    for i, type in enumerate(types):
        if type.rank != first.rank or any(
            a != b for dim, (a, b) in enumerate(zip(type.shape, first.shape, strict=True)) if dim != axis
        ):
            what = f"concat: shapes {show(first.shape)} (operand 0) and {show(type.shape)} (operand {i}) differ"
            raise ShapeError(f"{what} outside of axis {axis}", remedy="make all other dimensions equal")
    extent = sum(type.shape[axis] for type in types)
    return TensorType(first.dtype, (*first.shape[:axis], extent, *first.shape[axis + 1 :]))


def _concat_parts(types: Types, attrs: Attrs) -> tuple[tuple[int, ...], ...]:
    axis = attrs["axis"]
    before = accumulate((t.shape[axis] for t in types[:-1]), initial=0)
    return tuple(tuple(start if d == axis else 0 for d in range(types[0].rank)) for start in before)


def _concat_gradient(g: Any, result: Any, *operands: Any, axis: int) -> tuple[Any, ...]:
    gradients, offset = [], 0
    for operand in operands:
        starts, stops = [0] * len(g.shape), list(g.shape)
        starts[axis], stops[axis] = offset, offset + operand.shape[axis]
        offset = stops[axis]
        gradients.append(slice(g, starts=starts, stops=stops, steps=[1] * len(starts)))
    return tuple(gradients)


def _lower_concat(c: LowerContext, index: Indices, *operands: OperandRef, axis: int) -> Scalar:
    """Load each operand under the guard of its range; selects by the end of each range choose one."""
    i, offset = index[axis], 0
    loaded: list[tuple[int, Scalar]] = []
    for operand in operands:
        extent = operand.shape[axis]
        if extent:
            position = (*index[:axis], i - offset, *index[axis + 1 :])
            offset += extent
            loaded.append((offset, c.load(operand, position, (Bound(i, offset - extent, offset),))))
    if not loaded:
        return c.nest.const(0, operands[0].dtype)
    result = loaded[-1][1]
    for end, value in reversed(loaded[:-1]):
        result = c.nest.select(c.nest.condition((Bound(i, 0, end),)), value, result)
    return result


concat = define(
    "concat",
    "Joins operands along an axis; all other dimensions are equal.",
    "*parts",
    _infer_concat,
    attrs=[Attr("axis", "int", "the dimension along which to join")],
    reference=lambda *operands, axis: np.concatenate(operands, axis),
    vjp=_concat_gradient,
    lower=_lower_concat,
    traits=VIEW,
    bounds=bounds.union(),
    batch=along_axis,
    parts=_concat_parts,
    samples=lambda: [
        Sample((floats((2, 3)), floats((1, 3), seed=1), floats((4, 3), seed=2)), {"axis": 0}),
        Sample((floats((2, 3)), floats((2, 5), seed=1)), {"axis": 1}),
        Sample((floats((2, 3), "float32"),), {"axis": 1}),
        Sample((floats((0, 3)), floats((2, 3), seed=1), floats((0, 3))), {"axis": 0}),
        Sample((floats((0,), "float32"), floats((0,), "float32")), {"axis": 0}),
        plain(integers((2, 2), "uint8"), integers((2, 1), "uint8", seed=1), axis=1),
        plain(booleans((3,)), booleans((2,), 1), axis=0),
    ],
    error_samples=[
        ErrorSample((), "nothing to join", {"axis": 0}, ShapeError),
        ErrorSample((_F, TensorType(int64, (2, 3))), "f32 (operand 0) and i64 (operand 1)", {"axis": 0}, DTypeError),
        ErrorSample((_F, _F), "axis 2 is out of range for rank 2", {"axis": 2}, IndexRangeError),
        ErrorSample(
            (_F, TensorType(float32, (2, 4))), "[2,4] (operand 1) differ outside of axis 0", {"axis": 0}, ShapeError
        ),
    ],
)


# ---- flip


def _infer_flip(x: TensorType, axes: tuple[int, ...]) -> TensorType:
    check_axes("flip", axes, x.rank)
    return x


flip = define(
    "flip",
    "Reverses the order of the elements along some axes.",
    "x",
    _infer_flip,
    attrs=[Attr("axes", "ints", "the dimensions to reverse")],
    reference=Prepared(
        lambda axes: itemgetter((*[np.s_[:: -1 if d in axes else 1] for d in range(max(axes, default=-1) + 1)], ...))
    ),
    vjp=(lambda g, result, x, axes: flip(g, axes=axes),),
    lower=lambda c, index, x, axes: c.load(x, [x.shape[d] - 1 - i if d in axes else i for d, i in enumerate(index)]),
    traits=VIEW,
    bounds=bounds.of_first,
    batch=along_axes,
    samples=lambda: [
        *with_attrs(floats((2, 3, 4)), [{"axes": a} for a in ((0,), (2, 1), (0, 1, 2), ())]),
        Sample((floats((7,), "float32"),), {"axes": (0,)}),
        Sample((floats((0, 2)),), {"axes": (0, 1)}),
        Sample((floats(()),), {"axes": ()}),
        plain(integers((5,), "int64"), axes=(0,)),
    ],
    error_samples=[
        ErrorSample((_F,), "axis 2 is out of range for rank 2", {"axes": (0, 2)}, IndexRangeError),
        ErrorSample((_F,), "listed twice in [1, 1]", {"axes": (1, 1)}, GraphcError),
    ],
)
