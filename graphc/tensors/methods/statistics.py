"""Tensor methods for statistics of samples: mode, quantiles without NaN, histograms."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any

from graphc.base.dtypes import elements, int64, limits
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.base.records import NamedTuple
from graphc.base.sizes.dims import dim_of
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.reduction import reduce
from graphc.ops.selection.index import gather, iota, scatter_add
from graphc.tensors.methods.ordering import Extreme, Ordering, not_empty, shared_by_ties, shares_of, take_along
from graphc.tensors.tensor_base import TensorBase, front

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


class Statistics(TensorBase):
    """Statistics of the elements as a sample."""

    def mode(self, dim: int = -1, keepdim: bool = False) -> Extreme:
        """Return (values, indices) of the most frequent element of a dimension: the smallest of several, at its last
        position.

        Compares all pairs, so its time grows with the square of the dimension.
        """
        at = dim_of(dim, self.ndim)
        if not self.shape:
            return Extreme(ew.mul(self, True), shape.filled(0, int64, ()))
        not_empty(self, (at,), "mode")
        row = shape.reshape(self, shape=(*self.shape[: at + 1], 1, *self.shape[at + 1 :]))
        column = shape.reshape(self, shape=(*self.shape[:at], 1, *self.shape[at:]))
        counts = reduce.sum(ew.cast(ew.eq(row, column), dtype=int64), axes=(at + 1,))
        most = ew.eq(counts, reduce.max(counts, axes=(at,), keepdims=True))
        smallest = reduce.min(ew.where(most, self, limits(self.dtype)[1]), axes=(at,), keepdims=True)
        positions = iota(shape=self.shape, axis=at)
        hit = ew.logical_and(most, ew.eq(self, smallest))
        indices = reduce.max(ew.where(hit, positions, 0), axes=(at,), keepdims=True)
        return _picked(self, indices, at, keepdim)

    def nanmedian(self, dim: int | None = None, keepdim: bool = False) -> Any:
        """Return the lower median of the elements other than NaN, or (values, indices) along a dimension; NaN without
        such elements. Gradients are those of ``median``."""
        if dim is None:
            flat = shape.reshape(self, shape=(self.numel(),))
            return shared_by_ties(flat, lambda x: x.nanmedian(0).values) if flat.numel() else flat.median()
        if not self.dtype.is_floating_point:
            return self.median(dim, keepdim)  # type: ignore[attr-defined]
        at = dim_of(dim, self.ndim)
        if not self.shape:
            return Ordering.sort(self, at)  # type: ignore[arg-type]
        order = Ordering.argsort(self, at)  # type: ignore[arg-type]
        present = ew.cast(ew.logical_not(mathematics.isnan(self)), dtype=int64)
        count = reduce.sum(present, axes=(at,), keepdims=True)
        middle = ew.floor_div(ew.maximum(ew.sub(count, 1), 0), 2)
        return _picked(self, take_along(order, middle, at), at, keepdim)

    def histc(self, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
        """Count the elements in each of ``bins`` equal bins of ``min``..``max``, in the type of this tensor.

        Elements outside are not counted. Equal limits select the smallest and the largest element instead.
        """
        if not self.dtype.is_floating_point:
            raise DTypeError(
                f"histc counts floating-point elements, got {self.dtype.name}", remedy="call tensor.float()"
            )
        if bins < 1 or max < min:
            raise AttributeValueError(f"histc: {bins} bins from {min} to {max}")
        if not self.numel():
            return shape.filled(0, self.dtype, (bins,))
        x = shape.reshape(self, shape=(self.numel(),))
        low, high = _limits(x, min, max)
        position = mathematics.floor(ew.div(ew.mul(ew.sub(x, low), float(bins)), ew.sub(high, low)))
        inside = ew.logical_and(ew.ge(x, low), ew.le(x, high))
        safe = ew.where(inside, ew.minimum(ew.maximum(position, 0), bins - 1), 0)
        counted = ew.cast(inside, dtype=self.dtype)
        return scatter_add(shape.filled(0, self.dtype, (bins,)), ew.cast(safe, dtype=int64), counted, axis=0)

    def histogram(self, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False) -> Histogram:
        """Return (hist, bin_edges): the count, or the sum of ``weight``, of the elements in each bin.

        ``bins`` is a number of equal bins of ``range`` (None: from the smallest to the largest element), or the
        ascending edges. A bin includes its lower edge, the last one both. ``density`` divides by widths and by the
        total. Raises DTypeError, ShapeError, AttributeValueError.
        """
        hist, edges = _histogram("histogram", [self], [bins], [range], weight, density)
        return Histogram(hist, edges[0])

    def histogramdd(
        self, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute the ``histogram`` of points, whose coordinates are the last dimension of this tensor: counts with one
        dimension per coordinate, and the edges of each. ``range`` is flat: the lower and the upper limit of each
        coordinate."""
        count = self.shape[-1]
        points = [self.select(-1, i).reshape(-1) for i in builtins.range(count)]  # type: ignore[attr-defined]
        kinds = list(bins) if isinstance(bins, (tuple, list)) else [bins] * count
        limits = [range[2 * i : 2 * i + 2] if range else None for i in builtins.range(count)]
        if len(kinds) != count:
            raise ShapeError(
                f"histogramdd: {len(kinds)} numbers of bins for {count} coordinates",
                remedy="pass one for each coordinate",
            )
        return _histogram("histogramdd", points, kinds, limits, weight, density)

    def nanquantile(
        self, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """Compute the ``quantile`` of the elements other than NaN; NaN without such elements. Raises DTypeError for
        integers, AttributeValueError."""
        if not self.dtype.is_floating_point:
            raise DTypeError(
                f"nanquantile takes floating-point elements, got {self.dtype.name}", remedy="call x.float()"
            )
        rounding = {"lower": mathematics.floor, "higher": mathematics.ceil, "nearest": mathematics.round}
        interpolations = ("linear", "midpoint", *rounding)
        if interpolation not in interpolations:
            raise AttributeValueError(
                f"nanquantile: unknown interpolation {interpolation!r}",
                remedy=f"use one of {', '.join(interpolations)}",
            )
        shares_of(q)
        x: Any = self.reshape(-1) if dim is None or not self.shape else self  # type: ignore[attr-defined]
        at = dim_of(0 if dim is None else dim, x.ndim)
        not_empty(x, (at,), "nanquantile")
        values = Ordering.sort(x, at).values
        present = ew.cast(ew.logical_not(mathematics.isnan(x)), dtype=x.dtype)
        last = ew.sub(reduce.sum(present, axes=(at,), keepdims=True), 1)
        shares: Any = q if isinstance(q, TensorBase) else front().constant(elements(q, x.dtype))
        quantiles = []
        for share in shares.unbind() if shares.shape else [shares]:
            position = ew.mul(ew.maximum(last, 0), share)
            position = rounding[interpolation](position) if interpolation in rounding else position
            low = mathematics.floor(position)
            weight = ew.mul(0.5, ew.ne(position, low)) if interpolation == "midpoint" else ew.sub(position, low)
            a, b = (take_along(values, ew.cast(i, dtype=int64), at) for i in (low, mathematics.ceil(position)))
            quantiles.append(ew.where(ew.lt(last, 0), math.nan, a.lerp(b, weight)))
        results = [p if keepdim else p.squeeze(at) for p in quantiles]
        if keepdim and (dim is None or not self.shape):
            results = [p.reshape(*(1,) * self.ndim) for p in results]
        return results[0] if not shares.shape else shape.concat(*(p.unsqueeze(0) for p in results), axis=0)


class Histogram(NamedTuple):
    """Result of ``Tensor.histogram``: counts and edges of bins."""

    hist: Any
    bin_edges: Any


def _histogram(
    name: str, points: list[Any], bins: list[Any], limits: list[Any], weight: Any, density: bool
) -> tuple[Any, tuple[Any, ...]]:
    dtype = points[0].dtype
    if dtype.kind != "f":
        raise DTypeError(f"{name} counts floating-point elements, got {dtype.name}", remedy="call tensor.float()")
    flat = [shape.reshape(x, shape=(x.numel(),)) for x in points]
    counted = (
        shape.filled(1, dtype, flat[0].shape) if weight is None else shape.reshape(weight, shape=(weight.numel(),))
    )
    if counted.shape != flat[0].shape or counted.dtype is not dtype:
        raise ShapeError(
            f"{name}: the weight must have the shape and type of the elements",
            remedy="pass one weight for each element",
        )
    flat_bin: Any = shape.filled(0, int64, flat[0].shape)
    edges, sizes = [], []
    for x, kind, ends in zip(flat, bins, limits, strict=True):
        at, inside, edge = _in_bins(name, x, kind, ends)
        counted = ew.where(inside, counted, 0)
        flat_bin = ew.add(ew.mul(flat_bin, edge.numel() - 1), at)
        edges.append(edge)
        sizes.append(edge.numel() - 1)
    hist: Any = scatter_add(shape.filled(0, dtype, (math.prod(sizes),)), flat_bin, counted, axis=0)
    hist = shape.reshape(hist, shape=tuple(sizes))
    if density:
        hist = ew.div(hist, reduce.sum(hist, axes=tuple(range(len(sizes)))))
        for i, edge in enumerate(edges):
            widths = shape.reshape(edge.diff(), shape=(sizes[i], *(1,) * (len(sizes) - i - 1)))
            hist = ew.div(hist, widths)
    return hist, tuple(edges)


def _in_bins(name: str, x: Any, bins: Any, limits: Any) -> tuple[Any, Any, Any]:
    """Return the bin of each element (0 for none), whether it is in any, and the edges."""
    if isinstance(bins, TensorBase):
        edges: Any = bins
        low, high = edges[0], edges[edges.numel() - 1]
        at = ew.sub(edges.searchsorted(x, right=True), 1)
    else:
        if not isinstance(bins, int) or bins < 1 or (limits is not None and not limits[0] <= limits[1]):
            raise AttributeValueError(
                f"{name}: cannot make {bins!r} bins in {limits}", remedy="use at least one bin and low <= high"
            )
        low, high = _outer_edges(x, limits)
        each, count = ew.div(ew.sub(high, low), float(bins)), iota(shape=(bins + 1,), axis=0, dtype=x.dtype)
        late = ew.ge(count, (bins + 1) // 2)
        edges = ew.where(late, ew.sub(high, ew.mul(each, ew.sub(bins, count))), ew.add(low, ew.mul(each, count)))
        guess = mathematics.floor(ew.div(ew.sub(x, low), each))
        at = ew.cast(ew.minimum(ew.maximum(ew.where(mathematics.isfinite(guess), guess, 0), 0), bins - 1), dtype=int64)
        # Rounding may put the guess one off.
        at = ew.sub(at, ew.cast(ew.lt(x, gather(edges, at, axis=0)), dtype=int64))
        at = ew.maximum(at, 0)
        at = ew.add(at, ew.cast(ew.ge(x, gather(edges, ew.add(at, 1), axis=0)), dtype=int64))
    inside = ew.logical_and(ew.ge(x, low), ew.le(x, high))
    return ew.where(inside, ew.minimum(at, edges.numel() - 2), 0), inside, edges


def _outer_edges(x: Any, limits: Any) -> tuple[Any, Any]:
    """Return the limits as tensors, by default the smallest and the largest element; equal ones are extended by 0.5 "
    "to both sides."""
    if limits is not None:
        low, high = (shape.filled(float(v), x.dtype, ()) for v in limits)
    elif not x.numel():
        low, high = (shape.filled(v, x.dtype, ()) for v in (0.0, 1.0))
    else:
        low, high = (fold(x, axes=(0,)) for fold in (reduce.min, reduce.max))
    equal = ew.eq(low, high)
    return ew.where(equal, ew.sub(low, 0.5), low), ew.where(equal, ew.add(high, 0.5), high)


def _picked(x: Any, indices: Any, at: int, keepdim: bool) -> Extreme:
    """Select the elements at ``indices``, which has size 1 along the dimension ``at``."""
    extreme = Extreme(take_along(x, indices, at), indices)
    return extreme if keepdim else Extreme(*(t.squeeze(at) for t in extreme))


def _limits(x: Any, low: float, high: float) -> tuple[Any, Any]:
    """Return the lower and the upper limit; limits of equal elements are extended by 1 to both sides."""
    if low != high:
        return low, shape.filled(high, x.dtype, ())
    smallest, largest = (fold(x, axes=(0,)) for fold in (reduce.min, reduce.max))
    equal = ew.eq(smallest, largest)
    return ew.where(equal, ew.sub(smallest, 1), smallest), ew.where(equal, ew.add(largest, 1), largest)
