"""Ops that read and write at computed positions: gather, scatter and its variants, iota."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bool_, complex64, dtype_of, float32, float64, int8, int32, int64
from graphc.base.errors import DTypeError, IndexRangeError, ShapeError
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.op import Attr, Attrs, ErrorSample, OnParts, OpDef, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops import bounds, dispatch
from graphc.ops.batch import BatchedOperand, move, spread
from graphc.ops.define import define
from graphc.ops.movement.shape import filled, reshape, zeros_like
from graphc.ops.pointwise.elementwise import add, cast, div, eq, maximum, mul, where
from graphc.ops.rules import check_axis, check_kind, check_one_dtype, check_sizes, show
from graphc.ops.samples import array, booleans, floats, integers, plain

Indices = tuple[Index, ...]
_AXIS = Attr("axis", "int", "the dimension of x that the indices run over")
_F = TensorType(float32, (2, 3))
_I = TensorType(int64, (4,))


def gathered_shape(x: tuple[int, ...], indices: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Return the shape of ``x`` with dimension ``axis`` replaced by the dimensions of ``indices``."""
    return (*x[:axis], *indices, *x[axis + 1 :])


def _check_indices(name: str, x: TensorType, indices: TensorType, axis: int) -> None:
    check_kind(name, 1, indices.dtype, "iu")
    check_axis(name, axis, x.rank)
    if not x.shape[axis] and indices.size:
        what = f"{name}: axis {axis} of {show(x.shape)} has no elements for {indices.size} indices"
        raise ShapeError(what, remedy="pass empty indices for an empty axis")


def _check_range(name: str, indices: np.ndarray, extent: int) -> None:
    wrong = (indices < 0) | (indices >= extent)
    if wrong.any():
        position = np.argwhere(wrong)[0].tolist()
        what = f"{name}: index {indices[tuple(position)]} (at {show(position)}) is out of range for {extent} elements"
        raise IndexRangeError(what, remedy=f"pass indices from 0 to {extent - 1}")


def _position(c: LowerContext, indices: OperandRef, index: Indices, extent: int) -> Index:
    """Return an element of an index operand, clamped to the axis, as an index expression."""
    nest: NestBuilder = c.nest
    scalar = c.load(indices, index).cast(int64)
    low = scalar if indices.dtype.kind == "u" else nest.op("max", scalar, nest.const(0, int64))
    return nest.dynamic(nest.op("min", low, nest.const(extent - 1, int64)), 0, extent - 1)


# ---- gather


def _infer_gather(x: TensorType, indices: TensorType, axis: int) -> TensorType:
    _check_indices("gather", x, indices, axis)
    return TensorType(x.dtype, gathered_shape(x.shape, indices.shape, axis))


def _gather_reference(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    _check_range("gather", indices, x.shape[axis])
    return np.take(x, indices, axis=axis)


def _lower_gather(c: LowerContext, index: Indices, x: OperandRef, indices: OperandRef, axis: int) -> Scalar:
    if not x.shape[axis]:
        return c.nest.const(0, x.dtype)
    end = axis + len(indices.shape)
    position = _position(c, indices, index[axis:end], x.shape[axis])
    return c.load(x, (*index[:axis], position, *index[end:]))


def _rows_of(size: int, extent: int, indices: Any) -> Any:
    """Return positions in ``size`` consecutive axes of ``extent`` elements; indices out of range behave as in
    gather."""
    inside = gather(iota(shape=(extent,), axis=0), indices, axis=0)
    first = iota(shape=(size, *(1,) * (len(indices.shape) - 1)), axis=0)
    return add(inside, mul(first, extent))


def _batched_gather(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    x, indices = operands
    axis, rank = attrs["axis"], len(indices.shape)
    if not indices.batched:
        return gather(x.value, indices.value, axis=axis + 1)
    if not x.batched:
        return move(gather(x.value, indices.value, axis=axis), axis, 1, 0)
    front = move(x.value, axis + 1, 1, 1)
    extent, rest = front.shape[1], front.shape[2:]
    if not extent:
        return filled(0, x.value.dtype, (size, *gathered_shape(x.shape, indices.shape, axis)))
    flat = reshape(front, shape=(size * extent, *rest))
    gathered = gather(flat, _rows_of(size, extent, indices.value), axis=0)
    return move(gathered, 1, rank, 1 + axis)


gather = define(
    "gather",
    "Elements of x at positions along one axis, whose dimension is replaced by the dimensions of the indices. An index "
    "out of range is an error where it is checked (eagerly); compiled code takes the nearest element.",
    "x indices",
    _infer_gather,
    attrs=[_AXIS],
    reference=_gather_reference,
    vjp=(
        lambda g, result, x, indices, axis: scatter_add(zeros_like(x), indices, g, axis=axis),
        None,
    ),
    lower=_lower_gather,
    complex=OnParts.EACH,
    bounds=bounds.of_first,
    batch=_batched_gather,
    samples=lambda: [
        Sample((floats((5, 3)), integers((4,), "int64", 0, 4)), {"axis": 0}),
        Sample((floats((2, 6, 3), "float32"), integers((2, 2), "int32", 0, 5)), {"axis": 1}),
        Sample((floats((2, 3)), array([2, 2, 0, 2, 1], "uint8")), {"axis": 1}),
        Sample((floats((7,)), array(3, "int64")), {"axis": 0}),
        Sample((floats((3, 2)), integers((0, 2), "int64", 0, 2)), {"axis": 0}),
        Sample((floats((0, 2)), integers((0,), "int64", 0, 2)), {"axis": 0}),
        Sample((floats((300,), "float32"), integers((9,), "int8", 0, 127)), {"axis": 0}),
        plain(integers((4, 2), "int8"), integers((3,), "int32", 0, 3), axis=0),
        plain(booleans((4, 2)), integers((3,), "int64", 0, 1), axis=1),
    ],
    error_samples=[
        ErrorSample((_F, TensorType(float64, (4,))), "operand 1 is floating-point (f64)", {"axis": 0}, DTypeError),
        ErrorSample((_F, _I), "axis 2 is out of range for rank 2", {"axis": 2}, IndexRangeError),
        ErrorSample(
            (TensorType(float32, (0, 3)), _I), "axis 0 of [0,3] has no elements for 4", {"axis": 0}, ShapeError
        ),
    ],
)


# ---- scatter_add


def _infer_scatter(
    name: str, x: TensorType, indices: TensorType, updates: TensorType, axis: int, kinds: str = "fiuc"
) -> TensorType:
    _check_indices(name, x, indices, axis)
    check_kind(name, 0, x.dtype, kinds)
    if updates.dtype is not x.dtype:
        check_one_dtype(name, (x, x, updates))
    expected = gathered_shape(x.shape, indices.shape, axis)
    if updates.shape != expected:
        what = f"{name}: updates are {show(updates.shape)}, but x {show(x.shape)} at indices {show(indices.shape)}"
        raise ShapeError(f"{what} along axis {axis} takes {show(expected)}", remedy="reshape or broadcast the updates")
    return x


def _infer_scatter_add(x: TensorType, indices: TensorType, updates: TensorType, axis: int) -> TensorType:
    return _infer_scatter("scatter_add", x, indices, updates, axis)


def _scatter_add_reference(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int) -> np.ndarray:
    return _scattered("scatter_add", np.add, x, indices, updates, axis)


def _scattered(
    name: str, combine: np.ufunc, x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int
) -> np.ndarray:
    _check_range(name, indices, x.shape[axis])
    result = x.copy()
    position: Any = (*(np.s_[:],) * axis, indices.astype(np.int64))
    combine.at(result, position, updates)
    return result


def _nest_scatter_add(c: LowerContext, x: OperandRef, indices: OperandRef, updates: OperandRef, axis: int) -> None:
    _nest_scatter(c, x, indices, updates, axis, "add")


def _nest_scatter(
    c: LowerContext, x: OperandRef, indices: OperandRef, updates: OperandRef, axis: int, combine: str | None
) -> None:
    """Store the updates in the memory of x, or combine it with them, one index after the other, since two may name the
    same position."""
    if not x.shape[axis]:
        return
    nest, rank = c.nest, len(indices.shape)
    with (
        nest.loops(updates.shape[:axis]) as outer,
        nest.loops(updates.shape[axis : axis + rank], "serial") as at,
        nest.loops(updates.shape[axis + rank :]) as inner,
    ):
        position = _position(c, indices, at, x.shape[axis])
        c.store((*outer, position, *inner), c.load(updates, (*outer, *at, *inner)), combine=combine)


def _batched_scatter(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    """Batch ``scatter`` and its variants."""
    x, indices, updates = operands
    axis, rank = attrs["axis"], len(indices.shape)
    target, added = spread(x, size), spread(updates, size)
    if not indices.batched:
        return dispatch.apply(op, (target, indices.value, added), {**attrs, "axis": axis + 1})
    front, added = move(target, axis + 1, 1, 1), move(added, axis + 1, rank, 1)
    extent, rest = front.shape[1], front.shape[2:]
    if not extent:
        return target
    flat = reshape(front, shape=(size * extent, *rest))
    scattered = dispatch.apply(op, (flat, _rows_of(size, extent, indices.value), added), {**attrs, "axis": 0})
    return move(reshape(scattered, shape=(size, extent, *rest)), 1, 1, 1 + axis)


def _combined_samples() -> list[Sample]:
    """Return samples of ``scatter_add`` and ``scatter_product``."""
    return [
        Sample((floats((5, 3)), integers((4,), "int64", 0, 4), floats((4, 3), seed=1)), {"axis": 0}),
        Sample(
            (floats((2, 6, 3), "float32"), integers((2, 2), "int32", 0, 5), floats((2, 2, 2, 3), "float32", seed=1)),
            {"axis": 1},
        ),
        Sample((floats((2, 3)), array([2, 2, 0, 2, 1], "uint8"), floats((2, 5), seed=1)), {"axis": 1}),
        Sample((floats((3, 2)), integers((0,), "int64"), floats((0, 2))), {"axis": 0}),
        plain(integers((4,), "int64"), array([3, 0, 3], "int8"), integers((3,), "int64", seed=2), axis=0),
    ]


scatter_add = define(
    "scatter_add",
    "x with updates added at positions along one axis; equal positions add up. The transpose of gather, with the same "
    "shapes and the same rule for an index out of range.",
    "x indices updates",
    _infer_scatter_add,
    attrs=[_AXIS],
    reference=_scatter_add_reference,
    vjp=(
        lambda g, result, x, indices, updates, axis: g,
        None,
        lambda g, result, x, indices, updates, axis: gather(g, indices, axis=axis),
    ),
    lower_nest=_nest_scatter_add,
    complex=OnParts.EACH,
    updates=0,
    traits=Trait.PURE | Trait.MATERIALIZE,
    batch=_batched_scatter,
    samples=lambda: [
        *_combined_samples(),
        Sample((floats((7,)), array(3, "int64"), floats((), seed=1)), {"axis": 0}),
        Sample((floats((0, 2)), integers((0,), "int64"), floats((0, 2))), {"axis": 0}),
        plain(integers((4,), "int8"), array([1, 1, 1], "int64"), array([100, 100, 1], "int8"), axis=0),
    ],
    error_samples=[
        ErrorSample((_F, _I, _F), "updates are [2,3], but x [2,3] at indices [4]", {"axis": 0}, ShapeError),
        ErrorSample(
            (_F, _I, TensorType(float64, (4, 3))), "f32 (operand 0) and f64 (operand 2)", {"axis": 0}, DTypeError
        ),
        ErrorSample((TensorType(bool_, (3,)), _I, TensorType(bool_, (4,))), "boolean", {"axis": 0}, DTypeError),
    ],
)


# ---- scatter


def _infer_scatter_last(x: TensorType, indices: TensorType, updates: TensorType, axis: int) -> TensorType:
    return _infer_scatter("scatter", x, indices, updates, axis, "fiubc")


def _scatter_reference(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int) -> np.ndarray:
    _check_range("scatter", indices, x.shape[axis])
    result = x.copy()
    # NOTE: numpy does not specify which of several values for one element remains, because it may reorder its loops.
    positions, last_occurrence = np.unique(indices.reshape(-1)[::-1], return_index=True)
    rows = updates.reshape(*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
    lead = (np.s_[:],) * axis
    result[(*lead, positions.astype(np.int64))] = rows[(*lead, indices.size - 1 - last_occurrence)]
    return result


def _scatter_vjp_x(g: Any, result: Any, x: Any, indices: Any, updates: Any, axis: int) -> Any:
    return scatter(g, indices, filled(0, g.dtype, updates.shape), axis=axis)


def _scatter_jvp(tangents: Sequence[Any], result: Any, x: Any, indices: Any, updates: Any, axis: int) -> Any:
    of_x, _, of_updates = tangents
    of_x = filled(0, x.dtype, x.shape) if of_x is None else of_x
    of_updates = filled(0, x.dtype, updates.shape) if of_updates is None else of_updates
    return scatter(of_x, indices, of_updates, axis=axis)


scatter = define(
    "scatter",
    "x with updates in place of the elements at positions along one axis; of several updates for one position, the "
    "last one (in the order of the indices) remains. Shapes as for scatter_add. In reverse mode every update gets the "
    "gradient of its position, as in PyTorch, even if it was overwritten; in forward mode only remaining ones count.",
    "x indices updates",
    _infer_scatter_last,
    attrs=[_AXIS],
    reference=_scatter_reference,
    vjp=(
        _scatter_vjp_x,
        None,
        lambda g, result, x, indices, updates, axis: gather(g, indices, axis=axis),
    ),
    jvp=_scatter_jvp,
    lower_nest=lambda c, x, indices, updates, axis: _nest_scatter(c, x, indices, updates, axis, None),
    complex=OnParts.EACH,
    updates=0,
    traits=Trait.PURE | Trait.MATERIALIZE,
    bounds=bounds.union(0, 2),
    batch=_batched_scatter,
    samples=lambda: [
        Sample((floats((5, 3)), array([4, 0, 2], "int64"), floats((3, 3), seed=1)), {"axis": 0}),
        Sample(
            (floats((2, 6), "float32"), array([[5, 1], [0, 3]], "int32"), floats((2, 2, 2), "float32", 1)), {"axis": 1}
        ),
        Sample((floats((7,)), array(3, "int64"), floats((), seed=1)), {"axis": 0}),
        Sample((floats((3, 2)), integers((0,), "int64"), floats((0, 2))), {"axis": 0}),
        Sample((floats((0, 2)), integers((0,), "int64"), floats((0, 2))), {"axis": 0}),
        plain(floats((5, 3)), array([4, 0, 4, 0], "int64"), floats((4, 3), seed=1), axis=0),
        plain(floats((2, 3, 2)), array([[2, 2], [0, 2]], "uint8"), floats((2, 2, 2, 2), seed=1), axis=1),
        plain(floats((2, 40), "float32"), array([[7] * 9, [3] * 9], "int64"), floats((2, 2, 9), "float32"), axis=1),
        plain(integers((4,), "int8"), array([1, 1, 1], "int64"), array([100, 7, 1], "int8"), axis=0),
        plain(booleans((4,)), array([3, 0, 3], "int8"), booleans((3,), 1), axis=0),
    ],
    error_samples=[
        ErrorSample((_F, _I, _F), "scatter: updates are [2,3], but x [2,3] at indices [4]", {"axis": 0}, ShapeError),
        ErrorSample((_F, _I, TensorType(float64, (4, 3))), "f32 (operand 0) and f64", {"axis": 0}, DTypeError),
    ],
)


# ---- scatter_extreme


def _infer_scatter_extreme(
    x: TensorType, indices: TensorType, updates: TensorType, axis: int, largest: bool
) -> TensorType:
    return _infer_scatter("scatter_extreme", x, indices, updates, axis, "fiu")


def _scatter_extreme_reference(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int, largest: bool
) -> np.ndarray:
    return _scattered("scatter_extreme", np.maximum if largest else np.minimum, x, indices, updates, axis)


def _nest_scatter_extreme(
    c: LowerContext, x: OperandRef, indices: OperandRef, updates: OperandRef, axis: int, largest: bool
) -> None:
    _nest_scatter(c, x, indices, updates, axis, "max" if largest else "min")


def _shares(g: Any, result: Any, x: Any, indices: Any, updates: Any, axis: int) -> tuple[Any, Any, Any]:
    """Return the gradient divided by the number of elements equal to the extreme, and which elements of x and of the
    updates these are (1 or 0)."""
    own = cast(eq(x, result), dtype=x.dtype)
    from_updates = cast(eq(updates, gather(result, indices, axis=axis)), dtype=x.dtype)
    return div(g, maximum(scatter_add(own, indices, from_updates, axis=axis), 1)), own, from_updates


def _scatter_extreme_vjp_x(g: Any, result: Any, x: Any, indices: Any, updates: Any, axis: int, largest: bool) -> Any:
    share, own, _ = _shares(g, result, x, indices, updates, axis)
    return mul(share, own)


def _scatter_extreme_vjp_updates(
    g: Any, result: Any, x: Any, indices: Any, updates: Any, axis: int, largest: bool
) -> Any:
    share, _, from_updates = _shares(g, result, x, indices, updates, axis)
    return mul(gather(share, indices, axis=axis), from_updates)


scatter_extreme = define(
    "scatter_extreme",
    "x with the larger (or smaller) of its elements and the updates at positions along one axis, with operands as for "
    "scatter_add. Elements equal to the result share its gradient.",
    "x indices updates",
    _infer_scatter_extreme,
    attrs=[_AXIS, Attr("largest", "bool", "keep the larger one", True, False)],
    reference=_scatter_extreme_reference,
    vjp=(_scatter_extreme_vjp_x, None, _scatter_extreme_vjp_updates),
    lower_nest=_nest_scatter_extreme,
    updates=0,
    traits=Trait.PURE | Trait.MATERIALIZE,
    batch=_batched_scatter,
    samples=lambda: [
        Sample((floats((5, 3)), integers((4,), "int64", 0, 4), floats((4, 3), seed=1)), {"axis": 0}),
        Sample(
            (floats((2, 6, 3), "float32"), integers((2, 2), "int32", 0, 5), floats((2, 2, 2, 3), "float32", seed=1)),
            {"axis": 1, "largest": False},
        ),
        Sample((floats((2, 3)), array([2, 2, 0, 2, 1], "uint8"), floats((2, 5), seed=1)), {"axis": 1}),
        Sample((floats((3, 2)), integers((0,), "int64"), floats((0, 2))), {"axis": 0}),
        plain(array([1, 2, np.nan], "float32"), array([1, 0, 2], "int64"), array([np.nan, -1, 5], "float32"), axis=0),
        plain(integers((4,), "int8"), array([1, 1, 1], "int64"), array([100, -100, 1], "int8"), axis=0, largest=False),
        plain(integers((4,), "int64"), array([3, 0, 3], "int8"), integers((3,), "int64", seed=2), axis=0),
    ],
    error_samples=[
        ErrorSample((_F, _I, _F), "scatter_extreme: updates are [2,3], but x [2,3]", {"axis": 0}, ShapeError),
        ErrorSample((TensorType(bool_, (3,)), _I, TensorType(bool_, (4,))), "boolean", {"axis": 0}, DTypeError),
    ],
)


# ---- scatter_product


def _infer_scatter_product(x: TensorType, indices: TensorType, updates: TensorType, axis: int) -> TensorType:
    return _infer_scatter("scatter_product", x, indices, updates, axis, "fiu")


def _product_vjp_x(g: Any, result: Any, x: Any, indices: Any, updates: Any, axis: int) -> Any:
    return mul(g, scatter_product(add(zeros_like(x), 1), indices, updates, axis=axis))


def _product_vjp_updates(g: Any, result: Any, x: Any, indices: Any, updates: Any, axis: int) -> Any:
    """Return the product of all others: the product of nonzero updates divided by the update, if no other update is
    0."""
    zero = eq(updates, 0)
    others = where(zero, 1, updates)
    product = scatter_product(x, indices, others, axis=axis)
    own = cast(zero, dtype=x.dtype)
    zeros = gather(scatter_add(zeros_like(x), indices, own, axis=axis), indices, axis=axis)
    rest = div(gather(mul(g, product), indices, axis=axis), others)
    return where(eq(zeros, own), rest, 0)


scatter_product = define(
    "scatter_product",
    "x multiplied by updates at positions along one axis, as scatter_add adds them.",
    "x indices updates",
    _infer_scatter_product,
    attrs=[_AXIS],
    reference=lambda x, indices, updates, axis: _scattered("scatter_product", np.multiply, x, indices, updates, axis),
    vjp=(_product_vjp_x, None, _product_vjp_updates),
    lower_nest=lambda c, x, indices, updates, axis: _nest_scatter(c, x, indices, updates, axis, "mul"),
    updates=0,
    traits=Trait.PURE | Trait.MATERIALIZE,
    batch=_batched_scatter,
    samples=lambda: [
        *_combined_samples(),
        plain(array([1, 2, np.nan], "float32"), array([1, 0, 2], "int64"), array([np.inf, 0, 5], "float32"), axis=0),
        plain(integers((4,), "int8"), array([1, 1, 1], "int64"), array([100, -100, 1], "int8"), axis=0),
    ],
    error_samples=[
        ErrorSample((_F, _I, _F), "scatter_product: updates are [2,3], but x [2,3]", {"axis": 0}, ShapeError),
        ErrorSample((TensorType(bool_, (3,)), _I, TensorType(bool_, (4,))), "boolean", {"axis": 0}, DTypeError),
        ErrorSample((TensorType(complex64, (3,)), _I, TensorType(complex64, (4,))), "complex", {"axis": 0}, DTypeError),
    ],
)


# ---- iota


def _infer_iota(shape: tuple[int, ...], axis: int, dtype: DType) -> TensorType:
    check_sizes("iota", shape)
    check_axis("iota", axis, len(shape))
    if dtype is bool_:
        raise DTypeError("iota: bool does not count", remedy="use iota in an integer type, then compare")
    return TensorType(dtype, shape)


def _iota_reference(shape: tuple[int, ...], axis: int, dtype: DType) -> np.ndarray:
    counts = np.arange(shape[axis], dtype=np.int64).astype(dtype.numpy)
    return np.broadcast_to(counts.reshape(-1, *(1,) * (len(shape) - axis - 1)), shape).copy()


iota = define(
    "iota",
    "0, 1, 2, ... along one axis, repeated along the others. Small integer types wrap around.",
    "",
    _infer_iota,
    attrs=[
        Attr("shape", "ints", "the shape of the result"),
        Attr("axis", "int", "the dimension that counts"),
        Attr("dtype", "dtype", "the element type of the result", int64, False),
    ],
    reference=_iota_reference,
    lower=lambda c, index, shape, axis, dtype: c.nest.index(index[axis], int64).cast(dtype),
    traits=Trait.PURE | Trait.GENERATOR,
    bounds=lambda ranges, types, attrs: (0, bounds.most((0, attrs["shape"][attrs["axis"]] - 1))),
    samples=lambda: [
        plain(shape=(5,), axis=0),
        plain(shape=(2, 3, 4), axis=1, dtype=int32),
        plain(shape=(2, 3), axis=0, dtype=float32),
        plain(shape=(2, 3), axis=1, dtype=float64),
        plain(shape=(300,), axis=0, dtype=int8),
        plain(shape=(300,), axis=0, dtype=dtype_of("uint8")),
        plain(shape=(0, 3), axis=1),
    ],
    error_samples=[
        ErrorSample((), "axis 1 is out of range for rank 1", {"shape": (3,), "axis": 1}, IndexRangeError),
        ErrorSample((), "bool does not count", {"shape": (3,), "axis": 0, "dtype": bool_}, DTypeError),
        ErrorSample((), "[-1] has a negative dimension", {"shape": (-1,), "axis": 0}, ShapeError),
    ],
)


def row_major_places(positions: Any, axis: int, extents: tuple[int, ...]) -> Any:
    """Convert i64 positions along an axis of a tensor with these extents to row-major offsets."""
    offsets = mul(positions, math.prod(extents[axis + 1 :]))
    for d in range(len(extents)):
        if d != axis:
            offsets = add(offsets, mul(iota(shape=positions.shape, axis=d), math.prod(extents[d + 1 :])))
    return offsets
