"""Tensor methods based on order: sorting, running sums and extremes, quantiles, distinct elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import DType, float32, float64, int32, int64, limits
from graphc.base.errors import AttributeValueError, DTypeError, IndexRangeError, ShapeError
from graphc.base.records import NamedTuple
from graphc.base.sizes.dims import Dims, dim_of, dims_of, extent_of
from graphc.ops.effects.state import stop_gradient, straight_through
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.reduction import reduce
from graphc.ops.selection import order
from graphc.ops.selection.index import gather, iota
from graphc.ops.selection.sorting import argsort
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tensors import compaction, composite, indexing
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor_base import TensorBase, front, need_tensor

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


class Extreme(NamedTuple):
    """Elements of a tensor and their indices."""

    values: Any
    indices: Any


class Extremes(NamedTuple):
    """Result of ``Tensor.aminmax``."""

    min: Any
    max: Any


def _chosen(tensors: tuple[Any, ...], is_inverse: bool, is_counts: bool) -> Any:
    """Return the results of ``unique`` that were asked for: one alone, several as a tuple."""
    chosen = (tensors[0], *(tensors[1:2] if is_inverse else ()), *(tensors[2:] if is_counts else ()))
    return chosen if len(chosen) > 1 else chosen[0]


def take_along(x: Any, index: Any, dim: int) -> Any:
    """Gather element ``index[i, j], j`` of ``x`` (for ``dim`` 0) as element ``i, j`` of the result."""
    positions = indexing.along(index, dim, x.shape)
    return gather(shape.reshape(x, shape=(math.prod(x.shape),)), positions, axis=0)


def running(x: Any, dim: int, combine: Callable[[Any, Any], Any], neutral: Any) -> Any:
    """Compute the inclusive scan along ``dim`` with an associative function; step k combines 2**k elements (Hillis and
    Steele, Data Parallel Algorithms, 1986), so that the work is n log n."""
    reach, n = 1, x.shape[dim]
    none = [0] * len(x.shape)
    while reach < n:
        stops = [n - reach if d == dim else s for d, s in enumerate(x.shape)]
        low = [reach if d == dim else 0 for d in range(len(x.shape))]
        earlier = shape.slice(x, starts=none, stops=stops, steps=[1] * len(none))
        x = combine(shape.pad(earlier, low=low, high=none, interior=none, value=neutral), x)
        reach *= 2
    return x


def _log_of_sum(x: Any, y: Any) -> Any:
    """Compute ``logaddexp``; if both are minus infinity, as at the start of a scan, the gradient is that of the
    maximum."""
    top, low = ew.maximum(x, y), ew.minimum(x, y)
    gap = ew.where(ew.eq(top, low), 0.0, ew.sub(low, top))
    return ew.add(top, mathematics.log1p(mathematics.exp(gap)))


def not_empty(x: Any, axes: tuple[int, ...], name: str) -> None:
    """Raise IndexRangeError if a dimension of ``axes`` has no elements."""
    for d in axes:
        if not x.shape[d]:
            raise IndexRangeError(f"{name}: dimension {d} of {list(x.shape)} has no elements")


def shared_by_ties(x: Any, pick: Callable[[Any], Any]) -> Any:
    """Return ``pick(x)``, an element of the vector ``x``; all equal elements share its gradient equally, NaN with
    NaN."""
    if not (x.requires_grad and is_grad_enabled()):
        return pick(x)
    value = pick(stop_gradient(x))
    hit = ew.logical_or(ew.eq(x, value), ew.logical_and(mathematics.isnan(x), mathematics.isnan(value)))
    count = reduce.sum(ew.cast(hit, dtype=x.dtype), axes=(0,))
    mean = ew.div(reduce.sum(ew.where(hit, x, 0), axes=(0,)), count)
    # The mean of equal elements is rounded, and may overflow, so only its gradient is used.
    return straight_through(mean, value)


class Ordering(TensorBase):
    """Sorting, running sums, quantiles."""

    @compiled_when_repeated
    def argsort(self, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
        """Return the indices that sort a dimension; equal elements stay in order."""
        if not self.shape:
            dim_of(dim, 0)
            return shape.filled(0, int64, ())
        return argsort(self, axis=dim_of(dim, self.ndim), descending=descending)

    @compiled_when_repeated
    def sort(self, dim: int = -1, descending: bool = False, stable: bool = False) -> Extreme:
        """Return (values, indices) in ascending or descending order along a dimension; NaN is larger than every
        number.

        Example:
            >>> import graphc as gc
            >>> gc.tensor([3, 1, 2]).sort()
            Extreme(values=tensor([1, 2, 3]), indices=tensor([1, 2, 0]))
        """
        indices = self.argsort(dim, descending)
        if not self.shape:
            return Extreme(ew.mul(self, True), indices)
        return Extreme(take_along(self, indices, dim_of(dim, self.ndim)), indices)

    def msort(self) -> Tensor:
        """Sort along the first dimension."""
        return self.sort(0).values

    @compiled_when_repeated
    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Extreme:
        """Return (values, indices) of the k largest or smallest elements of a dimension, in order.

        Example:
            >>> import graphc as gc
            >>> values, indices = gc.topk(gc.tensor([1.0, 4.0, 2.0]), 2)
            >>> values, indices
            (tensor([4., 2.]), tensor([1, 2]))
        """
        at = dim_of(dim, self.ndim)
        extent = self.shape[at] if self.shape else 1
        if not 0 <= k <= extent:
            raise IndexRangeError(f"topk: k is {k}, the dimension has {extent} elements")
        if not self.shape:
            return self.sort(dim)
        indices = argsort(self, axis=at, descending=largest, count=k)
        return Extreme(take_along(self, indices, at), indices)

    @compiled_when_repeated
    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False) -> Extreme:
        """Return (value, index) of the k-th smallest element of a dimension, counted from 1."""
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
        """Return the lower median of all elements, or (values, indices) along a dimension; NaN if any element is.

        Along a dimension, the element at the index gets the gradient; without one, equal elements share it evenly.
        """
        if dim is None:
            flat = self.reshape(self.numel())  # type: ignore[attr-defined]
            if not flat.shape[0] and self.dtype.is_floating_point:
                return shape.filled(math.nan, self.dtype, ())
            return shared_by_ties(flat, lambda x: x.median(0).values)
        at = dim_of(dim, self.ndim)
        if not self.shape:
            return self.sort(at)
        medians = self.kthvalue((self.shape[at] + 1) // 2, at, keepdim=True)
        if self.dtype.is_floating_point:
            missing = mathematics.isnan(self)
            any_missing = reduce.any(missing, axes=(at,), keepdims=True)
            first = reduce.argmax(ew.cast(missing, dtype=int64), axis=at, keepdims=True)
            indices = ew.where(any_missing, first, medians.indices)
            medians = Extreme(take_along(self, indices, at), indices)
        return medians if keepdim else Extreme(*(t.squeeze(at) for t in medians))

    def quantile(
        self, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """Compute the value below which a fraction ``q`` (a number or a vector) of the elements is; NaN if any element
        is."""
        rounding = {"linear": None, "lower": np.floor, "higher": np.ceil, "nearest": np.rint, "midpoint": None}
        if interpolation not in rounding:
            raise AttributeValueError(
                f"quantile: unknown interpolation {interpolation!r}", remedy=f"use one of {', '.join(rounding)}"
            )
        shares = shares_of(q)
        x: Any = self.reshape(-1) if dim is None or not self.shape else self  # type: ignore[attr-defined]
        at = dim_of(0 if dim is None else dim, x.ndim)
        if not x.shape[at]:
            raise ShapeError("quantile: the tensor has no elements")
        values = x.sort(at).values
        last = values.narrow(at, x.shape[at] - 1, 1)  # NaN if there is one
        if shares is None:
            results = _open_quantiles(values, q.reshape(-1), at, interpolation)
            quantiles = [results.narrow(at, i, 1) for i in range(q.numel())]
        else:
            positions = np.atleast_1d(shares) * (x.shape[at] - 1)
            chosen = rounding[interpolation]
            positions = positions if chosen is None else chosen(positions)
            quantiles = [_quantile(values, float(p), q, i, at, interpolation) for i, p in enumerate(positions)]
        quantiles = [ew.where(mathematics.isnan(last), last, p) for p in quantiles]
        squeezed = [p if keepdim else p.squeeze(at) for p in quantiles]
        if keepdim and (dim is None or not self.shape):
            squeezed = [p.reshape(*(1,) * self.ndim) for p in squeezed]
        return squeezed[0] if not np.ndim(q) else shape.concat(*(p.unsqueeze(0) for p in squeezed), axis=0)

    @compiled_when_repeated
    def cumsum(self, dim: int, *, dtype: DType | None = None) -> Tensor:
        """Compute running sums along ``dim``; integers are summed as i64.

        Example:
            >>> import graphc as gc
            >>> gc.cumsum(gc.tensor([1, 2, 3]), dim=0)
            tensor([1, 3, 6])
        """
        dtype = dtype or (self.dtype if self.dtype.is_differentiable else int64)
        x = self if self.dtype is dtype else ew.cast(self, dtype=dtype)
        at = dim_of(dim, self.ndim)
        return order.cumsum(x, axis=at) if self.shape else ew.mul(x, True)

    @compiled_when_repeated
    def cumprod(self, dim: int, *, dtype: DType | None = None) -> Tensor:
        """Compute running products along ``dim``; integers are multiplied as i64."""
        dtype = dtype or (self.dtype if self.dtype.is_differentiable else int64)
        x: Any = self if self.dtype is dtype else ew.cast(self, dtype=dtype)
        at = dim_of(dim, self.ndim)
        if not self.numel() or not self.shape:
            return ew.mul(x, True)
        # As in PyTorch, products of f32 are formed in f64, where no product of ordinary numbers is lost on the way.
        wide = ew.cast(x, dtype=float64) if x.dtype is float32 else x
        result = running(wide, at, ew.mul, 1)
        return result if wide is x else ew.cast(result, dtype=dtype)

    @compiled_when_repeated
    def logcumsumexp(self, dim: int) -> Tensor:
        """Compute the logarithms of the running sums of exp(x) along ``dim``."""
        at = dim_of(dim, self.ndim)
        if not self.numel() or not self.shape:
            return ew.mul(self, True)
        return running(self, at, _log_of_sum, -math.inf)

    @compiled_when_repeated
    def cummax(self, dim: int) -> Extreme:
        """Return (values, indices) of the largest element so far along ``dim``, the last of equal ones."""
        return _running(self, dim, True)

    @compiled_when_repeated
    def cummin(self, dim: int) -> Extreme:
        """Return (values, indices) of the smallest element so far along ``dim``, the last of equal ones."""
        return _running(self, dim, False)

    @compiled_when_repeated
    def diff(self, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
        """Compute the differences of neighbours along ``dim``, ``n`` times."""
        if n < 0:
            raise AttributeValueError(f"diff: n must not be negative, got {n}")
        at, _ = extent_of(dim, self.shape, "diff")
        if n == 0:
            return ew.mul(self, True)
        pieces = [p for p in (prepend, self, append) if p is not None]
        x: Any = shape.concat(*pieces, axis=at) if len(pieces) > 1 else self
        for _ in range(n):
            extent = x.shape[at]
            if extent == 0:
                break
            high, low = x.narrow(at, 1, extent - 1), x.narrow(at, 0, extent - 1)
            x = ew.logical_xor(high, low) if x.dtype.kind == "b" else ew.sub(high, low)
        return x

    def aminmax(self, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
        """Return (min, max) of all elements or along ``dim``."""
        axes = dims_of(dim, self.ndim)
        not_empty(self, axes, "aminmax")
        return Extremes(reduce.min(self, axes=axes, keepdims=keepdim), reduce.max(self, axes=axes, keepdims=keepdim))

    def nansum(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """Compute the sum of the elements other than NaN."""
        x = ew.where(mathematics.isnan(self), 0, self) if self.dtype.is_differentiable else self
        return composite.total(x, dim, keepdim, dtype)

    def nanmean(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """Compute the mean of the elements other than NaN."""
        present = ew.logical_not(mathematics.isnan(self))
        total = Ordering.nansum(self, dim, keepdim, dtype=dtype)
        return ew.div(total, composite.total(present, dim, keepdim))

    def isin(self, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
        """Return whether elements are among ``test_elements``."""
        if not isinstance(test_elements, TensorBase):
            test_elements = front().constant(np.asarray(test_elements))
        flat = shape.reshape(test_elements, shape=(test_elements.numel(),))
        hit = ew.eq(shape.reshape(self, shape=(*self.shape, 1)), flat)
        is_member = reduce.any(hit, axes=(self.ndim,))
        return ew.logical_not(is_member) if invert else is_member

    # ---- results whose size depends on values

    def unique(
        self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """Return the distinct elements (or slices along ``dim``) in ascending order.

        With ``return_inverse`` and ``return_counts``, return a tuple with the index of each element among them, and
        counts.

        Example:
            >>> import graphc as gc
            >>> gc.unique(gc.tensor([3, 1, 3, 2]))
            tensor([1, 2, 3])
        """
        tensors = compaction.unique(self, "unique()", dim)
        return _chosen(tensors, return_inverse, return_counts)

    def unique_consecutive(
        self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """Return the elements (or slices along ``dim``) that differ from the one before.

        With ``return_inverse`` and ``return_counts``, return a tuple with the index of each element among them, and
        counts.
        """
        tensors = compaction.unique(self, "unique_consecutive()", dim, is_sorted=False)
        return _chosen(tensors, return_inverse, return_counts)

    def bincount(self, weights: Any = None, minlength: int = 0) -> Tensor:
        """Count the occurrences of each number from 0 on in a vector."""
        if weights is not None:
            need_tensor("bincount", weights)
        return compaction.bincount(self, weights, minlength)

    def searchsorted(
        self,
        input: Any,
        *,
        out_int32: bool = False,
        right: bool = False,
        side: str | None = None,
        sorter: Tensor | None = None,
    ) -> Tensor:
        """Find the insertion positions of ``input`` in this ascending sequence (last dimension), before or after equal
        elements; see ``graphc.searchsorted``."""
        values = input if isinstance(input, TensorBase) else front().scalar(input, self.dtype)
        right = _check_search(self, values, right, side, sorter)
        dtype = int32 if out_int32 else int64
        ascending = self if sorter is None else take_along(self, sorter, self.ndim - 1)
        rows = shape.reshape(ascending, shape=(*self.shape[:-1], 1, self.shape[-1]))
        targets = shape.reshape(values, shape=(*values.shape, 1))
        # The position is that of the first larger element; NaN is larger than all, so it goes to the end.
        is_after = ew.gt(rows, targets) if right else ew.ge(rows, targets)
        extent = self.shape[-1]
        if not extent:
            return shape.filled(0, dtype, tuple(values.shape))
        first = ew.where(is_after, iota(shape=(extent,), axis=0, dtype=dtype), extent)
        return reduce.min(first, axes=(len(first.shape) - 1,)).reshape(*values.shape)


def shares_of(q: Any) -> np.ndarray | None:
    """Return the numbers of ``q``; None if they differ between calls."""
    if isinstance(q, TensorBase) and len(q.shape) <= 1 and front().known(q) is None:
        return None
    shares = np.asarray(front().values(q, "quantile") if isinstance(q, TensorBase) else q, np.float64)
    if shares.ndim > 1 or not np.all((shares >= 0) & (shares <= 1)):
        raise AttributeValueError("quantile: q must be a number or a vector of numbers between 0 and 1")
    return shares


def _quantile(values: Any, position: float, q: Any, number: int, at: int, interpolation: str) -> Any:
    """Interpolate sorted values at a fractional position, with a gradient for ``q`` if it needs one."""
    low, high = math.floor(position), math.ceil(position)
    weight: Any = 0.5 if interpolation == "midpoint" and low != high else position - low
    if interpolation == "linear" and getattr(q, "requires_grad", False):
        weight = ew.sub(ew.mul(q.reshape(-1)[number], values.shape[at] - 1), low)
    a, b = values.narrow(at, low, 1), values.narrow(at, high, 1)
    return a if isinstance(weight, float) and low == high else a.lerp(b, weight)


def _open_quantiles(values: Any, q: Any, at: int, interpolation: str) -> Any:
    """Interpolate sorted values along ``at`` at fractions that differ between calls."""
    last = values.shape[at] - 1
    position = ew.mul(ew.cast(q, dtype=values.dtype), last)
    nearest = {"lower": mathematics.floor, "higher": mathematics.ceil, "nearest": mathematics.round}
    if interpolation in nearest:
        position = nearest[interpolation](position)
    low, high = (ew.cast(r(position), dtype=int64) for r in (mathematics.floor, mathematics.ceil))
    for index in (low, high):
        indexing.require(index, 0, last, "quantile: position")
    weight: Any = 0.5 if interpolation == "midpoint" else ew.sub(position, mathematics.floor(position).detach())
    a, b = gather(values, low, axis=at), gather(values, high, axis=at)
    trailing = (1,) * (values.ndim - at - 1)
    share = weight if isinstance(weight, float) else weight.reshape(-1, *trailing)
    return ew.where(ew.eq(low, high).reshape(-1, *trailing), a, a.lerp(b, share))


def _check_search(sequence: Any, values: Any, right: bool, side: str | None, sorter: Any) -> bool:
    """Check the arguments of a search; return whether positions are after equal elements."""
    if side not in (None, "left", "right") or (side == "left" and right):
        raise AttributeValueError(
            f"searchsorted: side {side!r} with right={right}", remedy="pass only side='left' or side='right'"
        )
    if not sequence.shape or (sequence.ndim > 1 and tuple(sequence.shape[:-1]) != tuple(values.shape[:-1])):
        raise ShapeError(
            f"searchsorted: sequences of shape {list(sequence.shape)} for values of shape {list(values.shape)}",
            remedy="pass a vector, or sequences and values that only differ in the last dimension",
        )
    if sorter is not None and tuple(sorter.shape) != tuple(sequence.shape):
        raise ShapeError(
            f"searchsorted: sorter of shape {list(sorter.shape)} for sequences of shape {list(sequence.shape)}"
        )
    if sorter is not None and sorter.dtype != int64:
        raise DTypeError(f"searchsorted: the sorter holds {sorter.dtype.name}", remedy="call sorter.long()")
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
    # NOTE: the index of the running extreme is the last position so far whose element equalled it.
    indices = running(ew.where(hit, iota(shape=x.shape, axis=at), 0), at, ew.maximum, 0)
    return Extreme(take_along(x, indices, at), indices)
