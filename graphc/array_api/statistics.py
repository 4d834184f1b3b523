"""Reductions along axes: sums, products, extremes, means, truth; cumulative sums and differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.array_api import promotion
from graphc.array_api.array import standard
from graphc.base.dtypes import uint64
from graphc.base.errors import ArgumentError
from graphc.base.sizes.dims import dim_of, dims_of
from graphc.ops.movement import shape
from graphc.ops.reduction import reduce
from graphc.tensors import composite
from graphc.tensors.methods.shaping import concatenate
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor

Axis = int | tuple[int, ...] | None


def folded_axes(name: str, x: Any, axis: Axis) -> tuple[Any, tuple[int, ...]]:
    """Return the array to reduce and the axes to reduce: all for None.

    ``()`` reduces nothing: the array then has a new axis of size 1 at the end. Raises IndexRangeError.
    """
    need_tensor(name, x)
    if axis == () or not x.shape:
        dims_of(axis, x.ndim)
        return shape.reshape(x, shape=(*x.shape, 1)), (x.ndim,)
    return x, dims_of(axis, x.ndim)


def fold(name: str, function: Callable[..., Any], x: Any, axis: Axis, keepdims: bool) -> Any:
    """Apply ``function(x, axes, keepdims)`` along axes as the standard names them."""
    operand, axes = folded_axes(name, x, axis)
    return function(operand, axes, keepdims and operand is x)


def _truth(function: Any) -> Callable[..., Any]:
    return lambda x, axes, keepdims: function(x._truth(), axes=axes, keepdims=keepdims)


def _extreme(function: Any) -> Callable[..., Any]:
    return lambda x, axes, keepdims: function(x, axes=axes, keepdims=keepdims)


@standard
def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Check whether no element along the axes is zero. True for no elements."""
    return fold("all", _truth(reduce.all), x, axis, keepdims)


@standard
def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Check whether some element along the axes is nonzero. False for no elements."""
    return fold("any", _truth(reduce.any), x, axis, keepdims)


@standard
def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Count the nonzero elements along the axes (int64)."""
    return fold("count_nonzero", lambda x, *options: composite.total(x._truth(), *options), x, axis, keepdims)


@standard
def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the largest element along the axes. Raises ShapeError for no elements."""
    return fold("max", _extreme(reduce.max), x, axis, keepdims)


@standard
def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element along the axes. Raises ShapeError for no elements."""
    return fold("min", _extreme(reduce.min), x, axis, keepdims)


@standard
def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the mean along the axes. Raises DTypeError for integers and bools."""
    return fold("mean", composite.mean, x, axis, keepdims)


@standard
def prod(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product along the axes.

    ``dtype`` None means int64 or uint64 for integers, else the type of ``x``.
    """
    return fold("prod", _summed(reduce.prod, dtype), x, axis, keepdims)


@standard
def sum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum along the axes.

    ``dtype`` None means int64 or uint64 for integers, else the type of ``x``.
    """
    return fold("sum", _summed(reduce.sum, dtype), x, axis, keepdims)


def _summed(function: Any, dtype: Any) -> Callable[..., Any]:
    return lambda x, axes, keepdims: composite.folded(function, x, axes, keepdims, _wide(x, dtype))


def _wide(x: Any, dtype: Any) -> Any:
    """Return the type of the sum: uint64 for unsigned integers, unless ``dtype`` is given."""
    return uint64 if dtype is None and x.dtype.kind == "u" else dtype


@standard
def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation along the axes. ``correction`` is subtracted from the number of elements."""
    return fold("std", lambda x, axes, keep: composite.std(x, axes, correction, keep), x, axis, keepdims)


@standard
def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variance along the axes. ``correction`` is subtracted from the number of elements."""
    return fold("var", lambda x, axes, keep: composite.var(x, axes, correction, keep), x, axis, keepdims)


@standard
def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return cumulative sums along an axis, starting with 0 for ``include_initial``, in the types of ``sum``.

    Raises ArgumentError for the axis None of an array with several axes.
    """
    return _running("cumulative_sum", Tensor.cumsum, 0, x, axis, dtype, include_initial)


@standard
def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return cumulative products along an axis, starting with 1 for ``include_initial``. See ``cumulative_sum``."""
    return _running("cumulative_prod", Tensor.cumprod, 1, x, axis, dtype, include_initial)


def _running(name: str, function: Any, first: int, x: Any, axis: int | None, dtype: Any, initial: bool) -> Any:
    need_tensor(name, x)
    if axis is None and x.ndim != 1:
        raise ArgumentError(f"{name}: along which of {x.ndim} axes?", remedy="pass axis=0")
    at = dim_of(axis or 0, x.ndim)
    cumulated = function(x, at, dtype=_wide(x, dtype))
    if not initial:
        return cumulated
    extents = tuple(1 if d == at else s for d, s in enumerate(x.shape))
    return concatenate([shape.filled(first, cumulated.dtype, extents), cumulated], at)


@standard
def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return differences of neighbours along an axis, ``n`` times. Arrays may be prepended and appended to ``x``."""
    arrays = [p for p in (prepend, x, append) if p is not None]
    need_tensor("diff", *arrays)
    at = dim_of(axis, x.ndim)
    joined = concatenate(promotion.promoted("diff", *arrays), at) if len(arrays) > 1 else x
    return joined.diff(n, at)


__all__ = ["all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod"]
__all__ += ["std", "sum", "var"]
