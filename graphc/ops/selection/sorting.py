"""Sorting along an axis, by selection of few elements or by merging sorted runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, int32, int64, uint32, uint64
from graphc.base.errors import AttributeValueError, DTypeError, IndexRangeError
from graphc.base.sizes.size import bounds as bound_of
from graphc.base.sizes.size import is_size
from graphc.ir.kernel.index import Index, as_index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.op import Attr, ErrorSample, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops import bounds
from graphc.ops.batch import along_axis
from graphc.ops.define import define
from graphc.ops.movement import shape
from graphc.ops.pointwise.bits import bitcast
from graphc.ops.pointwise.elementwise import (
    bit_and,
    bit_not,
    bit_or,
    bit_xor,
    cast,
    eq,
    maximum,
    ne,
    shift_left,
    shift_right,
    sub,
    where,
)
from graphc.ops.reduction import reduce
from graphc.ops.rules import check_axis, check_kind
from graphc.ops.samples import INTEGERS, array, booleans, distinct, extremes, floats, integers, plain
from graphc.ops.selection import order
from graphc.ops.selection.index import gather, iota, row_major_places

SELECTED = 16
"""Largest count of first elements to select one by one, each in a pass over the remaining ones. By the number of steps,
more passes would pay (up to a few times the logarithm of the extent), but each makes the program longer."""
ALL = -1
_F = TensorType(float32, (2, 3))
_AXIS = Attr("axis", "int", "the dimension along which order counts")
_DESCENDING = Attr("descending", "bool", "the largest element comes first", False, False)
_HALF = 32
"""Bits of a key, and of the position that follows it."""


# ---- merging


def _infer_merge(x: TensorType, axis: int, width: int) -> TensorType:
    check_kind("merge_runs", 0, x.dtype, "iu")
    check_axis("merge_runs", axis, x.rank)
    if width < 1:
        raise AttributeValueError(f"merge_runs: runs of {width} elements", remedy="pass a width of at least 1")
    return x


def _merge_reference(x: np.ndarray, axis: int, width: int) -> np.ndarray:
    result = np.empty_like(x)
    for start in range(0, x.shape[axis], 2 * width):
        pair = (*[slice(None)] * axis, slice(start, start + 2 * width))
        result[pair] = np.sort(x[pair], axis)
    return result


class _Line:
    """One line of elements along the axis, in loops over the other axes."""

    def __init__(self, c: LowerContext, x: OperandRef, outer: Sequence[Index], inner: Sequence[Index]):
        self.nest, self._c, self._x, self._around = c.nest, c, x, (outer, inner)

    def load(self, start: Index, offset: Scalar, last: int) -> Scalar:
        """Load the element at ``offset`` (0 to ``last``) from ``start``."""
        outer, inner = self._around
        return self._c.load(self._x, (*outer, start + self.nest.dynamic(offset, 0, last), *inner))

    def store(self, index: Index, value: Scalar) -> None:
        """Store an element of the result."""
        outer, inner = self._around
        self._c.store((*outer, index, *inner), value)


def _merge_from_both_ends(line: _Line, start: Index, width: int) -> None:
    """Merge two runs of ``width``: the first half of the result from their beginnings, the other half from their ends.
    Neither run is exhausted then, and two chains of comparisons run in parallel."""
    nest, last = line.nest, width - 1
    front, back = nest.accumulator(int64, "add", 0), nest.accumulator(int64, "add", 0)
    one, zero = nest.const(1, int64), nest.const(0, int64)
    with nest.loop(width, "serial") as k:
        step, left_taken, right_taken = nest.index(k), nest.read(front, int64), nest.read(back, int64)
        a, b = line.load(start, left_taken, last), line.load(start + width, step - left_taken, last)
        c, d = line.load(start + width, -right_taken + last, last), line.load(start, right_taken - step + last, last)
        line.store(start + k, nest.op("min", a, b))
        line.store(start + (2 * width - 1) - k, nest.op("max", c, d))
        nest.update(front, nest.select(b < a, zero, one))
        nest.update(back, nest.select(c < d, zero, one))


def _merge_rest(line: _Line, start: Index, width: int, more: int) -> None:
    """Merge a run of ``width`` and a shorter one of ``more``."""
    nest = line.nest
    taken_left = nest.accumulator(int64, "add", 0)
    one, zero = nest.const(1, int64), nest.const(0, int64)
    with nest.loop(width + more, "serial") as k:
        i = nest.read(taken_left, int64)
        j = nest.index(k) - i
        a = line.load(start, nest.op("min", i, nest.const(width - 1, int64)), width - 1)
        b = line.load(start + width, nest.op("min", j, nest.const(more - 1, int64)), more - 1)
        takes_right = (i >= width) | ((j < more) & (b < a))
        line.store(start + k, nest.select(takes_right, b, a))
        nest.update(taken_left, nest.select(takes_right, zero, one))


def _nest_merge(c: LowerContext, x: OperandRef, axis: int, width: int) -> None:
    nest, extent = c.nest, x.shape[axis]
    pairs, rest = divmod(extent, 2 * width)
    end = as_index(extent - rest)
    with nest.loops(x.shape[:axis]) as outer, nest.loops(x.shape[axis + 1 :]) as inner:
        line = _Line(c, x, outer, inner)
        if pairs:
            with nest.loop(pairs) as pair:
                _merge_from_both_ends(line, pair * (2 * width), width)
        if rest > width:
            _merge_rest(line, end, width, rest - width)
        elif rest:
            with nest.loop(rest) as k:
                c.store((*outer, end + k, *inner), c.load(x, (*outer, end + k, *inner)))


merge_runs = define(
    "merge_runs",
    "Merges each pair of neighbouring sorted runs of width integers along an axis.",
    "x",
    _infer_merge,
    attrs=[_AXIS, Attr("width", "int", "elements of a run")],
    reference=_merge_reference,
    lower_nest=_nest_merge,
    traits=Trait.PURE | Trait.MATERIALIZE,
    bounds=bounds.of_first,
    batch=along_axis,
    samples=lambda: [
        plain(array([1, 4, 2, 3, 0], "int64"), axis=0, width=2),
        plain(array([3, 1, 2, 2, 9], "int8"), axis=0, width=1),
        plain(array([[1, 5, 7, 0, 6, 9, 4], [0, 1, 2, 3, 4, 5, 6]], "int32"), axis=1, width=3),
        plain(array([[1, 5, 7, 0, 6], [0, 1, 2, 1, 4]], "uint8"), axis=1, width=3),
        plain(array([[3, 1], [2, 1], [2, 5], [0, 7]], "int64"), axis=0, width=1),
        plain(array([1, 3], "int64"), axis=0, width=2),
        plain(integers((0, 3), "int64"), axis=0, width=2),
    ],
    error_samples=[
        ErrorSample((TensorType(int64, (4,)),), "runs of 0 elements", {"axis": 0, "width": 0}, AttributeValueError),
        ErrorSample((_F,), "operand 0 is floating-point", {"axis": 0, "width": 1}, DTypeError),
    ],
)


# ---- sorting lines of open extents


def _infer_sort(x: TensorType, axis: int) -> TensorType:
    check_kind("sort_lines", 0, x.dtype, "iu")
    check_axis("sort_lines", axis, x.rank)
    return x


class _Halves:
    """A line of elements, and room for one more: each pass merges the runs of one half into the other."""

    def __init__(self, c: LowerContext, x: OperandRef, extent: Any):
        self.nest, self.dtype, self.extent = c.nest, x.dtype, extent
        self.scratch = c.scratch(x.dtype, 2 * extent)
        self.count = c.nest.index(extent)
        self.source = self.target = self.count

    def load(self, position: Scalar) -> Scalar:
        """Load the element at a position of the half that is read."""
        return self.nest.load_at(self.scratch, self._at(self.source, position), self.dtype)

    def store(self, position: Scalar, value: Scalar) -> None:
        """Store an element of the half that is written."""
        self.nest.store_at(self.scratch, self._at(self.target, position), value)

    def _at(self, half: Scalar, position: Scalar) -> Index:
        return self.nest.dynamic(half + position, 0, 2 * self.extent - 1)

    def merge_pair(self, start: Scalar, width: Scalar) -> None:
        """Merge two runs of ``width``, as ``_merge_from_both_ends`` does."""
        nest = self.nest
        front, back = nest.accumulator(int64, "add", 0), nest.accumulator(int64, "add", 0)
        middle, last = start + width, start + width * 2 - 1
        one, zero = nest.const(1, int64), nest.const(0, int64)
        with nest.loop(self.extent, "serial", until=width) as k:
            step, left_taken, right_taken = nest.index(k), nest.read(front, int64), nest.read(back, int64)
            a, b = self.load(start + left_taken), self.load(middle + (step - left_taken))
            c, d = self.load(last - right_taken), self.load(middle - 1 - (step - right_taken))
            self.store(start + step, nest.op("min", a, b))
            self.store(last - step, nest.op("max", c, d))
            nest.update(front, nest.select(b < a, zero, one))
            nest.update(back, nest.select(c < d, zero, one))

    def merge_rest(self, start: Scalar, width: Scalar) -> None:
        """Merge the elements from ``start`` on: a run of at most ``width`` elements, and a shorter one or none."""
        nest, left = self.nest, self.nest.accumulator(int64, "add", 0)
        one, zero, end = nest.const(1, int64), nest.const(0, int64), self.count - 1
        with nest.loop(self.extent, "serial", until=self.count - start) as k:
            i = nest.read(left, int64)
            right = start + width + (nest.index(k) - i)
            a, b = self.load(nest.op("min", start + i, end)), self.load(nest.op("min", right, end))
            takes_right = (i >= width) | ((right <= end) & (b < a))
            self.store(start + nest.index(k), nest.select(takes_right, b, a))
            nest.update(left, nest.select(takes_right, zero, one))


def _nest_sort(c: LowerContext, x: OperandRef, axis: int) -> None:
    nest, extent = c.nest, x.shape[axis]
    halves = _Halves(c, x, extent)
    one, zero, most = nest.const(1, int64), nest.const(0, int64), bound_of(extent)[1]
    levels = (int(most) - 1).bit_length() if most < 1 << _HALF else _HALF
    merges = zero
    for level in range(levels):
        merges = merges + nest.select(halves.count > (1 << level), one, zero)
    with nest.loops(x.shape[:axis]) as outer, nest.loops(x.shape[axis + 1 :]) as inner:
        with nest.loop(extent, "serial") as k:
            nest.store_at(halves.scratch, k, c.load(x, (*outer, k, *inner)))
        with nest.loop(levels, "serial", until=merges) as level:
            power = nest.index(level)
            width = nest.op("shl", one, power)
            is_odd = (power & 1).ne(0)
            halves.source, halves.target = (
                nest.select(is_odd, halves.count, zero),
                nest.select(is_odd, zero, halves.count),
            )
            pairs = nest.op("shr", halves.count, power + 1)
            with nest.loop(extent, "serial", until=pairs) as pair:
                halves.merge_pair(nest.index(pair) * width * 2, width)
            halves.merge_rest(pairs * width * 2, width)
        halves.source = nest.select((merges & 1).ne(0), halves.count, zero)
        with nest.loop(extent, "serial") as k:
            c.store((*outer, k, *inner), halves.load(nest.index(k)))


sort_lines = define(
    "sort_lines",
    "Sorts integers along an axis in one loop nest, whose number of merges follows from the size of a call.",
    "x",
    _infer_sort,
    attrs=[_AXIS],
    reference=lambda x, axis: np.sort(x, axis),
    lower_nest=_nest_sort,
    traits=Trait.PURE | Trait.MATERIALIZE,
    bounds=bounds.of_first,
    batch=along_axis,
    samples=lambda: [
        *(plain(integers((n,), "int64", -9, 9), axis=0) for n in (0, 1, 2, 3, 7, 64, 77)),
        plain(integers((3, 5, 2), "int32", -9, 9), axis=1),
        plain(integers((2, 33), "uint8", 0, 255), axis=1),
    ],
    error_samples=[
        ErrorSample((_F,), "operand 0 is floating-point", {"axis": 0}, DTypeError),
    ],
)


# ---- the order


def _infer_argsort(x: TensorType, axis: int, descending: bool, count: int) -> TensorType:
    check_kind("argsort", 0, x.dtype, "fiub")
    check_axis("argsort", axis, x.rank)
    extent = x.shape[axis]
    if count != ALL and not 0 <= count <= extent:
        raise AttributeValueError(
            f"argsort: {count} of {extent} elements", remedy=f"pass 0 to {extent}, or {ALL} for all"
        )
    size = extent if count == ALL else count
    return TensorType(int64, (*x.shape[:axis], size, *x.shape[axis + 1 :]))


def _argsort_reference(x: np.ndarray, axis: int, descending: bool, count: int) -> np.ndarray:
    positions = order.order_of(x, axis, descending)
    return positions if count == ALL else np.take(positions, range(count), axis)


def _by_merging(x: Any, axis: int, descending: bool) -> Any:
    """Pack keys and positions into one integer each, and merge runs until one is left. Wide keys are sorted by their
    lower halves first, then by the upper ones."""
    keys = bit_not(_keys(x, descending))
    if x.dtype.kind == "b" or x.dtype.bits <= _HALF:
        return _sorted_halves(keys, axis)
    low = sub(bit_and(keys, (1 << _HALF) - 1), 1 << _HALF - 1)
    inside = _sorted_halves(low, axis)
    outside = _sorted_halves(_gathered(shift_right(keys, _HALF), inside, axis), axis)
    return _gathered(inside, outside, axis)


def _sorted_halves(keys: Any, axis: int) -> Any:
    """Return the positions that sort integers of 32 bits."""
    merged = bit_or(shift_left(cast(keys, dtype=int64), _HALF), iota(shape=keys.shape, axis=axis))
    if is_size(keys.shape[axis]):  # The number of merges is unknown then.
        return bit_and(sort_lines(merged, axis=axis), (1 << _HALF) - 1)
    width = 1
    while width < keys.shape[axis]:
        merged = merge_runs(merged, axis=axis, width=width)
        width *= 2
    return bit_and(merged, (1 << _HALF) - 1)


def _gathered(x: Any, positions: Any, axis: int) -> Any:
    """Gather the elements of ``x`` at positions along the axis."""
    return gather(shape.reshape(x, shape=(math.prod(x.shape),)), row_major_places(positions, axis, x.shape), axis=0)


def _first(x: Any, axis: int, count: int) -> Any:
    stops = [count if d == axis else s for d, s in enumerate(x.shape)]
    return shape.slice(x, starts=[0] * len(stops), stops=stops, steps=[1] * len(stops))


def _keys(x: Any, descending: bool) -> Any:
    """Return integer keys; elements that come first have larger keys."""
    if x.dtype.kind == "f":
        wide = int32 if x.dtype.bits == _HALF else int64
        bits = bitcast(where(eq(x, 0), 0.0, x), dtype=wide)
        largest = (1 << wide.bits - 1) - 1
        keys = where(ne(x, x), largest, bit_xor(bits, bit_and(shift_right(bits, wide.bits - 1), largest)))
    elif x.dtype is uint64:
        keys = bit_xor(bitcast(x, dtype=int64), -(1 << 63))
    else:
        keys = cast(x, dtype=int64)
        keys = sub(keys, 1 << _HALF - 1) if x.dtype is uint32 else keys
    return keys if descending else bit_not(keys)


def _by_selection(x: Any, axis: int, descending: bool, count: int) -> Any:
    """Select the first element, then the first of the remaining ones, and so on. Keys, except for the widest integers,
    are above the minimum of their type, which marks selected elements."""
    keys = _keys(x, descending)
    if x.dtype.kind == "f":  # Only NaN, where it comes last, has the minimum as its key.
        keys = maximum(keys, int(np.iinfo(keys.dtype.numpy).min) + 1)
    indices, selected = iota(shape=keys.shape, axis=axis), []
    for i in range(count):
        first = reduce.argmax(keys, axis=axis, keepdims=True)
        selected.append(first)
        if i < count - 1:
            keys = where(eq(indices, first), int(np.iinfo(keys.dtype.numpy).min), keys)
    return shape.concat(*selected, axis=axis) if len(selected) > 1 else selected[0]


def _decompose_argsort(x: Any, axis: int, descending: bool, count: int) -> Any:
    extent = x.shape[axis]
    size = extent if count == ALL else count
    is_wide = x.dtype.kind in "iu" and x.dtype.bits > _HALF
    is_few = type(size) is int and 0 < size <= SELECTED and (is_size(extent) or size <= extent // 2)
    if is_few and not is_wide:
        return _by_selection(x, axis, descending, size)
    return _first(_by_merging(x, axis, descending), axis, size)


argsort = define(
    "argsort",
    "The positions (i64) along an axis that sort it stably, or the first count of them; NaN is larger than every "
    "number.",
    "x",
    _infer_argsort,
    attrs=[_AXIS, _DESCENDING, Attr("count", "int", "how many positions; -1 for all", ALL, False)],
    reference=_argsort_reference,
    decompose=_decompose_argsort,
    traits=Trait.PURE,
    bounds=bounds.places,
    batch=along_axis,
    samples=lambda: _samples(),
    error_samples=[
        ErrorSample((_F,), "axis 2 is out of range for rank 2", {"axis": 2}, IndexRangeError),
        ErrorSample((_F,), "4 of 3 elements", {"axis": 1, "count": 4}, AttributeValueError),
    ],
)


def _samples() -> list[Sample]:
    special = array([[1, 2, 2, 1], [np.nan, 5, np.nan, 1], [-np.inf, np.inf, -0.0, 0.0]], "float32")
    return [
        *(plain(distinct((2, 3, 4)), axis=a, descending=d) for a in (0, 1, 2) for d in (False, True)),
        *(plain(special, axis=1, descending=d, count=c) for d in (False, True) for c in (ALL, 0, 1, 2, 3)),
        plain(special.astype("float64"), axis=1, descending=True, count=2),
        plain(floats((2, 259), "float32"), axis=1),
        plain(integers((300, 2), "int32", 0, 9), axis=0, descending=True),
        plain(integers((257,), "int64", 0, 9), axis=0, count=20),
        *(plain(integers((3, 6), d, 0, 3), axis=1, count=2) for d in INTEGERS),
        *(plain(extremes(d), axis=0, descending=v, count=1) for d in INTEGERS for v in (False, True)),
        plain(booleans((3, 4)), axis=1),
        plain(booleans((265,)), axis=0, descending=True),
        plain(floats((3, 0)), axis=1),
        plain(floats((0, 3)), axis=1),
    ]
