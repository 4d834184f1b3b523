"""Ops along one axis that depend on order: running sums, and the rank of every element."""

from __future__ import annotations

import numpy as np

from graphc.base.dtypes import bool_, float32, int64
from graphc.base.errors import DTypeError, IndexRangeError
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.op import Attr, ErrorSample, OnParts, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops import bounds
from graphc.ops.batch import along_axis
from graphc.ops.define import define
from graphc.ops.rules import check_axis, check_kind
from graphc.ops.samples import INTEGERS, array, booleans, distinct, extremes, floats, integers, plain

Indices = tuple[Index, ...]
MATERIALIZED = Trait.PURE | Trait.MATERIALIZE
_F = TensorType(float32, (2, 3))
_AXIS = Attr("axis", "int", "the dimension along which order counts")


# ---- running sums


def _infer_cumsum(x: TensorType, axis: int, reverse: bool) -> TensorType:
    check_kind("cumsum", 0, x.dtype, "fiuc")
    check_axis("cumsum", axis, x.rank)
    return x


def _cumsum_reference(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    if not reverse:
        return np.cumsum(x, axis=axis, dtype=x.dtype)
    return np.flip(np.cumsum(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)


def _nest_cumsum(c: LowerContext, x: OperandRef, axis: int, reverse: bool) -> None:
    """Compute one running sum per line along the axis, in order."""
    nest, last = c.nest, x.shape[axis] - 1
    with nest.loops(x.shape[:axis]) as outer, nest.loops(x.shape[axis + 1 :]) as inner:
        total = nest.accumulator(x.dtype, "add", 0)
        with nest.loop(x.shape[axis], "serial") as k:
            at = (*outer, -k + last if reverse else k, *inner)
            nest.update(total, c.load(x, at))
            c.store(at, nest.read(total, x.dtype))


cumsum = define(
    "cumsum",
    "For every element the sum of all elements up to it along an axis (from it on with reverse), in the type of x.",
    "x",
    _infer_cumsum,
    attrs=[_AXIS, Attr("reverse", "bool", "sum from the end", False, False)],
    reference=_cumsum_reference,
    vjp=(lambda g, result, x, axis, reverse: cumsum(g, axis=axis, reverse=not reverse),),
    lower_nest=_nest_cumsum,
    complex=OnParts.EACH,
    traits=MATERIALIZED,
    batch=along_axis,
    samples=lambda: [
        *(Sample((floats((2, 3, 4)),), {"axis": a, "reverse": r}) for a in (0, 1, 2) for r in (False, True)),
        Sample((floats((3, 17), "float32"),), {"axis": 1}),
        Sample((floats((2, 0)),), {"axis": 1}),
        plain(array([[1, np.inf, 2, np.nan, 3]], "float64"), axis=1),
        *(plain(integers((3, 5), d), axis=1) for d in INTEGERS),
    ],
    error_samples=[
        ErrorSample((_F,), "axis 2 is out of range for rank 2", {"axis": 2}, IndexRangeError),
        ErrorSample((TensorType(bool_, (3,)),), "boolean", {"axis": 0}, DTypeError),
    ],
)


# ---- ranks


def _infer_rank(x: TensorType, axis: int, descending: bool) -> TensorType:
    check_kind("rank", 0, x.dtype, "fiub")
    check_axis("rank", axis, x.rank)
    return TensorType(int64, x.shape)


def order_of(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Return the positions that sort an array along an axis; the sort is stable, and NaN is the largest."""
    if x.dtype.itemsize <= 4 and x.dtype.kind in "fiub" and x.shape[axis] < 1 << 31:
        return _order_of_words(x, axis, descending)
    if not descending:
        return np.argsort(x, axis, kind="stable")
    flipped = np.argsort(np.flip(x, axis), axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - flipped, axis)


def _order_of_words(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Sort elements of up to 32 bits. An element is the upper half of a word, its position the lower half, so an
    unstable sort suffices; this takes numpy a tenth of the time."""
    if x.dtype.kind == "f":
        bits = np.where(np.isnan(x), np.float32(np.nan), x.astype(np.float32) + np.float32(0)).view(np.int32)
        numbers = bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))
    else:
        numbers = x
    keys = numbers.astype(np.int64)
    if x.dtype == np.uint32:
        keys -= 1 << 31
    keys = (~keys if descending else keys) << 32
    keys |= np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
    keys.sort(axis=axis)
    return keys & 0xFFFFFFFF


def _rank_reference(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    positions = order_of(x, axis, descending)
    result = np.empty(x.shape, np.int64)
    counts = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
    np.put_along_axis(result, positions, np.broadcast_to(counts, x.shape), axis)
    return result


def _lower_rank(c: LowerContext, index: Indices, x: OperandRef, axis: int, descending: bool) -> Scalar:
    """Count the elements that come before each one, by comparing all pairs; this needs no order of evaluation."""
    nest, own = c.nest, index[axis]
    value = c.load(x, index).cast(int64) if x.dtype is bool_ else c.load(x, index)

    def before(k: Index) -> Scalar:
        other = c.load(x, (*index[:axis], k, *index[axis + 1 :]))
        other = other.cast(int64) if x.dtype is bool_ else other
        first = other > value if descending else other < value
        tie = other.eq(value)
        if x.dtype.kind == "f":
            here, there = value.ne(value), other.ne(other)
            first = first | (there & ~here if descending else here & ~there)
            tie = tie | (here & there)
        earlier = tie & (nest.index(k) < nest.index(own))
        return nest.select(first | earlier, nest.const(1, int64), nest.const(0, int64))

    return nest.reduce("add", 0, int64, [x.shape[axis]], before)


rank = define(
    "rank",
    "The position (i64) of every element along an axis after a stable sort; NaN is larger than every number. Kernels "
    "compare all pairs.",
    "x",
    _infer_rank,
    attrs=[_AXIS, Attr("descending", "bool", "the largest element comes first", False, False)],
    reference=_rank_reference,
    lower=_lower_rank,
    traits=MATERIALIZED,
    bounds=bounds.places,
    batch=along_axis,
    samples=lambda: [
        *(plain(distinct((2, 3, 4)), axis=a, descending=d) for a in (0, 1, 2) for d in (False, True)),
        plain(floats((3, 17), "float32"), axis=1),
        plain(array([[1, 2, 2, 1], [np.nan, 5, np.nan, 1], [-np.inf, np.inf, -0.0, 0.0]], "float32"), axis=1),
        plain(array([[1, 2, 2, 1], [np.nan, 5, np.nan, 1]], "float64"), axis=1, descending=True),
        *(plain(integers((3, 5), d, 0, 3), axis=1) for d in INTEGERS),
        *(plain(extremes(d), axis=0, descending=True) for d in INTEGERS),
        plain(booleans((3, 4)), axis=1),
        plain(floats((3, 0)), axis=1),
        plain(floats((0, 3)), axis=1),
    ],
    error_samples=[ErrorSample((_F,), "axis 2 is out of range for rank 2", {"axis": 2}, IndexRangeError)],
)
