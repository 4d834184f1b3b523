"""Tensor methods in which order counts: sorting, running sums and extremes, quantiles, distinct elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphc.base.dtypes import DType, int32, int64, limits
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, IndexRangeError, ShapeError
from graphc.base.sizes.dims import Dims, dim_of, dims_of, extent_of
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops import order, reduce, shape
from graphc.ops.index import gather, iota
from graphc.ops.sorting import argsort
from graphc.ops.state import stop_gradient, straight_through
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tensors import composite, indexing
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor_base import TensorBase, front, need_tensor

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


class Extreme(NamedTuple):
    """Elements of a tensor, and where they were found."""

    values: Any
    indices: Any


class Extremes(NamedTuple):
    """What ``aminmax`` returns."""

    min: Any
    max: Any


def take_along(x: Any, index: Any, dim: int) -> Any:
    """Element ``i, j`` of the result is element ``index[i, j], j`` of ``x`` (for ``dim`` 0)."""
    places = indexing.along(index, dim, x.shape)
    return gather(shape.reshape(x, shape=(math.prod(x.shape),)), places, axis=0)


def running(x: Any, dim: int, combine: Callable[[Any, Any], Any], neutral: Any) -> Any:
    """The elements up to each one along ``dim``, combined; after step k the last 2**k of them are (Hillis and Steele,
    Data Parallel Algorithms, 1986), so that work grows with n log n."""
    reach, n = 1, x.shape[dim]
    none = [0] * len(x.shape)
    while reach < n:
        stops = [n - reach if d == dim else s for d, s in enumerate(x.shape)]
        low = [reach if d == dim else 0 for d in range(len(x.shape))]
        before = shape.slice(x, starts=none, stops=stops, steps=[1] * len(none))
        x = combine(shape.pad(before, low=low, high=none, interior=none, value=neutral), x)
        reach *= 2
    return x


def _log_of_sum(x: Any, y: Any) -> Any:
    """``logaddexp`` whose gradient is that of the maximum where both are minus infinity, as a running sum starts."""
    top, low = ew.maximum(x, y), ew.minimum(x, y)
    gap = ew.where(ew.eq(top, low), 0.0, ew.sub(low, top))
    return ew.add(top, mathematics.log1p(mathematics.exp(gap)))


def not_empty(x: Any, axes: tuple[int, ...], name: str) -> None:
    """Raises IndexRangeError when there is no element along a dimension of ``axes``."""
    for d in axes:
        if not x.shape[d]:
            raise IndexRangeError(f"{name}: dimension {d} of {list(x.shape)} has no elements")


def shared_by_ties(x: Any, pick: Callable[[Any], Any]) -> Any:
    """``pick(x)``, an element of the vector ``x``, whose gradient goes in equal parts to all equal ones, NaN to NaN."""
    if not (x.requires_grad and is_grad_enabled()):
        return pick(x)
    value = pick(stop_gradient(x))
    hit = ew.logical_or(ew.eq(x, value), ew.logical_and(mathematics.isnan(x), mathematics.isnan(value)))
    count = reduce.sum(ew.cast(hit, dtype=x.dtype), axes=(0,))
    mean = ew.div(reduce.sum(ew.where(hit, x, 0), axes=(0,)), count)
    # The mean of equal elements is rounded, and may overflow on its way.
    return straight_through(mean, value)


class Ordering(TensorBase):
    """Sorting, running sums, quantiles."""

    @compiled_when_repeated
    def argsort(self, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
        """Indices that sort a dimension; equal elements stay in order."""
        if not self.shape:
            dim_of(dim, 0)
            return shape.filled(0, int64, ())
        return argsort(self, axis=dim_of(dim, self.ndim), descending=descending)

    @compiled_when_repeated
    def sort(self, dim: int = -1, descending: bool = False, stable: bool = False) -> Extreme:
        """(values, indices) in ascending or descending order of a dimension; NaN is larger than every number."""
        found = self.argsort(dim, descending)
        if not self.shape:
            return Extreme(ew.mul(self, True), found)
        return Extreme(take_along(self, found, dim_of(dim, self.ndim)), found)

    def msort(self) -> Tensor:
        """Sorted along the first dimension."""
        return self.sort(0).values

    @compiled_when_repeated
    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Extreme:
        """(values, indices) of the k largest or smallest elements of a dimension, in order."""
        at = dim_of(dim, self.ndim)
        extent = self.shape[at] if self.shape else 1
        if not 0 <= k <= extent:
            raise IndexRangeError(f"topk: k is {k}, the dimension has {extent} elements")
        if not self.shape:
            return self.sort(dim)
        found = argsort(self, axis=at, descending=largest, count=k)
        return Extreme(take_along(self, found, at), found)

    @compiled_when_repeated
    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False) -> Extreme:
        """(value, index) of the k-th smallest element of a dimension, counted from 1."""
        at = dim_of(dim, self.ndim)
        extent = self.shape[at] if self.shape else 1
        if not 1 <= k <= extent:
            raise IndexRangeError(f"kthvalue: k is {k}, the dimension has {extent} elements")
        if not self.shape:
            return self.sort(at)
        indices = argsort(self, axis=at, descending=False, count=k).narrow(at, k - 1, 1).contiguous()
        values = take_along(self, indices, at)
        return Extreme(values, indices) if keepdim else Extreme(values.squeeze(at), indices.squeeze(at))

    def median(self, dim: int | None = None, keepdim: bool = False) -> Any:
        """The lower median of all elements, or (values, indices) of a dimension; NaN if there is one.

        Of equal elements, those of a dimension leave the gradient to the one that the index names; all share it evenly
        where there is no dimension.
        """
        if dim is None:
            flat = self.reshape(self.numel())  # type: ignore[attr-defined]
            if not flat.shape[0] and self.dtype.is_floating_point:
                return shape.filled(math.nan, self.dtype, ())
            return shared_by_ties(flat, lambda x: x.median(0).values)
        at = dim_of(dim, self.ndim)
        if not self.shape:
            return self.sort(at)
        found = self.kthvalue((self.shape[at] + 1) // 2, at, keepdim=True)
        if self.dtype.is_floating_point:
            missing = mathematics.isnan(self)
            any_missing = reduce.any(missing, axes=(at,), keepdims=True)
            first = reduce.argmax(ew.cast(missing, dtype=int64), axis=at, keepdims=True)
            indices = ew.where(any_missing, first, found.indices)
            found = Extreme(take_along(self, indices, at), indices)
        return found if keepdim else Extreme(*(t.squeeze(at) for t in found))

    def quantile(
        self, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """The value below which a share ``q`` (a number or a vector) of the elements lies; NaN where one is NaN."""
        rounding = {"linear": None, "lower": np.floor, "higher": np.ceil, "nearest": np.rint, "midpoint": None}
        if interpolation not in rounding:
            raise AttributeValueError(
                f"quantile: interpolation {interpolation!r} is not known", remedy=f"{[*rounding]}"
            )
        shares = shares_of(q)
        x: Any = self.reshape(-1) if dim is None or not self.shape else self  # type: ignore[attr-defined]
        at = dim_of(0 if dim is None else dim, x.ndim)
        if not x.shape[at]:
            raise ShapeError("quantile: the tensor has no elements")
        values = x.sort(at).values
        last = values.narrow(at, x.shape[at] - 1, 1)  # NaN if there is one
        if shares is None:
            found = _open_quantiles(values, q.reshape(-1), at, interpolation)
            parts = [found.narrow(at, i, 1) for i in range(q.numel())]
        else:
            places = np.atleast_1d(shares) * (x.shape[at] - 1)
            chosen = rounding[interpolation]
            places = places if chosen is None else chosen(places)
            parts = [_quantile(values, float(p), q, i, at, interpolation) for i, p in enumerate(places)]
        parts = [ew.where(mathematics.isnan(last), last, p) for p in parts]
        kept = [p if keepdim else p.squeeze(at) for p in parts]
        if keepdim and (dim is None or not self.shape):
            kept = [p.reshape(*(1,) * self.ndim) for p in kept]
        return kept[0] if not np.ndim(q) else shape.concat(*(p.unsqueeze(0) for p in kept), axis=0)

    @compiled_when_repeated
    def cumsum(self, dim: int, *, dtype: DType | None = None) -> Tensor:
        """Running sums along ``dim``; integers are summed as i64."""
        dtype = dtype or (self.dtype if self.dtype.is_differentiable else int64)
        x = self if self.dtype is dtype else ew.cast(self, dtype=dtype)
        at = dim_of(dim, self.ndim)
        return order.cumsum(x, axis=at) if self.shape else ew.mul(x, True)

    @compiled_when_repeated
    def cumprod(self, dim: int, *, dtype: DType | None = None) -> Tensor:
        """Running products along ``dim``; integers are multiplied as i64."""
        dtype = dtype or (self.dtype if self.dtype.is_differentiable else int64)
        x: Any = self if self.dtype is dtype else ew.cast(self, dtype=dtype)
        at = dim_of(dim, self.ndim)
        if not self.numel() or not self.shape:
            return ew.mul(x, True)
        return running(x, at, ew.mul, 1)

    @compiled_when_repeated
    def logcumsumexp(self, dim: int) -> Tensor:
        """Logarithms of the running sums of exp(x) along ``dim``."""
        at = dim_of(dim, self.ndim)
        if not self.numel() or not self.shape:
            return ew.mul(self, True)
        return running(self, at, _log_of_sum, -math.inf)

    @compiled_when_repeated
    def cummax(self, dim: int) -> Extreme:
        """(values, indices) of the largest element so far along ``dim``, the last of equal ones."""
        return _running(self, dim, True)

    @compiled_when_repeated
    def cummin(self, dim: int) -> Extreme:
        """(values, indices) of the smallest element so far along ``dim``, the last of equal ones."""
        return _running(self, dim, False)

    @compiled_when_repeated
    def diff(self, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
        """Differences of neighbours along ``dim``, ``n`` times."""
        if n < 0:
            raise AttributeValueError(f"diff: n must not be negative, got {n}")
        at, _ = extent_of(dim, self.shape, "diff")
        if n == 0:
            return ew.mul(self, True)
        parts = [p for p in (prepend, self, append) if p is not None]
        x: Any = shape.concat(*parts, axis=at) if len(parts) > 1 else self
        for _ in range(n):
            extent = x.shape[at]
            if extent == 0:
                break
            high, low = x.narrow(at, 1, extent - 1), x.narrow(at, 0, extent - 1)
            x = ew.logical_xor(high, low) if x.dtype.kind == "b" else ew.sub(high, low)
        return x

    def aminmax(self, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
        """(min, max) of all elements or along ``dim``."""
        axes = dims_of(dim, self.ndim)
        not_empty(self, axes, "aminmax")
        return Extremes(reduce.min(self, axes=axes, keepdims=keepdim), reduce.max(self, axes=axes, keepdims=keepdim))

    def nansum(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """The sum of the elements that are not NaN."""
        x = ew.where(mathematics.isnan(self), 0, self) if self.dtype.is_differentiable else self
        return composite.total(x, dim, keepdim, dtype)

    def nanmean(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """The mean of the elements that are not NaN."""
        there = ew.logical_not(mathematics.isnan(self))
        total = Ordering.nansum(self, dim, keepdim, dtype=dtype)
        return ew.div(total, composite.total(there, dim, keepdim))

    def isin(self, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
        """Whether elements are among ``test_elements``."""
        if not isinstance(test_elements, TensorBase):
            test_elements = front().constant(np.asarray(test_elements))
        flat = shape.reshape(test_elements, shape=(test_elements.numel(),))
        hit = ew.eq(shape.reshape(self, shape=(*self.shape, 1)), flat)
        found = reduce.any(hit, axes=(self.ndim,))
        return ew.logical_not(found) if invert else found

    # ---- results whose size depends on values

    def unique(
        self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """The distinct elements (or slices along ``dim``) in ascending order; needs values.

        With ``return_inverse`` and ``return_counts`` a tuple with the index of each element among them, and counts.
        """
        values = front().values(self, "unique(), whose result has a size that depends on values,")
        found, inverse, counts = np.unique(values, return_inverse=True, return_counts=True, axis=dim)
        inverse = inverse.reshape(values.shape if dim is None else -1)
        parts = [found, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
        tensors: tuple[Any, ...] = tuple(front().constant(np.array(p, order="C")) for p in parts)
        return tensors if return_inverse or return_counts else tensors[0]

    def unique_consecutive(
        self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """The elements (or slices along ``dim``) without those that equal the one before; needs values.

        With ``return_inverse`` and ``return_counts`` a tuple with the index of each element among them, and counts.
        """
        values = front().values(self, "unique_consecutive(), whose result has a size that depends on values,")
        rows = values.reshape(-1) if dim is None else np.moveaxis(values, dim_of(dim, self.ndim), 0)
        new = np.ones(len(rows), bool)
        new[1:] = (rows[1:] != rows[:-1]).any(axis=tuple(range(1, rows.ndim)))
        found = rows[new] if dim is None else np.moveaxis(rows[new], 0, dim)
        inverse = (np.cumsum(new) - 1).reshape(values.shape if dim is None else -1)
        counts = np.diff(np.append(np.flatnonzero(new), len(rows)))
        parts = [found, *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
        tensors: tuple[Any, ...] = tuple(front().constant(np.array(p, order="C")) for p in parts)
        return tensors if return_inverse or return_counts else tensors[0]

    def bincount(self, weights: Any = None, minlength: int = 0) -> Tensor:
        """How often each number from 0 on occurs in a vector; needs values."""
        values = front().values(self, "bincount(), whose result has a size that depends on values,")
        if values.ndim != 1 or self.dtype.kind not in "iu" or (values.size and values.min() < 0):
            raise ArgumentError("bincount takes a vector of whole numbers that are not negative")
        if weights is not None:
            need_tensor("bincount", weights)
        given = None if weights is None else front().values(weights, "bincount()")
        counts = np.bincount(values, given, minlength)
        return front().constant(counts if given is None or given.dtype.kind != "f" else counts.astype(given.dtype))

    def searchsorted(
        self,
        input: Any,
        *,
        out_int32: bool = False,
        right: bool = False,
        side: str | None = None,
        sorter: Tensor | None = None,
    ) -> Tensor:
        """Where ``input`` goes into this ascending sequence (last dimension): before equal elements, or behind; see
        ``graphc.searchsorted``."""
        values = input if isinstance(input, TensorBase) else front().scalar(input, self.dtype)
        right = _check_search(self, values, right, side, sorter)
        dtype = int32 if out_int32 else int64
        ascending = self if sorter is None else take_along(self, sorter, self.ndim - 1)
        rows = shape.reshape(ascending, shape=(*self.shape[:-1], 1, self.shape[-1]))
        places = shape.reshape(values, shape=(*values.shape, 1))
        # The first element behind which it must not go; NaN, which is behind none, goes to the end.
        behind = ew.gt(rows, places) if right else ew.ge(rows, places)
        extent = self.shape[-1]
        if not extent:
            return shape.filled(0, dtype, tuple(values.shape))
        first = ew.where(behind, iota(shape=(extent,), axis=0, dtype=dtype), extent)
        return reduce.min(first, axes=(len(first.shape) - 1,)).reshape(*values.shape)


def shares_of(q: Any) -> np.ndarray | None:
    """The numbers that are asked for, or None where calls give them."""
    if isinstance(q, TensorBase) and len(q.shape) <= 1 and front().known(q) is None:
        return None
    shares = np.asarray(front().values(q, "quantile") if isinstance(q, TensorBase) else q, np.float64)
    if shares.ndim > 1 or not np.all((shares >= 0) & (shares <= 1)):
        raise AttributeValueError("quantile: q is a number or a vector of numbers between 0 and 1")
    return shares


def _quantile(values: Any, place: float, q: Any, number: int, at: int, interpolation: str) -> Any:
    """The value at a place between sorted values; ``q`` has a gradient where it may have one."""
    low, high = math.floor(place), math.ceil(place)
    weight: Any = 0.5 if interpolation == "midpoint" and low != high else place - low
    if interpolation == "linear" and getattr(q, "requires_grad", False):
        weight = ew.sub(ew.mul(q.reshape(-1)[number], values.shape[at] - 1), low)
    a, b = values.narrow(at, low, 1), values.narrow(at, high, 1)
    return a if isinstance(weight, float) and low == high else a.lerp(b, weight)


def _open_quantiles(values: Any, q: Any, at: int, interpolation: str) -> Any:
    """The values at shares that calls give, along ``at``."""
    last = values.shape[at] - 1
    place = ew.mul(ew.cast(q, dtype=values.dtype), last)
    nearest = {"lower": mathematics.floor, "higher": mathematics.ceil, "nearest": mathematics.round}
    if interpolation in nearest:
        place = nearest[interpolation](place)
    low, high = (ew.cast(r(place), dtype=int64) for r in (mathematics.floor, mathematics.ceil))
    for index in (low, high):
        indexing.require(index, 0, last, "quantile: place")
    weight: Any = 0.5 if interpolation == "midpoint" else ew.sub(place, mathematics.floor(place).detach())
    a, b = gather(values, low, axis=at), gather(values, high, axis=at)
    behind = (1,) * (values.ndim - at - 1)
    share = weight if isinstance(weight, float) else weight.reshape(-1, *behind)
    return ew.where(ew.eq(low, high).reshape(-1, *behind), a, a.lerp(b, share))


def _check_search(sequence: Any, values: Any, right: bool, side: str | None, sorter: Any) -> bool:
    """Whether equal elements lie before the place; raises what does not fit."""
    if side not in (None, "left", "right") or (side == "left" and right):
        raise AttributeValueError(f"searchsorted: side {side!r} with right={right}", remedy="'left' or 'right' alone")
    if not sequence.shape or (sequence.ndim > 1 and tuple(sequence.shape[:-1]) != tuple(values.shape[:-1])):
        raise ShapeError(
            f"searchsorted: sequences {list(sequence.shape)} for values {list(values.shape)}",
            remedy="a vector, or sequences and values that agree but for the last dimension",
        )
    if sorter is not None and tuple(sorter.shape) != tuple(sequence.shape):
        raise ShapeError(f"searchsorted: sorter {list(sorter.shape)} for sequences {list(sequence.shape)}")
    if sorter is not None and sorter.dtype != int64:
        raise DTypeError(f"searchsorted: the sorter holds {sorter.dtype.name}", remedy="sorter.long()")
    return right or side == "right"


def _running(x: Any, dim: int, largest: bool) -> Extreme:
    at = dim_of(dim, x.ndim)
    if not x.shape or not x.numel():
        return Extreme(ew.mul(x, True), shape.filled(0, int64, x.shape))
    low, high = limits(x.dtype)
    best = running(x, at, ew.maximum if largest else ew.minimum, low if largest else high)
    hit = ew.eq(x, best)
    if x.dtype.is_floating_point:
        hit = ew.logical_or(hit, mathematics.isnan(x))
    # NOTE: the last place so far whose element was the best one is where the present best one lies.
    indices = running(ew.where(hit, iota(shape=x.shape, axis=at), 0), at, ew.maximum, 0)
    return Extreme(take_along(x, indices, at), indices)
