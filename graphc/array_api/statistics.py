"""Functions that fold axes: sums, products, extremes, means, truth; running sums and differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.array_api import promotion
from graphc.array_api.array import standard
from graphc.base.dtypes import uint64
from graphc.base.errors import ArgumentError
from graphc.base.sizes.dims import dim_of, dims_of
from graphc.ops import reduce, shape
from graphc.tensors import composite
from graphc.tensors.methods.shaping import concatenate
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor

Axis = int | tuple[int, ...] | None


def folded_axes(name: str, x: Any, axis: Axis) -> tuple[Any, tuple[int, ...]]:
    """What is folded, and along which of its axes: all for None; for ``()``, which folds nothing, a new one of size 1
    at the end. Raises IndexRangeError."""
    need_tensor(name, x)
    if axis == () or not x.shape:
        dims_of(axis, x.ndim)
        return shape.reshape(x, shape=(*x.shape, 1)), (x.ndim,)
    return x, dims_of(axis, x.ndim)


def fold(name: str, function: Callable[..., Any], x: Any, axis: Axis, keepdims: bool) -> Any:
    """``function(x, axes, keepdims)`` along axes as the standard names them."""
    given, axes = folded_axes(name, x, axis)
    return function(given, axes, keepdims and given is x)


def _truth(function: Any) -> Callable[..., Any]:
    return lambda x, axes, keepdims: function(x._truth(), axes=axes, keepdims=keepdims)


def _extreme(function: Any) -> Callable[..., Any]:
    return lambda x, axes, keepdims: function(x, axes=axes, keepdims=keepdims)


@standard
def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether no element along the axes is zero; true where there is none."""
    return fold("all", _truth(reduce.all), x, axis, keepdims)


@standard
def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether some element along the axes is not zero; false where there is none."""
    return fold("any", _truth(reduce.any), x, axis, keepdims)


@standard
def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """How many elements along the axes are not zero (int64)."""
    return fold("count_nonzero", lambda *given: composite.total(given[0]._truth(), *given[1:]), x, axis, keepdims)


@standard
def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element along the axes; raises ShapeError where there is none."""
    return fold("max", _extreme(reduce.max), x, axis, keepdims)


@standard
def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element along the axes; raises ShapeError where there is none."""
    return fold("min", _extreme(reduce.min), x, axis, keepdims)


@standard
def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean along the axes; raises DTypeError for a type that is not floating point."""
    return fold("mean", composite.mean, x, axis, keepdims)


@standard
def prod(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product along the axes, in ``dtype``: None for int64 or uint64 for integers, else the type of ``x``."""
    return fold("prod", _summed(reduce.prod, dtype), x, axis, keepdims)


@standard
def sum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum along the axes, in ``dtype``: None for int64 or uint64 for integers, else the type of ``x``."""
    return fold("sum", _summed(reduce.sum, dtype), x, axis, keepdims)


def _summed(function: Any, dtype: Any) -> Callable[..., Any]:
    return lambda x, axes, keepdims: composite.folded(function, x, axes, keepdims, _wide(x, dtype))


def _wide(x: Any, dtype: Any) -> Any:
    """What is added up in: unsigned integers in uint64, where nothing is asked for."""
    return uint64 if dtype is None and x.dtype.kind == "u" else dtype


@standard
def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation along the axes; ``correction`` is subtracted from the number of elements."""
    return fold("std", lambda x, axes, kept: composite.std(x, axes, correction, kept), x, axis, keepdims)


@standard
def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance along the axes; ``correction`` is subtracted from the number of elements."""
    return fold("var", lambda x, axes, kept: composite.var(x, axes, correction, kept), x, axis, keepdims)


@standard
def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Sums of the elements up to each one along an axis, before them 0 where ``include_initial``; types as in ``sum``.

    Raises ArgumentError for None in the place of one of several axes."""
    return _running("cumulative_sum", Tensor.cumsum, 0, x, axis, dtype, include_initial)


@standard
def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Products of the elements up to each one along an axis, before them 1 where ``include_initial``; else as
    ``cumulative_sum``."""
    return _running("cumulative_prod", Tensor.cumprod, 1, x, axis, dtype, include_initial)


def _running(name: str, function: Any, first: int, x: Any, axis: int | None, dtype: Any, initial: bool) -> Any:
    need_tensor(name, x)
    if axis is None and x.ndim != 1:
        raise ArgumentError(f"{name}: along which of {x.ndim} axes?", remedy="axis=0")
    at = dim_of(axis or 0, x.ndim)
    found = function(x, at, dtype=_wide(x, dtype))
    if not initial:
        return found
    extents = tuple(1 if d == at else s for d, s in enumerate(x.shape))
    return concatenate([shape.filled(first, found.dtype, extents), found], at)


@standard
def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Differences of neighbours along an axis, ``n`` times, of ``x`` with arrays before and behind it."""
    parts = [p for p in (prepend, x, append) if p is not None]
    need_tensor("diff", *parts)
    at = dim_of(axis, x.ndim)
    joined = concatenate(promotion.promoted("diff", *parts), at) if len(parts) > 1 else x
    return joined.diff(n, at)


__all__ = [
    "all",
    "any",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]
