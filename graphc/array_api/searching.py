"""Functions that search, sort, and select elements by their indices."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphc.array_api import promotion
from graphc.array_api.array import standard
from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.base.sizes.dims import dim_of
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import compaction, indexing
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor


@standard
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the first largest element along an axis (in the flattened array for None), as int64."""
    need_tensor("argmax", x)
    return x.argmax(axis, keepdims)


@standard
def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the first smallest element along an axis (in the flattened array for None), as int64."""
    need_tensor("argmin", x)
    return x.argmin(axis, keepdims)


@standard
def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the indices of nonzero elements, one array for each axis. Not available in compiled code.

    Raises ArgumentError for an array without axes.
    """
    need_tensor("nonzero", x)
    if not x.shape:
        raise ArgumentError("nonzero of an array without axes", remedy="pass x.reshape(1)")
    return x.nonzero(as_tuple=True)


@standard
def searchsorted(x1: Tensor, x2: Tensor | float, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Return the positions at which elements of ``x2`` fit into the ascending vector ``x1``.

    ``sorter`` may sort ``x1``. Positions are before equal elements (``left``) or after them (``right``).
    """
    need_tensor("searchsorted", x1, *([] if sorter is None else [sorter]))
    if side not in ("left", "right"):
        raise AttributeValueError(f"searchsorted: unknown side {side!r}", remedy="pass 'left' or 'right'")
    ordered, values = promotion.promoted("searchsorted", x1, x2)
    return (ordered if sorter is None else indexing.take(ordered, sorter)).searchsorted(values, side=side)


@standard
def where(condition: Tensor, x1: Tensor | float, x2: Tensor | float, /) -> Tensor:
    """Select elements of ``x1`` where the condition holds, else of ``x2``, in their common type."""
    return ew.where(condition, *promotion.promoted("where", x1, x2))


@standard
def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Select the entries of an axis by a vector of integers. Negative ones count from the end.

    Raises ArgumentError for the axis None of an array with several axes.
    """
    need_tensor("take", x, indices)
    if axis is None and x.ndim != 1:
        raise ArgumentError(f"take: along which of {x.ndim} axes?", remedy="pass axis=0")
    return indexing.take(x, (slice(None),) * dim_of(axis or 0, x.ndim) + (indices,))


@standard
def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return element ``indices[i, j], j`` at ``i, j`` (for axis 0). Negative indices count from the end."""
    need_tensor("take_along_axis", x, indices)
    return x.take_along_dim(indices, axis)


# ---- order


@standard
def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort an axis (int64). Equal elements keep their order."""
    need_tensor("argsort", x)
    return x.argsort(axis, descending)


@standard
def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sort an axis in ascending or descending order. NaN counts as larger than every number."""
    need_tensor("sort", x)
    return x.sort(axis, descending).values


# ---- sets


class UniqueAll(NamedTuple):
    """Distinct elements, their first indices, inverse indices and counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct elements and their counts."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct elements, and for each element of the input its index among them."""

    values: Tensor
    inverse_indices: Tensor


@standard
def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the distinct elements in ascending order, with their first indices, inverse indices and counts (int64).

    First indices are those in the flattened array. Inverse indices have the shape of ``x``. Every NaN is distinct.
    """
    return _distinct(x)


def _distinct(x: Any) -> UniqueAll:
    need_tensor("unique_all", x)
    flat = x.reshape(x.numel())
    first, inverse, counts = compaction.distinct(flat, "unique_all()")
    return UniqueAll(indexing.take(flat, first), first, inverse.reshape(x.shape), counts)


@standard
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the distinct elements and their counts. See ``unique_all``."""
    unique = _distinct(x)
    return UniqueCounts(unique.values, unique.counts)


@standard
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the distinct elements, and the index among them of each element. See ``unique_all``."""
    unique = _distinct(x)
    return UniqueInverse(unique.values, unique.inverse_indices)


@standard
def unique_values(x: Tensor, /) -> Tensor:
    """Return the distinct elements. See ``unique_all``."""
    return _distinct(x).values


@standard
def isin(x1: Tensor | int, x2: Tensor | int, /, *, invert: bool = False) -> Tensor:
    """Check whether elements of ``x1`` are elements of ``x2``, or with ``invert`` whether they are not."""
    elements, candidates = promotion.promoted("isin", x1, x2)
    return elements.isin(candidates, invert=invert)


__all__ = ["argmax", "argmin", "argsort", "isin", "nonzero", "searchsorted", "sort", "take", "take_along_axis"]
__all__ += ["unique_all", "unique_counts", "unique_inverse", "unique_values", "where"]
