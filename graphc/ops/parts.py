"""Sums over the parts of an axis, as pooling to a given size divides it: parts that may differ in size and overlap."""

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
    """(start, stop) of ``count`` parts of a dimension: part i goes from floor(i n / count) to ceil((i + 1) n / count).

    Element e lies in part i exactly if part e, when ``count`` is divided into ``extent`` parts, holds i.
    """
    return [(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]


def longest(extent: int, count: int) -> int:
    """The number of elements of the largest part."""
    return max((stop - start for start, stop in parts_of(extent, count)), default=0)


def _infer_part_sum(x: TensorType, axis: int, count: int) -> TensorType:
    check_kind("part_sum", 0, x.dtype, "fiu")
    check_axis("part_sum", axis, x.rank)
    if count < 0:
        raise AttributeValueError(f"part_sum: a dimension cannot have {count} parts", remedy="a count of 0 or more")
    return TensorType(x.dtype, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def _part_sum_reference(x: np.ndarray, axis: int, count: int) -> np.ndarray:
    parts = parts_of(x.shape[axis], count)
    lines = np.moveaxis(x, axis, 0)
    result = np.zeros((count, *lines.shape[1:]), x.dtype)
    # One element of all parts at a time: sums in the order of the elements, with one call per place in a part.
    for k in range(longest(x.shape[axis], count)):
        there = [i for i, (start, stop) in enumerate(parts) if start + k < stop]
        result[there] += lines[[parts[i][0] + k for i in there]]
    return np.ascontiguousarray(np.moveaxis(result, 0, axis))


def _lower_part_sum(c: LowerContext, index: tuple[Index, ...], x: OperandRef, axis: int, count: int) -> Scalar:
    extent, part = x.shape[axis], index[axis]
    if not extent or not count:
        return c.nest.const(0, x.dtype)

    def element(k: Index) -> Scalar:
        place = (part * extent) // count + k
        guard = (Bound(place, 0, extent), Bound(place * count - part * extent, 1 - count, extent))
        return c.load(x, (*index[:axis], place, *index[axis + 1 :]), guard=guard)

    return c.nest.reduce("add", 0, x.dtype, (_most(extent, count),), element)


def _most(extent: int, count: int) -> int:
    """``longest``; of sizes that are known at run time a number that is at most one larger, unless it is divisible."""
    if type(extent) is int and type(count) is int:
        return longest(extent, count)
    whole = exact_quotient(extent, count)
    return (extent + count - 1) // count + 1 if whole is None else whole


part_sum = define(
    "part_sum",
    "Sums over count parts of an axis of n elements: part i goes from floor(i n / count) to ceil((i + 1) n / count). "
    "Its transpose is the same with n and count exchanged.",
    "x",
    _infer_part_sum,
    attrs=[Attr("axis", "int", "the dimension that is divided"), Attr("count", "int", "the number of parts")],
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
