"""Pooling: maximum and average over sliding windows, with their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bool_, float32, int32, int64
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.base.sizes.size import always, hint, is_one, is_size
from graphc.ir.kernel.index import Index, flatten, unflatten
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar, simplify
from graphc.ir.kernel.statements import Const, Guard
from graphc.ir.op import Attr, Dims, ErrorSample, ImageRule, Sample, Trait, ZeroSign
from graphc.ir.types import TensorType, row_major_strides
from graphc.ops.batch import leading
from graphc.ops.define import define
from graphc.ops.reduction.sliding import DILATION, KERNEL, PADDING, SIZE, STRIDE, Pairs, Sliding, inside

Ints = tuple[int, ...]
_WRITTEN_OUT = 16
"""Largest number of window elements to compare without a loop."""


def lowest(dtype: DType) -> float | int:
    """Return the smallest value of the type."""
    return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype.numpy).min)


def _is_written_out(kernel: Ints) -> bool:
    return not any(map(is_size, kernel)) and prod(kernel) <= _WRITTEN_OUT


def _sizes(x: TensorType | OperandRef | np.ndarray, slide: Sliding) -> Ints:
    return x.shape[len(x.shape) - slide.rank :]


def _infer_pool(op: str, x: TensorType, slide: Sliding) -> TensorType:
    if not slide.kernel or x.rank < slide.rank:
        raise AttributeValueError(f"{op}: kernel {slide.kernel} does not fit an operand of type {x}")
    slide.check(op)
    for extent, pair in zip(slide.extent, slide.padding, strict=True):
        if any(side >= extent for side in pair):
            raise AttributeValueError(f"{op}: padding {pair} must be smaller than the window, which spans {extent}")
    lead = x.shape[: x.rank - slide.rank]
    return TensorType(x.dtype, (*lead, *slide.output(op, _sizes(x, slide))))


def _infer_max(x: TensorType, kernel: Ints, stride: Ints, padding: Pairs, dilation: Ints) -> TensorType:
    if x.dtype.kind not in "fiu":
        raise DTypeError(f"max_pool: operand must be numeric, got {x.dtype}", remedy="cast it first")
    return _infer_pool("max_pool", x, Sliding(kernel, stride, padding, dilation))


def _infer_max_grad(x: TensorType, g: TensorType, **attrs: Any) -> TensorType:
    result = _infer_max(x, **attrs)
    if result != g:
        raise ShapeError(f"max_pool_grad: the gradient is {g}, the pooled operand is {result}")
    return x


def _infer_max_pick(x: TensorType, h: TensorType, **attrs: Any) -> TensorType:
    if x != h:
        raise ShapeError(f"max_pool_pick: operands must be of one type, got {x} and {h}")
    return _infer_max(x, **attrs)


# ---- references of max pooling


def _max_reference(x: np.ndarray, **attrs: Any) -> np.ndarray:
    slide = Sliding(**attrs)
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    windows = slide.windows(x, low)
    # Element by element of the window: much faster than a reduction over tiny axes.
    offsets = list(np.ndindex(*slide.kernel))
    result = windows[(..., *offsets[0])].copy()
    for at in offsets[1:]:
        np.maximum(result, windows[(..., *at)], out=result)
    return result


def _first_max(x: np.ndarray, slide: Sliding) -> np.ndarray:
    """Return the row-major index in each window of the first maximum, or of the last NaN; -1 if all is padding."""
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    windows = slide.windows(x, low)
    valid = slide.windows(np.ones(_sizes(x, slide), bool), False)
    first = np.full(windows.shape[: x.ndim], -1, np.int32)
    best = np.full(first.shape, low, x.dtype)
    for number, at in enumerate(np.ndindex(*slide.kernel)):
        value = windows[(..., *at)]
        better = valid[(..., *at)] & ((first < 0) | (value > best) | (value != value))
        first[better] = number
        best = np.where(better, value, best)
    return first


def _max_grad_reference(x: np.ndarray, g: np.ndarray, **attrs: Any) -> np.ndarray:
    slide = Sliding(**attrs)
    first = _first_max(x, slide)
    indices = np.arange(prod(slide.kernel)).reshape(slide.kernel)
    expand = (..., *(None,) * slide.rank)
    values = np.where(first[expand] == indices, g[expand], np.zeros((), g.dtype))
    return np.ascontiguousarray(slide.add_windows(values, _sizes(x, slide)))


def _max_pick_reference(x: np.ndarray, h: np.ndarray, **attrs: Any) -> np.ndarray:
    slide = Sliding(**attrs)
    first = _first_max(x, slide)
    windows = slide.windows(h)
    result = np.zeros(first.shape, h.dtype)
    for number, at in enumerate(np.ndindex(*slide.kernel)):
        result = np.where(first == number, windows[(..., *at)], result)
    return result


# ---- kernels of max pooling


def _lower_max(c: LowerContext, index: tuple[Index, ...], x: OperandRef, **attrs: Any) -> Scalar:
    slide = Sliding(**attrs)
    lead, window = index[: len(index) - slide.rank], index[len(index) - slide.rank :]
    low = lowest(x.dtype)

    def element(*at: Index) -> Scalar:
        position = slide.position(window, at)
        return c.load(x, (*lead, *position), guard=inside(position, _sizes(x, slide)), other=low)

    return c.nest.reduce("max", low, x.dtype, slide.kernel, element)


class _Window:
    """One window of ``x`` inside a kernel, which loads its elements and finds its first maximum."""

    def __init__(self, c: LowerContext, x: OperandRef, slide: Sliding, index: tuple[Index, ...]):
        split = len(index) - slide.rank
        self.c, self.x, self.slide = c, x, slide
        self.lead, self.window = index[:split], index[split:]

    def load(self, operand: OperandRef, at: tuple[Any, ...], other: Any = 0) -> Scalar:
        """Load element ``at`` of the window, from an operand of the shape of ``x``."""
        position, guard = self.position(at)
        return self.c.load(operand, (*self.lead, *position), guard=guard, other=other)

    def position(self, at: tuple[Any, ...]) -> tuple[tuple[Index, ...], Guard]:
        """Return the position in the input, and the guard that keeps it inside."""
        index = self.slide.position(self.window, at)
        return index, inside(index, _sizes(self.x, self.slide))

    def elements(self) -> Iterator[tuple[int, Ints]]:
        """Yield (number, offset) of each element, row-major."""
        return enumerate(np.ndindex(*self.slide.kernel))

    def first_max(self) -> Scalar:
        """Return the number of the first maximum, or of the last NaN, as an i32; -1 when all is padding."""
        if _is_written_out(self.slide.kernel):
            return self._compare_in_turn()
        return self._compare_by_loops()

    def _compare_in_turn(self) -> Scalar:
        nest, low = self.c.nest, lowest(self.x.dtype)
        best, first, is_inside = nest.const(low, self.x.dtype), nest.const(-1, int32), False
        for number, at in self.elements():
            guard = simplify(self.position(at)[1])
            if guard is None:
                continue
            value, here = self.load(self.x, at, low), nest.const(number, int32)
            if guard == () and not is_inside and isinstance(best.ref, Const):
                best, first, is_inside = value, here, True
                continue
            better = self._better(value, best)
            if not is_inside:  # Later padding, having the lowest value, is never better.
                better = (better | (first < 0)) & nest.condition(guard)
            best, first = nest.select(better, value, best), nest.select(better, here, first)
            is_inside = is_inside or not guard
        return first

    def _better(self, value: Scalar, best: Scalar) -> Scalar:
        if self.x.dtype.kind != "f":
            return value > best
        return (value > best) | value.ne(value)  # larger, or a later NaN, as in PyTorch

    def _compare_by_loops(self) -> Scalar:
        nest, low, kernel = self.c.nest, lowest(self.x.dtype), self.slide.kernel
        count = prod(kernel)
        best = nest.reduce("max", low, self.x.dtype, kernel, lambda *at: self.load(self.x, at, low))

        def candidate(*at: Index) -> Scalar:
            value = self.load(self.x, at, low)
            number = nest.index(flatten(at, row_major_strides(kernel)), int32)
            is_valid = nest.condition(self.position(at)[1])
            match = nest.select(value.eq(best) & is_valid, number, nest.const(count, int32))
            # The last NaN has the least of all numbers.
            return nest.select(value.ne(value) & is_valid, -1 - number, match) if self.x.dtype.kind == "f" else match

        first = nest.reduce("min", count, int32, kernel, candidate)
        first = nest.select(first < 0, -1 - first, first) if self.x.dtype.kind == "f" else first
        return nest.select(first.eq(count), nest.const(-1, int32), first)


def _lower_max_pick(c: LowerContext, index: tuple[Index, ...], x: OperandRef, h: OperandRef, **attrs: Any) -> Scalar:
    slide = Sliding(**attrs)
    window = _Window(c, x, slide, index)
    first = window.first_max()
    if _is_written_out(slide.kernel):
        result = c.nest.const(0, h.dtype)
        for number, at in window.elements():
            result = c.nest.select(first.eq(number), window.load(h, at), result)
        return result
    number = c.nest.select(first < 0, c.nest.const(0, int32), first).cast(int64)
    element = c.nest.dynamic(number, 0, prod(slide.kernel) - 1)
    return c.nest.select(first < 0, 0, window.load(h, unflatten(element, slide.kernel)))


def _lower_max_grad(c: LowerContext, x: OperandRef, g: OperandRef, **attrs: Any) -> None:
    """Zero the elements outside of all windows, then send each window's gradient to its first maximum."""
    slide = Sliding(**attrs)
    if not _tiles(slide, _sizes(x, slide), _sizes(g, slide)):
        with c.nest.loops(x.shape) as index:
            c.store(index, c.nest.const(0, g.dtype))
    lead = len(g.shape) - slide.rank
    with (
        c.nest.loops(g.shape[:lead]) as outer,
        c.nest.loops(g.shape[lead:], "serial" if slide.overlaps else "parallel") as windows,
    ):
        window = _Window(c, x, slide, (*outer, *windows))
        first, gradient = window.first_max(), c.load(g, (*outer, *windows))
        _scatter(c, window, first, gradient)


def _tiles(slide: Sliding, sizes: Ints, counts: Ints) -> bool:
    """Check whether every element of the input is in exactly one window."""
    if slide.kernel != slide.stride or any(d > 1 and k > 1 for k, d in zip(slide.kernel, slide.dilation, strict=True)):
        return False
    covered = zip(sizes, counts, slide.stride, slide.padding, strict=True)
    return all(always("<=", size, n * s - low) for size, n, s, (low, _) in covered)


def _scatter(c: LowerContext, window: _Window, first: Scalar, gradient: Scalar) -> None:
    kernel = window.slide.kernel
    combine = "add" if window.slide.overlaps else None

    def send(number: Scalar | int, at: tuple[Any, ...]) -> None:
        position, guard = window.position(at)
        value = c.nest.select(first.eq(number), gradient, 0)
        c.store((*window.lead, *position), value, guard=guard, combine=combine)

    if _is_written_out(kernel):
        for number, at in window.elements():
            send(number, at)
        return
    with c.nest.loops(kernel, "serial") as at:
        send(c.nest.index(flatten(at, row_major_strides(kernel)), int32), at)


# ---- average pooling


def _infer_avg(x: TensorType, kernel: Ints, stride: Ints, padding: Pairs, count_include_pad: bool) -> TensorType:
    if x.dtype.kind != "f":
        raise DTypeError(f"avg_pool: operand must be floating point, got {x.dtype}", remedy="cast it first")
    return _infer_pool("avg_pool", x, Sliding(kernel, stride, padding, (1,) * len(kernel)))


def _infer_avg_grad(g: TensorType, size: Ints, **attrs: Any) -> TensorType:
    if len(size) != len(attrs["kernel"]) or g.rank < len(size):
        raise AttributeValueError(f"avg_pool_grad: size {size} does not fit kernel {attrs['kernel']} and operand {g}")
    x = TensorType(g.dtype, (*g.shape[: g.rank - len(size)], *size))
    pooled = _infer_avg(x, **attrs)
    if pooled != g:
        raise ShapeError(f"avg_pool_grad: the gradient is {g}, the pooled operand is {pooled}")
    return x


def _plain(kernel: Ints, stride: Ints, padding: Pairs) -> Sliding:
    return Sliding(kernel, stride, padding, (1,) * len(kernel))


def _counts(slide: Sliding, sizes: Ints, include_pad: bool, dtype: np.dtype) -> np.ndarray:
    """Return the divisor of each window."""
    if include_pad or not slide.is_padded:
        return np.asarray(prod(slide.kernel), dtype)
    ones = slide.windows(np.ones(sizes, dtype))
    return ones.sum(axis=tuple(range(slide.rank, 2 * slide.rank)), dtype=dtype)


def _avg_reference(x: np.ndarray, kernel: Ints, stride: Ints, padding: Pairs, count_include_pad: bool) -> np.ndarray:
    slide = _plain(kernel, stride, padding)
    windows = slide.windows(x)
    total = np.zeros(windows.shape[: x.ndim], x.dtype)
    for at in np.ndindex(*kernel):
        total += windows[(..., *at)]
    return total / _counts(slide, _sizes(x, slide), count_include_pad, x.dtype)


def _avg_grad_reference(
    g: np.ndarray, size: Ints, kernel: Ints, stride: Ints, padding: Pairs, count_include_pad: bool
) -> np.ndarray:
    slide = _plain(kernel, stride, padding)
    share = g / _counts(slide, size, count_include_pad, g.dtype)
    spread = np.broadcast_to(share[(..., *(None,) * slide.rank)], (*share.shape, *kernel))
    return np.ascontiguousarray(slide.add_windows(spread, size))


def _count(
    c: LowerContext, window: tuple[Index, ...], slide: Sliding, sizes: Ints, include_pad: bool, dtype: DType
) -> Scalar:
    """Emit the divisor of a window; ``window`` may be out of range."""
    nest = c.nest
    if include_pad or not slide.is_padded:
        return nest.const(prod(slide.kernel), dtype)
    result = nest.const(1, int32)
    for position, k, size in zip(slide.position(window, (0,) * slide.rank), slide.kernel, sizes, strict=True):
        low = nest.op("max", nest.index(position, int32), nest.const(0, int32))
        high = nest.op("min", nest.index(position + k, int32), nest.const(size, int32))
        result = result * nest.op("max", high - low, nest.const(1, int32))
    return result.cast(dtype)


def _lower_avg(
    c: LowerContext,
    index: tuple[Index, ...],
    x: OperandRef,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    count_include_pad: bool,
) -> Scalar:
    slide = _plain(kernel, stride, padding)
    lead, window = index[: len(index) - slide.rank], index[len(index) - slide.rank :]
    sizes = _sizes(x, slide)

    def element(*at: Index) -> Scalar:
        position = slide.position(window, at)
        return c.load(x, (*lead, *position), guard=inside(position, sizes))

    total = c.nest.reduce("add", 0, x.dtype, kernel, element)
    return total / _count(c, window, slide, sizes, count_include_pad, x.dtype)


def _lower_avg_grad(
    c: LowerContext,
    index: tuple[Index, ...],
    g: OperandRef,
    size: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Pairs,
    count_include_pad: bool,
) -> Scalar:
    """Sum over the windows that contain the element: window ``q - j`` with ``q`` the last one that starts before it."""
    slide = _plain(kernel, stride, padding)
    lead, position = index[: len(index) - slide.rank], index[len(index) - slide.rank :]
    padded = tuple(p + low for p, (low, _) in zip(position, padding, strict=True))

    def share(*back: Index) -> Scalar:
        window = tuple(p // s - j for p, s, j in zip(padded, stride, back, strict=True))
        offset = tuple(p % s + j * s for p, s, j in zip(padded, stride, back, strict=True))
        guard = (*inside(window, _sizes(g, slide)), *inside(offset, kernel))
        gradient = c.load(g, (*lead, *window), guard=guard)
        return gradient / _count(c, window, slide, size, count_include_pad, g.dtype)

    candidates = [-(-k // s) for k, s in zip(kernel, stride, strict=True)]
    return c.nest.reduce("add", 0, g.dtype, candidates, share)


# ---- one dimension after the other


def _dimensions(slide: Sliding, sizes: Ints, op: str) -> list[int]:
    """Return the dimensions to pool one after the other, if this reads at most half as many elements as the windows
    have; else none. It reads far fewer where windows overlap much."""
    counts = slide.output(op, sizes)
    dimensions = [d for d in reversed(range(slide.rank)) if not (is_one(slide.kernel[d]) and is_one(slide.stride[d]))]
    present, reads = list(sizes), 0
    for d in dimensions:
        present[d] = counts[d]
        reads += hint(prod(present) * slide.kernel[d])
    return dimensions if len(dimensions) > 1 and 2 * reads <= hint(prod(counts) * prod(slide.kernel)) else []


def _decompose_max(x: Any, **attrs: Any) -> Any:
    slide = Sliding(**attrs)
    result = None
    for d in _dimensions(slide, x.shape[len(x.shape) - slide.rank :], "max_pool"):
        line = slide.along(d)
        own = {"kernel": line.kernel, "stride": line.stride, "padding": line.padding, "dilation": line.dilation}
        result = max_pool(x if result is None else result, **own)
    return result


def _decompose_avg(x: Any, kernel: Ints, stride: Ints, padding: Pairs, count_include_pad: bool) -> Any:
    slide = _plain(kernel, stride, padding)
    result = None
    for d in _dimensions(slide, x.shape[len(x.shape) - slide.rank :], "avg_pool"):
        line = slide.along(d)
        own = {"kernel": line.kernel, "stride": line.stride, "padding": line.padding}
        result = avg_pool(x if result is None else result, **own, count_include_pad=count_include_pad)
    return result


def _decompose_avg_grad(g: Any, size: Ints, kernel: Ints, stride: Ints, padding: Pairs, count_include_pad: bool) -> Any:
    slide = _plain(kernel, stride, padding)
    result = None
    for d in _dimensions(slide, size, "avg_pool"):
        line, present = slide.along(d), g if result is None else result
        sizes = present.shape[len(present.shape) - slide.rank :]
        own = {"kernel": line.kernel, "stride": line.stride, "padding": line.padding}
        sizes_after = (*sizes[:d], size[d], *sizes[d + 1 :])
        result = avg_pool_grad(present, size=sizes_after, **own, count_include_pad=count_include_pad)
    return result


# ---- samples

_MAX_CASES: list[tuple[Ints, dict[str, Any], Any]] = [
    ((2, 3, 6, 8), {"kernel": (2, 2), "stride": (2, 2)}, np.float32),
    ((1, 2, 7, 9), {"kernel": (3, 2), "stride": (2, 1), "padding": ((1, 1), (0, 1))}, np.float32),
    ((2, 1, 9, 8), {"kernel": (2, 3), "stride": (1, 2), "dilation": (2, 2), "padding": ((1, 0), (2, 1))}, np.float64),
    ((2, 3, 11), {"kernel": (3,), "stride": (2,), "padding": ((1, 2),)}, np.float64),
    ((1, 7, 8), {"kernel": (5, 5), "stride": (1, 2), "padding": ((2, 2), (1, 3))}, np.float32),
    ((1, 2, 5, 7), {"kernel": (1, 2), "stride": (2, 3)}, np.float32),
]


def _max_arrays() -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    random = np.random.default_rng(3)
    for dims, case, dtype in _MAX_CASES:
        rank = len(case["kernel"])
        attrs = {"padding": ((0, 0),) * rank, "dilation": (1,) * rank, **case}
        # Distinct values, far enough apart for finite differences.
        yield (random.permutation(prod(dims)).reshape(dims) / 8 - prod(dims) / 16).astype(dtype), attrs


def _pooled(x: np.ndarray, attrs: dict[str, Any]) -> np.ndarray:
    shape = _max_reference(x, **attrs).shape
    return np.random.default_rng(4).standard_normal(shape).astype(x.dtype)


def _max_samples() -> list[Sample]:
    attrs = {"kernel": (2, 2), "stride": (1, 1), "padding": ((1, 1), (1, 0)), "dilation": (1, 1)}
    integers = np.array([[-9, -3, -3], [-3, 2, 2], [2, -5, -8]], np.int32)
    special = np.array([[1, np.nan, 3], [-np.inf, -np.inf, 0], [-np.inf, -np.inf, -1]], np.float32)
    kinks = [Sample((integers,), attrs, differentiable=False), Sample((special,), attrs, differentiable=False)]
    return [Sample((x,), a) for x, a in _max_arrays()] + kinks


def _max_grad_samples() -> list[Sample]:
    ties = np.zeros((1, 2, 4, 4), np.float32)
    attrs = {"kernel": (3, 3), "stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1)}
    infinite = np.full((1, 3, 3), -np.inf, np.float32)
    result = [Sample((x, _pooled(x, a)), a) for x, a in _max_arrays()]
    return result + [Sample((x, _pooled(x, attrs)), attrs, differentiable=False) for x in (ties, infinite)]


def _max_pick_samples() -> list[Sample]:
    return [Sample((x, np.random.default_rng(5).standard_normal(x.shape).astype(x.dtype)), a) for x, a in _max_arrays()]


_AVG_CASES: list[tuple[Ints, dict[str, Any], Any]] = [
    ((2, 3, 6, 8), {"kernel": (2, 2), "stride": (2, 2)}, np.float32),
    ((1, 2, 7, 9), {"kernel": (3, 2), "stride": (2, 1), "padding": ((1, 1), (0, 1))}, np.float32),
    (
        (1, 2, 7, 9),
        {"kernel": (3, 4), "stride": (2, 3), "padding": ((1, 2), (3, 1)), "count_include_pad": False},
        float,
    ),
    ((2, 3, 11), {"kernel": (3,), "stride": (1,), "padding": ((2, 1),), "count_include_pad": False}, np.float32),
    ((2, 5, 7), {"kernel": (1, 2), "stride": (2, 3)}, np.float64),
]


def _avg_arrays() -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    random = np.random.default_rng(6)
    for dims, case, dtype in _AVG_CASES:
        attrs = {"padding": ((0, 0),) * len(case["kernel"]), "count_include_pad": True, **case}
        yield random.standard_normal(dims).astype(dtype), attrs


def _avg_grad_samples() -> list[Sample]:
    result = []
    for x, attrs in _avg_arrays():
        g = np.random.default_rng(8).standard_normal(_avg_reference(x, **attrs).shape).astype(x.dtype)
        result.append(Sample((g,), {"size": x.shape[-len(attrs["kernel"]) :], **attrs}))
    return result


_X = TensorType(float32, (1, 1, 4, 4))
_G = TensorType(float32, (1, 1, 2, 2))
_AVG = {"kernel": (2, 2), "stride": (2, 2), "padding": ((0, 0), (0, 0))}
_MAX = {**_AVG, "dilation": (1, 1)}
_MAX_ATTRS = [KERNEL, STRIDE, PADDING, DILATION]
_COUNTED = Attr("count_include_pad", "bool", "padding counts as elements of the mean", True, False)
_AVG_ATTRS = [KERNEL, STRIDE, PADDING, _COUNTED]

max_pool = define(
    "max_pool",
    "Maximum over windows that slide over the last dimensions. Padding never wins; NaN does.",
    "x",
    _infer_max,
    attrs=_MAX_ATTRS,
    reference=_max_reference,
    vjp=(lambda g, result, x, **attrs: max_pool_grad(x, g, **attrs),),
    lower=_lower_max,
    decompose=_decompose_max,
    traits=Trait.PURE,
    zero_sign=ZeroSign.KEPT,
    image=ImageRule((Dims.IMAGE,), Dims.IMAGE),
    batch=leading,
    samples=_max_samples,
    error_samples=[
        ErrorSample((_X,), "does not fit an input of 4", {**_MAX, "kernel": (5, 2)}),
        ErrorSample((_X,), "must be smaller than the window", {**_MAX, "padding": ((2, 0), (0, 0))}),
        ErrorSample((_X,), "dilation has 1 entries", {**_MAX, "dilation": (1,)}),
        ErrorSample((_X,), "kernel () does not fit", {"kernel": (), "stride": (), "padding": (), "dilation": ()}),
        ErrorSample((TensorType(bool_, (1, 1, 4, 4)),), "must be numeric", _MAX),
    ],
)

max_pool_grad = define(
    "max_pool_grad",
    "Gradient of max_pool with respect to x: each window's gradient goes to its first maximum.",
    "x g",
    _infer_max_grad,
    attrs=_MAX_ATTRS,
    reference=_max_grad_reference,
    vjp=(None, lambda h, result, x, g, **attrs: max_pool_pick(x, h, **attrs)),
    lower_nest=_lower_max_grad,
    traits=Trait.PURE,
    image=ImageRule((Dims.IMAGE, Dims.IMAGE), Dims.IMAGE),
    batch=leading,
    samples=_max_grad_samples,
    error_samples=[ErrorSample((_X, _X), "the pooled operand is f32[1,1,2,2]", _MAX)],
)

max_pool_pick = define(
    "max_pool_pick",
    "The element of h at each window's first maximum of x: the transpose of max_pool_grad.",
    "x h",
    _infer_max_pick,
    attrs=_MAX_ATTRS,
    reference=_max_pick_reference,
    vjp=(None, lambda g, result, x, h, **attrs: max_pool_grad(x, g, **attrs)),
    lower=_lower_max_pick,
    traits=Trait.PURE,
    image=ImageRule((Dims.IMAGE, Dims.IMAGE), Dims.IMAGE),
    batch=leading,
    samples=_max_pick_samples,
    error_samples=[ErrorSample((_X, _G), "operands must be of one type", _MAX)],
)

avg_pool = define(
    "avg_pool",
    "Mean over windows that slide over the last dimensions; padding adds zeros and may count or not.",
    "x",
    _infer_avg,
    attrs=_AVG_ATTRS,
    reference=_avg_reference,
    vjp=(
        lambda g, result, x, kernel, **attrs: avg_pool_grad(
            g, size=x.shape[len(x.shape) - len(kernel) :], kernel=kernel, **attrs
        ),
    ),
    lower=_lower_avg,
    decompose=_decompose_avg,
    traits=Trait.PURE,
    zero_sign=ZeroSign.HIDDEN,
    image=ImageRule((Dims.IMAGE,), Dims.IMAGE),
    batch=leading,
    samples=lambda: [Sample((x,), attrs) for x, attrs in _avg_arrays()],
    error_samples=[
        ErrorSample((TensorType(int32, (1, 1, 4, 4)),), "must be floating point", _AVG),
        ErrorSample((_X,), "does not fit an input of 4", {**_AVG, "kernel": (2, 5)}),
    ],
)

avg_pool_grad = define(
    "avg_pool_grad",
    "Gradient of avg_pool with respect to its operand, whose spatial size is given.",
    "g",
    _infer_avg_grad,
    attrs=[SIZE, *_AVG_ATTRS],
    reference=_avg_grad_reference,
    vjp=(lambda h, result, g, size, **attrs: avg_pool(h, **attrs),),
    lower=_lower_avg_grad,
    decompose=_decompose_avg_grad,
    traits=Trait.PURE,
    image=ImageRule((Dims.IMAGE,), Dims.IMAGE),
    batch=leading,
    samples=_avg_grad_samples,
    error_samples=[
        ErrorSample((_X,), "the pooled operand is f32[1,1,2,2]", {**_AVG, "size": (4, 4)}),
        ErrorSample((_X,), "size (4,) does not fit", {**_AVG, "size": (4,)}),
    ],
)
