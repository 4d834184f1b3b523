"""Tensor methods that look at the elements as a sample: most frequent ones, medians without NaN, histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.base.dims import dim_of
from graphc.base.dtypes import int64, limits
from graphc.base.errors import AttributeValueError, DTypeError
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops import reduce, shape
from graphc.ops.index import iota, scatter_add
from graphc.tensors.methods.ordering import Extreme, Ordering, not_empty, shared_by_ties, take_along
from graphc.tensors.tensor_base import TensorBase

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
