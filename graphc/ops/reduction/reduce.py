"""Reductions along axes: sum, prod, max, min, argmax, argmin, any, all, and the un-broadcasting of gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bool_, float32, int32, int64, limits
from graphc.base.errors import AttributeValueError, DTypeError, IndexRangeError, ShapeError
from graphc.base.sizes.dims import same_sizes
from graphc.base.sizes.size import always, is_one
from graphc.base.sizes.size import bounds as bounds_of
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.op import Attr, ErrorSample, OnParts, Sample, Trait, ZeroSign
from graphc.ir.types import TensorType
from graphc.ops import bounds
from graphc.ops.batch import along_axes, along_axis
from graphc.ops.define import define
from graphc.ops.movement.shape import broadcast_to, pad, reshape, slice, transpose
from graphc.ops.pointwise.elementwise import cast, div, eq, mul
from graphc.ops.pointwise.parts_of_complex import Complex, holomorphic
from graphc.ops.rules import check_axes, check_axis, check_kind, show
from graphc.ops.samples import INTEGERS, array, booleans, distinct, extremes, floats, integers, plain, with_attrs

REDUCTION = Trait.PURE | Trait.REDUCTION
Indices = tuple[Index, ...]
Ints = tuple[int, ...]

_F = TensorType(float32, (2, 3))
_AXES = (
    Attr("axes", "ints", "the dimensions to reduce, each 0 or more"),
    Attr("keepdims", "bool", "keep the reduced dimensions with size 1", False, False),
)
_AXIS = (
    Attr("axis", "int", "the dimension to search"),
    Attr("keepdims", "bool", "keep the searched dimension with size 1", False, False),
)


def reduced_shape(shape: Sequence[int], axes: Sequence[int], keepdims: bool) -> Ints:
    """Return the shape after reducing ``axes``."""
    if keepdims:
        return tuple(1 if d in axes else extent for d, extent in enumerate(shape))
    return tuple(extent for d, extent in enumerate(shape) if d not in axes)


def _infer(name: str, kinds: str, result: Callable[[DType], DType], needs_elements: bool) -> Callable[..., TensorType]:
    def infer(x: TensorType, axes: Ints, keepdims: bool) -> TensorType:
        check_kind(name, 0, x.dtype, kinds)
        check_axes(name, axes, x.rank)
        if needs_elements:
            for axis in axes:
                _check_not_empty(name, x, axis)
        return TensorType(result(x.dtype), reduced_shape(x.shape, axes, keepdims))

    return infer


def _check_not_empty(name: str, x: TensorType, axis: int) -> None:
    if not x.shape[axis]:
        what = f"{name}: axis {axis} of {show(x.shape)} has no elements"
        raise ShapeError(what, remedy=f"{name} needs at least one; concat or pad with a neutral value first")


def _wide(dtype: DType) -> DType:
    """Return the accumulator type: i64 for integers and bools."""
    return dtype if dtype.kind in "fc" else int64


def _same(dtype: DType) -> DType:
    return dtype


def operand_index(index: Sequence[Index], axes: Ints, keepdims: bool, reduced: Sequence[Index]) -> list[Index]:
    """Return the index into the operand for a result index and an index per reduced axis."""
    remaining = iter([i for d, i in enumerate(index) if not keepdims or d not in axes])
    inner = dict(zip(axes, reduced, strict=True))
    rank = len(index) if keepdims else len(index) + len(axes)
    return [inner[d] if d in inner else next(remaining) for d in range(rank)]


def _lower_reduction(combine: str, initial: Callable[[DType], Any]) -> Callable[..., Scalar]:
    def lower(c: LowerContext, index: Indices, x: OperandRef, axes: Ints, keepdims: bool) -> Scalar:
        dtype = c.type.dtype

        def element(*reduced: Index) -> Scalar:
            return c.load(x, operand_index(index, axes, keepdims, reduced)).cast(dtype)

        return c.nest.reduce(combine, initial(dtype), dtype, [x.shape[a] for a in axes], element)

    return lower


# ---- gradients


def expand(g: Any, shape: Sequence[int], axes: Ints) -> Any:
    """Repeat a reduced value (with or without the reduced dimensions) along ``axes`` of ``shape``."""
    return broadcast_to(reshape(g, shape=reduced_shape(shape, axes, True)), shape=tuple(shape))


def _extreme_gradient(g: Any, result: Any, x: Any, axes: Ints, keepdims: bool) -> Any:
    """Divide the gradient evenly among all elements that equal the extreme."""
    hit = cast(eq(x, expand(result, x.shape, axes)), dtype=x.dtype)
    count = sum(hit, axes=axes, keepdims=keepdims)
    return mul(hit, expand(div(g, count), x.shape, axes))


def _running_products(x: Any, backwards: bool) -> Any:
    """Return the products of the elements before (or after) each one along the last axis, in log2(n) doubling steps."""
    rank, n = len(x.shape), x.shape[-1]
    zeros, front = (0,) * rank, (0,) * (rank - 1)

    def shifted(value: Any, by: int) -> Any:
        low, high = (-by, by) if backwards else (by, -by)
        return pad(value, low=(*front, low), high=(*front, high), interior=zeros, value=1)

    result, span = shifted(x, 1), 1
    while span < bounds_of(n)[1] - 1:
        result = mul(result, shifted(result, span))
        span *= 2
    return result


def _prod_gradient(g: Any, result: Any, x: Any, axes: Ints, keepdims: bool) -> Any:
    """Return the product of all other elements, built without division, so that zeros and higher orders are correct."""
    shape = tuple(x.shape)
    remaining = [d for d in range(len(shape)) if d not in axes]
    order = (*remaining, *axes)
    count = math.prod(shape[a] for a in axes)
    if not axes or not count:
        return expand(g, shape, axes)
    moved = tuple(shape[d] for d in order)
    flat = reshape(transpose(x, permutation=order), shape=(*(shape[d] for d in remaining), count))
    others = mul(_running_products(flat, False), _running_products(flat, True))
    back = tuple(sorted(range(len(order)), key=lambda i: order[i]))
    return mul(expand(g, shape, axes), transpose(reshape(others, shape=moved), permutation=back))


def _along_last(x: Any, axes: Ints) -> Any:
    """Move ``axes`` to the end and merge them into one dimension."""
    remaining = [d for d in range(len(x.shape)) if d not in axes]
    count = math.prod(x.shape[a] for a in axes)
    return reshape(transpose(x, permutation=(*remaining, *axes)), shape=(*(x.shape[d] for d in remaining), count))


def _product_of_complex(x: Complex, axes: Ints, keepdims: bool) -> Any:
    """Multiply both halves until one element is left."""
    rest = _along_last(x, axes)
    zeros = (0,) * len(rest.shape)
    while rest.shape[-1] != 1:
        odd = (*zeros[:-1], 2 if not rest.shape[-1] else rest.shape[-1] % 2)
        rest = pad(rest, low=zeros, high=odd, interior=zeros, value=1)
        half = rest.shape[-1] // 2
        first, second = (
            slice(rest, starts=(*zeros[:-1], at), stops=(*rest.shape[:-1], at + half), steps=(1,) * len(zeros))
            for at in (0, half)
        )
        rest = mul(first, second)
    return reshape(rest, shape=reduced_shape(x.shape, axes, keepdims))


# ---- reductions


def _choices() -> list[dict[str, Any]]:
    axes = [(0,), (2,), (0, 2), (1, 0), (0, 1, 2), ()]
    return [{"axes": a, "keepdims": k} for a in axes for k in (False, True)]


def _number_samples(values: Callable[..., np.ndarray], empty: bool) -> list[Sample]:
    samples = with_attrs(values((2, 3, 4)), _choices())
    samples += [
        Sample((values((3, 17), "float32"),), {"axes": (1,)}),
        Sample((values((65, 3), "float32"),), {"axes": (0,)}),
        Sample((values((), "float32"),), {"axes": ()}),
        Sample((values((3, 0), "float32"),), {"axes": (0,)}),
        plain(array([[1, np.nan, 3], [np.inf, 2, -np.inf], [np.inf, 1, 1]], "float32"), axes=(1,)),
    ]
    if empty:
        samples.append(Sample((values((3, 0)),), {"axes": (1,), "keepdims": True}))
    samples += [plain(extremes(d), axes=(0,)) for d in INTEGERS]
    samples += [plain(integers((3, 5), d), axes=(1,)) for d in INTEGERS]
    return [*samples, plain(booleans((3, 4)), axes=(1,)), plain(booleans((3, 4), 1), axes=(0, 1))]


_AXIS_ERRORS = (
    ErrorSample((_F,), "axis 2 is out of range for rank 2", {"axes": (0, 2)}, IndexRangeError),
    ErrorSample((_F,), "axis -1 is out of range", {"axes": (-1,)}, IndexRangeError),
    ErrorSample((_F,), "listed twice in [1, 1]", {"axes": (1, 1)}, AttributeValueError),
)
_EMPTY = ErrorSample((TensorType(float32, (2, 0)),), "axis 1 of [2,0] has no elements", {"axes": (1,)}, ShapeError)


def _sum_reference(x: np.ndarray, axes: Ints, keepdims: bool) -> np.ndarray:
    return np.sum(x, axis=axes, keepdims=keepdims, dtype=None if x.dtype.kind in "fc" else np.int64)


def _prod_reference(x: np.ndarray, axes: Ints, keepdims: bool) -> np.ndarray:
    return np.prod(x, axis=axes, keepdims=keepdims, dtype=None if x.dtype.kind in "fc" else np.int64)


sum = define(
    "sum",
    "The sum along axes; of integers and bools in i64, of floats in their own type. The empty sum is 0.",
    "x",
    _infer("sum", "fiubc", _wide, False),
    attrs=_AXES,
    reference=_sum_reference,
    vjp=(lambda g, result, x, axes, keepdims: expand(g, x.shape, axes),),
    lower=_lower_reduction("add", lambda dtype: 0),
    complex=OnParts.EACH,
    traits=REDUCTION,
    zero_sign=ZeroSign.HIDDEN,
    batch=along_axes,
    samples=lambda: _number_samples(floats, True),
    error_samples=_AXIS_ERRORS,
)


def _prod_samples() -> list[Sample]:
    one = array([[1.5, 0.0, -2.0], [0.5, 3.0, 2.0]], "float64")
    two = array([[0.0, 1.5, 0.0, -2.0], [0.0, 0.5, 3.0, 2.0]], "float64")
    return [
        *_number_samples(floats, True),
        *with_attrs(one, [{"axes": a} for a in ((1,), (0,), (0, 1))]),
        *with_attrs(two, [{"axes": a} for a in ((1,), (0,), (0, 1))]),
        Sample((floats((2, 1)),), {"axes": (1,)}),
        Sample((floats((2, 2)),), {"axes": (1,)}),
    ]


prod = define(
    "prod",
    "The product along axes; of integers and bools in i64, of floats in their own type. The empty product is 1.",
    "x",
    _infer("prod", "fiubc", _wide, False),
    attrs=_AXES,
    reference=_prod_reference,
    vjp=(holomorphic(_prod_gradient),),
    lower=_lower_reduction("mul", lambda dtype: 1),
    complex=_product_of_complex,
    traits=REDUCTION,
    batch=along_axes,
    samples=_prod_samples,
    error_samples=_AXIS_ERRORS,
)


def _extreme(name: str, word: str, reference: Any, initial: Callable[[DType], Any]) -> Any:
    return define(
        name,
        f"The {word} along axes, NaN if there is one. The gradient is shared evenly among ties.",
        "x",
        _infer(name, "fiub", _same, True),
        attrs=_AXES,
        reference=lambda x, axes, keepdims: reference(x, axis=axes, keepdims=keepdims),
        vjp=(_extreme_gradient,),
        lower=_lower_reduction(name, initial),
        batch=along_axes,
        traits=REDUCTION,
        zero_sign=ZeroSign.KEPT,
        bounds=bounds.of_first,
        samples=lambda: _number_samples(distinct, False),
        error_samples=(*_AXIS_ERRORS, _EMPTY),
    )


max = _extreme("max", "largest element", np.max, lambda dtype: limits(dtype)[0])
min = _extreme("min", "smallest element", np.min, lambda dtype: limits(dtype)[1])


def _truth(name: str, word: str, reference: Any, combine: str, initial: bool) -> Any:
    return define(
        name,
        f"Whether {word} of the bools along axes holds; {initial} when there are none.",
        "x",
        _infer(name, "b", _same, False),
        attrs=_AXES,
        reference=lambda x, axes, keepdims: reference(x, axis=axes, keepdims=keepdims),
        lower=_lower_reduction(combine, lambda dtype: initial),
        batch=along_axes,
        traits=REDUCTION,
        samples=lambda: [
            *(plain(booleans((2, 3, 4)), **attrs) for attrs in _choices()),
            plain(booleans((3, 0)), axes=(1,)),
            plain(array([[True, True], [False, False], [True, False]], "bool"), axes=(1,)),
            plain(booleans(()), axes=()),
        ],
        error_samples=(
            ErrorSample((TensorType(bool_, (2,)),), "axis 1 is out of range for rank 1", {"axes": (1,)}),
            ErrorSample((_F,), "operand 0 is floating-point (f32)", {"axes": (0,)}, DTypeError),
        ),
    )


any = _truth("any", "one", np.any, "or", False)
all = _truth("all", "each", np.all, "and", True)


# ---- positions


def _infer_position(name: str) -> Callable[..., TensorType]:
    def infer(x: TensorType, axis: int, keepdims: bool) -> TensorType:
        check_kind(name, 0, x.dtype, "fiub")
        check_axis(name, axis, x.rank)
        _check_not_empty(name, x, axis)
        return TensorType(int64, reduced_shape(x.shape, (axis,), keepdims))

    return infer


def _lower_position(combine: str, initial: Callable[[DType], Any]) -> Callable[..., Scalar]:
    """Emit two reductions: the extreme, then the smallest position that equals it (or is NaN, which no extreme
    equals)."""

    def lower(c: LowerContext, index: Indices, x: OperandRef, axis: int, keepdims: bool) -> Scalar:
        nest, extent = c.nest, x.shape[axis]

        def element(k: Index) -> Scalar:
            return c.load(x, operand_index(index, (axis,), keepdims, (k,)))

        extreme = nest.reduce(combine, initial(x.dtype), x.dtype, [extent], element)
        counts = int32 if always("<=", extent, 1 << 31) else int64

        def position(k: Index) -> Scalar:
            value = element(k)
            hit = value.eq(extreme)
            if x.dtype.kind == "f":
                hit = hit | value.ne(value)
            return nest.select(hit, nest.index(k, counts), extent - 1)

        return nest.reduce("min", extent - 1, counts, [extent], position).cast(int64)

    return lower


def _position(name: str, word: str, reference: Any, combine: str, initial: Callable[[DType], Any]) -> Any:
    return define(
        name,
        f"The position (i64) of the first {word} element along an axis; NaN comes before every number.",
        "x",
        _infer_position(name),
        attrs=_AXIS,
        reference=lambda x, axis, keepdims: reference(x, axis=axis, keepdims=keepdims).astype(np.int64),
        lower=_lower_position(combine, initial),
        batch=along_axis,
        traits=REDUCTION,
        bounds=bounds.places,
        samples=lambda: [
            *(plain(distinct((2, 3, 4)), axis=a, keepdims=k) for a in (0, 1, 2) for k in (False, True)),
            plain(floats((3, 17), "float32"), axis=1),
            plain(array([[1, 2, 2, 1], [np.nan, 5, np.nan, 1], [-np.inf] * 4, [np.inf] * 4], "float32"), axis=1),
            plain(array([[0, np.nan], [1, np.nan]], "float64"), axis=1),
            *(plain(integers((3, 5), d), axis=0) for d in INTEGERS),
            *(plain(extremes(d), axis=0) for d in INTEGERS),
            plain(booleans((3, 4)), axis=1),
            plain(floats((0, 4)), axis=1),
        ],
        error_samples=(
            ErrorSample((_F,), "axis 2 is out of range for rank 2", {"axis": 2}, IndexRangeError),
            ErrorSample((TensorType(float32, (2, 0)),), "axis 1 of [2,0] has no elements", {"axis": 1}, ShapeError),
        ),
    )


argmax = _position("argmax", "largest", np.argmax, "max", lambda dtype: limits(dtype)[0])
argmin = _position("argmin", "smallest", np.argmin, "min", lambda dtype: limits(dtype)[1])


# ---- un-broadcasting


def sum_to(x: Any, shape: Sequence[int]) -> Any:
    """Sum ``x`` over the dimensions along which ``shape`` was broadcast to its shape; gradients use it to undo
    broadcasting."""
    have, want = tuple(x.shape), tuple(shape)
    if same_sizes(have, want):
        return x
    lead = len(have) - len(want)
    axes = tuple(d for d, extent in enumerate(have) if d < lead or _was_repeated(want[d - lead], extent))
    total = sum(x, axes=axes) if axes else x
    return total if same_sizes(total.shape, want) else reshape(total, shape=want)


def _was_repeated(extent: int, reached: int) -> bool:
    return not always("==", extent, reached) and not is_one(reached) and extent == 1
