"""Statistics of tensors, for taps of compiled code, and the two ops that pass them gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64, int32, int64
from graphc.base.errors import AttributeValueError
from graphc.base.records import NamedTuple
from graphc.base.sizes.size import always
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.op import Attr, ErrorSample, Trait, Types
from graphc.ir.types import TensorType
from graphc.ops.define import define
from graphc.ops.effects.host import TOKEN, host_call
from graphc.ops.movement.shape import concat, filled, reshape
from graphc.ops.rules import check_kind
from graphc.ops.samples import array, floats, integers, plain

KINDS = ("mean", "norm", "zeros", "range", "nan", "histogram")
"""Available statistics: mean and deviation, norm, zeros, smallest and largest element, number of NaNs, and counts in
BINS equal intervals between the smallest and the largest element."""
BINS = 30
USUAL = "mean norm zeros range nan"
"""All statistics except the expensive one."""
FIELDS = ("size", "nonfinite", "mean", "std", "norm", "zeros", "min", "max", "nan")
"""Fields of a row. First the number of elements, and how many of them are not finite. Of the finite ones: mean,
deviation (root of the mean squared difference from the mean), norm (root of the sum of squares), fraction of zeros,
smallest and largest element. Then the number of NaNs. Fields that were not requested, or have no elements, are NaN.
Counts of a histogram, or zeros, follow."""
ROW = TensorType(float64, (len(FIELDS) + BINS,))


def kinds_of(text: str, name: str = "statistics") -> tuple[str, ...]:
    """Parse the kinds in a text such as ``mean zeros``. Raises AttributeValueError for anything else."""
    kinds = tuple(text.split())
    for kind in kinds:
        if kind not in KINDS:
            raise AttributeValueError(f"{name}: unknown statistic {kind!r}", remedy=f"pass some of {', '.join(KINDS)}")
    return kinds


def _infer(x: TensorType, kinds: str) -> TensorType:
    check_kind("statistics", 0, x.dtype, "fiub")
    kinds_of(kinds)
    return ROW


def row_of(x: np.ndarray, kinds: str) -> np.ndarray:
    """Compute the row of an array, in f64."""
    wide, requested = x.astype(np.float64), {*kinds_of(kinds)}
    if "histogram" in requested:
        requested.add("range")
    good = wide[np.isfinite(wide)]
    row: dict[str, Any] = dict.fromkeys(FIELDS, math.nan)
    row |= {"size": x.size, "nonfinite": x.size - good.size}
    if "norm" in requested:
        row["norm"] = math.sqrt(np.square(good).sum())
    if "nan" in requested:
        row["nan"] = int(np.isnan(wide).sum())
    if good.size:
        finite_fields = {
            "mean": {"mean": good.mean(), "std": good.std()},
            "zeros": {"zeros": np.mean(good == 0)},
            "range": {"min": good.min(), "max": good.max()},
        }
        for kind in requested:
            row |= finite_fields.get(kind, {})
    counts = np.histogram(good, BINS)[0] if "histogram" in requested else np.zeros(BINS)
    return np.concatenate([[row[name] for name in FIELDS], counts]).astype(np.float64)


class _Element(NamedTuple):
    """One element, as the sums of a row take it."""

    value: Scalar
    is_finite: Scalar
    moved: Scalar
    """Difference from the first element."""

    def kept(self, other: float) -> Scalar:
        """Return the element, or ``other`` where it is not finite."""
        return self.value.nest.select(self.is_finite, self.value, other)


class _Sum(NamedTuple):
    """One accumulator of a row."""

    kind: str
    combine: str
    number: Callable[[_Element], Scalar]
    first: float = 0.0


_SUMS = {
    "finite": _Sum("", "add", lambda e: e.is_finite),
    "nans": _Sum("nan", "add", lambda e: e.value.ne(e.value)),
    "nulls": _Sum("zeros", "add", lambda e: e.value.eq(0)),
    "total": _Sum("mean", "add", lambda e: e.moved),
    "apart": _Sum("mean", "add", lambda e: e.moved * e.moved),
    "squares": _Sum("norm", "add", lambda e: e.kept(0) * e.kept(0)),
    "least": _Sum("range", "min", lambda e: e.kept(math.inf), math.inf),
    "most": _Sum("range", "max", lambda e: e.kept(-math.inf), -math.inf),
}
"""Accumulators of a row. Those of mean and deviation sum differences from the first element, which keeps accuracy where
the mean is large compared with the deviation; the norm sums the elements."""


def _nest(c: LowerContext, x: OperandRef, kinds: str) -> None:
    """Reduce all elements in one pass. Sums are in f32 for elements of up to 32 bits, else in f64; counts are
    integers."""
    nest, requested = c.nest, {"", *kinds_of(kinds)}
    if "histogram" in requested:
        requested.add("range")
    is_narrow = x.dtype.kind == "f" and x.dtype.bits <= float32.bits
    dtype, integer = (float32, int32) if is_narrow else (float64, int64)
    sums = {name: entry for name, entry in _SUMS.items() if entry.kind in requested}
    counted = {"finite", "nans", "nulls"}
    shift = nest.const(0, dtype)
    if "mean" in requested and always("<=", 1, math.prod(x.shape)):
        first = c.load(x, (0,) * len(x.shape)).cast(dtype)
        shift = nest.select(nest.op("abs", first) < math.inf, first, 0)
    types = {name: integer if name in counted else dtype for name in sums}
    accs = {name: nest.accumulator(types[name], entry.combine, entry.first) for name, entry in sums.items()}
    with nest.loops(x.shape, "reduce") as index:
        value = c.load(x, index).cast(dtype)
        is_finite = nest.op("abs", value) < math.inf
        element = _Element(value, is_finite, nest.select(is_finite, value - shift, 0))
        for name, entry in sums.items():
            nest.update(accs[name], entry.number(element).cast(types[name]))
    sums_read = {name: nest.read(acc, types[name]).cast(float64) for name, acc in accs.items()}
    fields = _fields(nest, math.prod(x.shape), shift.cast(float64), sums_read)
    for column, name in enumerate(FIELDS):
        c.store((column,), fields.get(name, nest.const(math.nan, float64)))
    with nest.loop(BINS) as column:
        c.store((column + len(FIELDS),), nest.const(0, float64))
    if "histogram" in requested:
        _count(c, x, fields["min"], fields["max"])


def _count(c: LowerContext, x: OperandRef, least: Scalar, most: Scalar) -> None:
    """Count the histogram in one more pass, element by element. The bins are those of numpy.histogram, which have a
    total width of 1 where all elements are equal."""
    nest = c.nest
    is_point = least.eq(most)
    low = nest.select(is_point, least - 0.5, least)
    scale = BINS / nest.select(is_point, 1.0, most - least)
    with nest.loops(x.shape, "serial") as index:
        value = c.load(x, index).cast(float64)
        is_finite = nest.op("abs", value) < math.inf
        bin = ((nest.select(is_finite, value, low) - low) * scale).cast(int64)
        index_of_bin = nest.op("min", nest.op("max", bin, nest.const(0, int64)), nest.const(BINS - 1, int64))
        c.store((nest.dynamic(index_of_bin, 0, BINS - 1) + len(FIELDS),), is_finite.cast(float64), combine="add")


def _fields(nest: NestBuilder, count: int, shift: Scalar, sums: dict[str, Scalar]) -> dict[str, Scalar]:
    """Compute the fields of a row from its sums."""
    n = sums["finite"]
    size = nest.const(count, float64)
    fields = {"size": size, "nonfinite": size - n}
    if "total" in sums:
        mean = sums["total"] / n
        rest = sums["apart"] / n - mean * mean
        fields |= {"mean": shift + mean, "std": nest.op("sqrt", nest.select(rest < 0, 0, rest))}
    if "squares" in sums:
        fields["norm"] = nest.op("sqrt", sums["squares"])
    if "nulls" in sums:
        fields["zeros"] = sums["nulls"] / n
    if "least" in sums:
        fields |= {f: nest.select(n > 0, sums[s], math.nan) for f, s in (("min", "least"), ("max", "most"))}
    if "nans" in sums:
        fields["nan"] = sums["nans"]
    return fields


statistics = define(
    "statistics",
    "The statistics of a tensor, f64[39]: the number of elements, how many are not finite, then mean, deviation, norm, "
    "fraction of zeros, smallest and largest of the finite ones, and how many are NaN; fields that were not requested "
    "are NaN. Then 30 counts of a histogram.",
    "x",
    _infer,
    attrs=[Attr("kinds", "str", "the requested statistics, such as 'mean zeros'")],
    reference=row_of,
    lower_nest=_nest,
    traits=Trait.PURE | Trait.MATERIALIZE,
    samples=lambda: [
        *(plain(floats(shape, "float64"), kinds=" ".join(KINDS)) for shape in ((40, 33), ())),
        plain(floats((6, 7), "float32"), kinds="zeros range nan"),
        plain(floats((6, 7)), kinds=USUAL),
        *(plain(array([[1, np.inf, 2, np.nan], [0, 3, -np.inf, 5]], "float64"), kinds=k) for k in KINDS),
        plain(array([np.nan, np.inf], "float64"), kinds=" ".join(KINDS)),
        plain(np.zeros((2, 0), np.float32), kinds=USUAL),
        plain(integers((4, 5)), kinds="mean zeros"),
        plain(np.full((3,), 7.0), kinds="histogram"),
    ],
    error_samples=(ErrorSample((TensorType(float32, (2,)),), "unknown statistic 'median'", {"kinds": "median"}),),
)


# ---- gradients


def _infer_slots(token: TensorType, x: TensorType, number: int, name: str, count: int) -> Types:
    if token != TOKEN or number < 0 or count < 1:
        raise AttributeValueError("gradient_slots: it takes a token, and 1 or more slots of a host function")
    return (TOKEN, *(ROW for _ in range(count)))


def _slots_gradient(g: Any, result: Any, token: Any, x: Any, number: int, name: str, count: int) -> tuple[Any, Any]:
    """Pass the gradients of the slots, which are rows, to the host function, with zeros for missing ones."""
    before, *rows = g
    if all(row is None for row in rows):
        return before, None
    table = concat(
        *(filled(0, ROW.dtype, (1, *ROW.shape)) if r is None else reshape(r, shape=(1, *ROW.shape)) for r in rows),
        axis=0,
    )
    # NOTE: this orders the first call of the backward pass after the last one of the forward pass.
    return host_call(result[0] if before is None else before, table, number=number, name=name), None


gradient_slots = define(
    "gradient_slots",
    "A token, and slots whose gradients are rows of statistics: the backward pass passes all of them to a Python "
    "function in one call. x only makes the gradients depend on it.",
    "token x",
    _infer_slots,
    attrs=[
        Attr("number", "int", "which of the caller's functions"),
        Attr("name", "str", "what messages call it"),
        Attr("count", "int", "how many slots there are"),
    ],
    reference=lambda token, x, number, name, count: (token.copy(), *np.zeros((count, *ROW.shape))),
    vjp=_slots_gradient,
    decompose=lambda token, x, number, name, count: (token, *(filled(0, ROW.dtype, ROW.shape) for _ in range(count))),
    samples=list,
    error_samples=(
        ErrorSample((TensorType(float32, (2,)),) * 2, "takes a token", {"number": 0, "name": "f", "count": 1}),
    ),
)


def _infer_tap(x: TensorType, slot: TensorType, kinds: str) -> TensorType:
    if slot != ROW:
        raise AttributeValueError("gradient_tap: it takes a slot of gradient_slots")
    kinds_of(kinds, "gradient_tap")
    return x


gradient_tap = define(
    "gradient_tap",
    "x; the gradient of the slot is the statistics of the gradient of x.",
    "x slot",
    _infer_tap,
    attrs=[Attr("kinds", "str", "which statistics, such as 'mean zeros'")],
    reference=lambda x, slot, kinds: x.copy(),
    vjp=lambda g, result, x, slot, kinds: (g, statistics(g, kinds=kinds)),
    decompose=lambda x, slot, kinds: x,
    traits=Trait.PURE,
    samples=lambda: [plain(floats((3, 5)), np.zeros(ROW.shape), kinds="norm")],
    error_samples=(
        ErrorSample((TensorType(float32, (2,)),) * 2, "takes a slot", {"kinds": "mean"}),
        ErrorSample((TensorType(float32, (2,)), ROW), "unknown statistic 'median'", {"kinds": "median"}),
    ),
)
