"""Tensor methods that look at the elements as a sample: the most frequent, quantiles without NaN, histograms."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from graphc.base.dtypes import elements, int64, limits
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.base.sizes.dims import dim_of
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops import reduce, shape
from graphc.ops.index import gather, iota, scatter_add
from graphc.tensors.methods.ordering import Extreme, Ordering, not_empty, shared_by_ties, shares_of, take_along
from graphc.tensors.tensor_base import TensorBase, front

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


class Statistics(TensorBase):
    """What a sample says."""

    def mode(self, dim: int = -1, keepdim: bool = False) -> Extreme:
        """(values, indices) of the most frequent element of a dimension: the smallest of several, where it comes last.

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
        places = iota(shape=self.shape, axis=at)
        hit = ew.logical_and(most, ew.eq(self, smallest))
        indices = reduce.max(ew.where(hit, places, 0), axes=(at,), keepdims=True)
        return _picked(self, indices, at, keepdim)

    def nanmedian(self, dim: int | None = None, keepdim: bool = False) -> Any:
        """The lower median of the elements that are not NaN, or (values, indices) of a dimension; NaN if there are
        none. Gradients are those of ``median``."""
        if dim is None:
            flat = shape.reshape(self, shape=(self.numel(),))
            return shared_by_ties(flat, lambda x: x.nanmedian(0).values) if flat.numel() else flat.median()
        if not self.dtype.is_floating_point:
            return self.median(dim, keepdim)  # type: ignore[attr-defined]
        at = dim_of(dim, self.ndim)
        if not self.shape:
            return Ordering.sort(self, at)  # type: ignore[arg-type]
        order = Ordering.argsort(self, at)  # type: ignore[arg-type]
        there = ew.cast(ew.logical_not(mathematics.isnan(self)), dtype=int64)
        count = reduce.sum(there, axes=(at,), keepdims=True)
        middle = ew.floor_div(ew.maximum(ew.sub(count, 1), 0), 2)
        return _picked(self, take_along(order, middle, at), at, keepdim)

    def histc(self, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
        """How many elements lie in each of ``bins`` equal parts of ``min``..``max``, in the type of this tensor.

        Elements outside are not counted. Equal limits stand for the smallest and the largest element.
        """
        if not self.dtype.is_floating_point:
            raise DTypeError(f"histc counts floating-point elements, got {self.dtype.name}", remedy="tensor.float()")
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
        """(hist, bin_edges): how many elements, or what sum of ``weight``, lie in each of ``bins`` equal parts of
        ``range`` (None: from the smallest to the largest element), or between the ascending edges that ``bins`` is.

        A part has its lower edge, the last one both. With ``density`` divided by widths and by the sum. Raises
        DTypeError, ShapeError, AttributeValueError.
        """
        found, edges = _histogram("histogram", [self], [bins], [range], weight, density)
        return Histogram(found, edges[0])

    def histogramdd(
        self, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """As ``histogram`` of points, the last dimension of this tensor holding their coordinates: counts with one
        dimension each, and the edges of each. ``range`` is flat: the lower and the upper limit of each coordinate."""
        count = self.shape[-1]
        points = [self.select(-1, i).reshape(-1) for i in builtins.range(count)]  # type: ignore[attr-defined]
        kinds = list(bins) if isinstance(bins, (tuple, list)) else [bins] * count
        limits = [range[2 * i : 2 * i + 2] if range else None for i in builtins.range(count)]
        if len(kinds) != count:
            raise ShapeError(f"histogramdd: {len(kinds)} numbers of bins for {count} coordinates", remedy="one each")
        return _histogram("histogramdd", points, kinds, limits, weight, density)

    def nanquantile(
        self, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """As ``quantile`` of the elements that are not NaN; NaN where there are none. Raises DTypeError for
        whole numbers, AttributeValueError."""
        if not self.dtype.is_floating_point:
            raise DTypeError(f"nanquantile takes floating-point elements, got {self.dtype.name}", remedy="x.float()")
        rounding = {"lower": mathematics.floor, "higher": mathematics.ceil, "nearest": mathematics.round}
        known = ("linear", "midpoint", *rounding)
        if interpolation not in known:
            raise AttributeValueError(
                f"nanquantile: interpolation {interpolation!r} is not known", remedy=", ".join(known)
            )
        shares_of(q)
        x: Any = self.reshape(-1) if dim is None or not self.shape else self  # type: ignore[attr-defined]
        at = dim_of(0 if dim is None else dim, x.ndim)
        not_empty(x, (at,), "nanquantile")
        values = Ordering.sort(x, at).values
        there = ew.cast(ew.logical_not(mathematics.isnan(x)), dtype=x.dtype)
        last = ew.sub(reduce.sum(there, axes=(at,), keepdims=True), 1)
        shares: Any = q if isinstance(q, TensorBase) else front().constant(elements(q, x.dtype))
        parts = []
        for share in shares.unbind() if shares.shape else [shares]:
            place = ew.mul(ew.maximum(last, 0), share)
            place = rounding[interpolation](place) if interpolation in rounding else place
            low = mathematics.floor(place)
            weight = ew.mul(0.5, ew.ne(place, low)) if interpolation == "midpoint" else ew.sub(place, low)
            a, b = (take_along(values, ew.cast(i, dtype=int64), at) for i in (low, mathematics.ceil(place)))
            parts.append(ew.where(ew.lt(last, 0), math.nan, a.lerp(b, weight)))
        kept = [p if keepdim else p.squeeze(at) for p in parts]
        if keepdim and (dim is None or not self.shape):
            kept = [p.reshape(*(1,) * self.ndim) for p in kept]
        return kept[0] if not shares.shape else shape.concat(*(p.unsqueeze(0) for p in kept), axis=0)


class Histogram(NamedTuple):
    """What ``histogram`` returns."""

    hist: Any
    bin_edges: Any


def _histogram(
    name: str, points: list[Any], bins: list[Any], limits: list[Any], weight: Any, density: bool
) -> tuple[Any, tuple[Any, ...]]:
    dtype = points[0].dtype
    if dtype.kind != "f":
        raise DTypeError(f"{name} counts floating-point elements, got {dtype.name}", remedy="tensor.float()")
    flat = [shape.reshape(x, shape=(x.numel(),)) for x in points]
    counted = (
        shape.filled(1, dtype, flat[0].shape) if weight is None else shape.reshape(weight, shape=(weight.numel(),))
    )
    if counted.shape != flat[0].shape or counted.dtype is not dtype:
        raise ShapeError(f"{name}: the weight is not of shape and type of the elements", remedy="one number for each")
    place: Any = shape.filled(0, int64, flat[0].shape)
    edges, sizes = [], []
    for x, kind, ends in zip(flat, bins, limits, strict=True):
        at, inside, edge = _in_bins(name, x, kind, ends)
        counted = ew.where(inside, counted, 0)
        place = ew.add(ew.mul(place, edge.numel() - 1), at)
        edges.append(edge)
        sizes.append(edge.numel() - 1)
    found: Any = scatter_add(shape.filled(0, dtype, (math.prod(sizes),)), place, counted, axis=0)
    found = shape.reshape(found, shape=tuple(sizes))
    if density:
        found = ew.div(found, reduce.sum(found, axes=tuple(range(len(sizes)))))
        for i, edge in enumerate(edges):
            widths = shape.reshape(edge.diff(), shape=(sizes[i], *(1,) * (len(sizes) - i - 1)))
            found = ew.div(found, widths)
    return found, tuple(edges)


def _in_bins(name: str, x: Any, bins: Any, limits: Any) -> tuple[Any, Any, Any]:
    """In which part each element lies (0 where in none), whether it lies in one, and the edges."""
    if isinstance(bins, TensorBase):
        edges: Any = bins
        low, high = edges[0], edges[edges.numel() - 1]
        at = ew.sub(edges.searchsorted(x, right=True), 1)
    else:
        if not isinstance(bins, int) or bins < 1 or (limits is not None and not limits[0] <= limits[1]):
            raise AttributeValueError(f"{name}: {bins!r} bins in {limits}", remedy="at least one bin, low <= high")
        low, high = _outer_edges(x, limits)
        each, count = ew.div(ew.sub(high, low), float(bins)), iota(shape=(bins + 1,), axis=0, dtype=x.dtype)
        late = ew.ge(count, (bins + 1) // 2)
        edges = ew.where(late, ew.sub(high, ew.mul(each, ew.sub(bins, count))), ew.add(low, ew.mul(each, count)))
        guess = mathematics.floor(ew.div(ew.sub(x, low), each))
        at = ew.cast(ew.minimum(ew.maximum(ew.where(mathematics.isfinite(guess), guess, 0), 0), bins - 1), dtype=int64)
        # By rounding the guess may be one off.
        at = ew.sub(at, ew.cast(ew.lt(x, gather(edges, at, axis=0)), dtype=int64))
        at = ew.maximum(at, 0)
        at = ew.add(at, ew.cast(ew.ge(x, gather(edges, ew.add(at, 1), axis=0)), dtype=int64))
    inside = ew.logical_and(ew.ge(x, low), ew.le(x, high))
    return ew.where(inside, ew.minimum(at, edges.numel() - 2), 0), inside, edges


def _outer_edges(x: Any, limits: Any) -> tuple[Any, Any]:
    """The limits as tensors; those of the elements where there are none; of equal ones, 0.5 to both sides."""
    if limits is not None:
        low, high = (shape.filled(float(v), x.dtype, ()) for v in limits)
    elif not x.numel():
        low, high = (shape.filled(v, x.dtype, ()) for v in (0.0, 1.0))
    else:
        low, high = (fold(x, axes=(0,)) for fold in (reduce.min, reduce.max))
    equal = ew.eq(low, high)
    return ew.where(equal, ew.sub(low, 0.5), low), ew.where(equal, ew.add(high, 0.5), high)


def _picked(x: Any, indices: Any, at: int, keepdim: bool) -> Extreme:
    """The elements at ``indices``, which has extent 1 along the dimension ``at``."""
    found = Extreme(take_along(x, indices, at), indices)
    return found if keepdim else Extreme(*(t.squeeze(at) for t in found))


def _limits(x: Any, low: float, high: float) -> tuple[Any, Any]:
    """The lower and the upper limit; of equal elements, 1 to both sides."""
    if low != high:
        return low, shape.filled(high, x.dtype, ())
    smallest, largest = (fold(x, axes=(0,)) for fold in (reduce.min, reduce.max))
    equal = ew.eq(smallest, largest)
    return ew.where(equal, ew.sub(smallest, 1), smallest), ew.where(equal, ew.add(largest, 1), largest)
