"""Functions that look for elements, order them, and pick them by their places."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphc.array_api import promotion
from graphc.array_api.array import standard
from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.base.sizes.dims import dim_of
from graphc.ops import elementwise as ew
from graphc.tensors import indexing
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, need_tensor


@standard
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first largest element along an axis (in the flattened array for None), as int64."""
    need_tensor("argmax", x)
    return x.argmax(axis, keepdims)


@standard
def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first smallest element along an axis (in the flattened array for None), as int64."""
    need_tensor("argmin", x)
    return x.argmin(axis, keepdims)


@standard
def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """For each axis the places of the elements that are not zero; needs values. Raises ArgumentError for an array
    without axes."""
    need_tensor("nonzero", x)
    if not x.shape:
        raise ArgumentError("nonzero of an array without axes", remedy="x.reshape(1)")
    return x.nonzero(as_tuple=True)


@standard
def searchsorted(x1: Tensor, x2: Tensor | float, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where elements of ``x2`` go into the ascending vector ``x1``, which ``sorter`` may bring into order: before equal
    elements (``left``) or behind them (``right``)."""
    need_tensor("searchsorted", x1, *([] if sorter is None else [sorter]))
    if side not in ("left", "right"):
        raise AttributeValueError(f"searchsorted: side {side!r} is not known", remedy="'left' or 'right'")
    ordered, wanted = promotion.promoted("searchsorted", x1, x2)
    return (ordered if sorter is None else indexing.take(ordered, sorter)).searchsorted(wanted, side=side)


@standard
def where(condition: Tensor, x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """Elements of ``x1`` where the condition holds, else of ``x2``, as their common type."""
    return ew.where(condition, *promotion.promoted("where", x1, x2))


@standard
def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The entries of an axis that a vector of integers names; negative ones count from the end. Raises ArgumentError
    for None in the place of one of several axes."""
    need_tensor("take", x, indices)
    if axis is None and x.ndim != 1:
        raise ArgumentError(f"take: along which of {x.ndim} axes?", remedy="axis=0")
    return indexing.take(x, (slice(None),) * dim_of(axis or 0, x.ndim) + (indices,))


@standard
def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Element ``i, j`` of the result is element ``indices[i, j], j`` (for axis 0); negative ones count from the end."""
    need_tensor("take_along_axis", x, indices)
    return x.take_along_dim(indices, axis)


# ---- order


@standard
def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The places that bring an axis into order (int64); equal elements stay in theirs."""
    need_tensor("argsort", x)
    return x.argsort(axis, descending)


@standard
def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """In ascending or descending order of an axis; NaN counts as larger than every number."""
    need_tensor("sort", x)
    return x.sort(axis, descending).values


# ---- sets


class UniqueAll(NamedTuple):
    """Distinct elements with all that is known of them."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct elements, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct elements, and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor


@standard
def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements in ascending order, the place of the first of each in the flattened array, which one each
    element of ``x`` is, and counts (int64). Every NaN is one by itself. Needs values."""
    return _distinct(x)


def _distinct(x: Any) -> UniqueAll:
    need_tensor("unique_all", x)
    values = front().values(x, "unique_all(), whose result has a size that depends on values,")
    _, first, inverse, counts = np.unique(
        values.reshape(-1), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    places, own, numbers = [front().constant(np.array(a, np.int64)) for a in (first, inverse, counts)]
    return UniqueAll(indexing.take(x.reshape(x.numel()), places), places, own.reshape(x.shape), numbers)


@standard
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements and their counts; see ``unique_all``."""
    found = _distinct(x)
    return UniqueCounts(found.values, found.counts)


@standard
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and which of them each element is; see ``unique_all``."""
    found = _distinct(x)
    return UniqueInverse(found.values, found.inverse_indices)


@standard
def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements; see ``unique_all``."""
    return _distinct(x).values


@standard
def isin(x1: Tensor | int, x2: Tensor | int, /, *, invert: bool = False) -> Tensor:
    """Whether elements of ``x1`` are among those of ``x2``, or with ``invert`` are not."""
    elements, known = promotion.promoted("isin", x1, x2)
    return elements.isin(known, invert=invert)


__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]
