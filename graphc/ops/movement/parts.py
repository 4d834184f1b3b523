"""Sums over the segments of an axis, as adaptive pooling divides it: segments may differ in size and overlap."""

from __future__ import annotations

import numpy as np

from graphc.base.dtypes import bool_, float32
from graphc.base.errors import AttributeValueError, DTypeError, IndexRangeError
from graphc.base.sizes.size_relations import exact_quotient
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.kernel.statements import Bound
from graphc.ir.op import Attr, ErrorSample, Sample, Trait, ZeroSign
from graphc.ir.types import TensorType
from graphc.ops.batch import along_axis
from graphc.ops.define import define
from graphc.ops.rules import check_axis, check_kind
from graphc.ops.samples import array, floats, integers, plain

_F = TensorType(float32, (2, 3))


def parts_of(extent: int, count: int) -> list[tuple[int, int]]:
    """Return (start, stop) of ``count`` segments of a dimension: segment i is floor(i n / count) to ceil((i + 1) n /
    count).

    Element e is in segment i exactly if segment e, when ``count`` is divided into ``extent`` segments, contains i.
    """
    return [(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]


def longest(extent: int, count: int) -> int:
    """Return the number of elements of the largest segment."""
    return max((stop - start for start, stop in parts_of(extent, count)), default=0)


def _infer_part_sum(x: TensorType, axis: int, count: int) -> TensorType:
    check_kind("part_sum", 0, x.dtype, "fiu")
    check_axis("part_sum", axis, x.rank)
    if count < 0:
        raise AttributeValueError(
            f"part_sum: a dimension cannot have {count} parts", remedy="pass a count of 0 or more"
        )
    return TensorType(x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def _part_sum_reference(x: np.ndarray, axis: int, count: int) -> np.ndarray:
    segments = parts_of(x.shape[axis], count)
    lines = np.moveaxis(x, axis, 0)
    result = np.zeros((count, *lines.shape[1:]), x.dtype)
    # Add the k-th elements of all segments at once: sums keep the order of the elements, with one call per k.
    for k in range(longest(x.shape[axis], count)):
        longer = [i for i, (start, stop) in enumerate(segments) if start + k < stop]
        result[longer] += lines[[segments[i][0] + k for i in longer]]
    return np.ascontiguousarray(np.moveaxis(result, 0, axis))


def _lower_part_sum(c: LowerContext, index: tuple[Index, ...], x: OperandRef, axis: int, count: int) -> Scalar:
    extent, segment = x.shape[axis], index[axis]
    if not extent or not count:
        return c.nest.const(0, x.dtype)

    def element(k: Index) -> Scalar:
        position = (segment * extent) // count + k
        guard = (Bound(position, 0, extent), Bound(position * count - segment * extent, 1 - count, extent))
        return c.load(x, (*index[:axis], position, *index[axis + 1 :]), guard=guard)

    return c.nest.reduce("add", 0, x.dtype, (_most(extent, count),), element)


def _most(extent: int, count: int) -> int:
    """Return ``longest``, or for sizes known only at run time an upper bound that is at most one larger (exact for
    divisible sizes)."""
    if type(extent) is int and type(count) is int:
        return longest(extent, count)
    quotient = exact_quotient(extent, count)
    return (extent + count - 1) // count + 1 if quotient is None else quotient


part_sum = define(
    "part_sum",
    "Sums over count segments of an axis of n elements: segment i goes from floor(i n / count) to "
    "ceil((i + 1) n / count). Its transpose is the same op with n and count exchanged.",
    "x",
    _infer_part_sum,
    attrs=[Attr("axis", "int", "the dimension to divide"), Attr("count", "int", "the number of segments")],
    reference=_part_sum_reference,
    vjp=(lambda g, result, x, axis, count: part_sum(g, axis=axis, count=x.shape[axis]),),
    lower=_lower_part_sum,
    traits=Trait.PURE,
    zero_sign=ZeroSign.HIDDEN,
    batch=along_axis,
    samples=lambda: [
        *(Sample((floats((2, 7, 3)),), {"axis": a, "count": n}) for a, n in ((0, 1), (1, 3), (1, 5), (2, 4), (1, 7))),
        Sample((floats((3, 4), "float32"),), {"axis": 1, "count": 9}),
        Sample((floats((3, 37), "float32"),), {"axis": 1, "count": 16}),
        Sample((floats((3, 4)),), {"axis": 0, "count": 0}),
        Sample((floats((0, 4)),), {"axis": 1, "count": 3}),
        plain(array([[1.0, np.inf, 2.0, 3.0, np.nan, 4.0]], "float64"), axis=1, count=5),
        *(plain(integers((3, 5), d), axis=1, count=3) for d in ("int64", "int32", "int8", "uint8")),
    ],
    error_samples=[
        ErrorSample((_F,), "axis 2 is out of range for rank 2", {"axis": 2, "count": 1}, IndexRangeError),
        ErrorSample((_F,), "cannot have -1 parts", {"axis": 0, "count": -1}, AttributeValueError),
        ErrorSample((TensorType(bool_, (3,)),), "boolean", {"axis": 0, "count": 1}, DTypeError),
    ],
)
