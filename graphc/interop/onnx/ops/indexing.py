"""Rules of ONNX's Gather and Scatter families, which read and write elements by indices and conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, int64
from graphc.base.errors import AttributeValueError
from graphc.interop.onnx.registry import host, op
from graphc.nn import functional as F
from graphc.tensors import indexing
from graphc.tensors.compaction import distinct, positions
from graphc.tensors.creation import arange, zeros
from graphc.tensors.tensor import Tensor

REDUCTIONS = {"none": "", "add": "sum", "mul": "prod", "min": "amin", "max": "amax"}
"""Names of reductions in graphc by their names in ONNX."""


# ---- gathering


@op("Gather", moves=True)
def gather(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """Select slices of an axis. Negative indices count from its end."""
    return data[(slice(None),) * (axis % data.ndim) + (indices.to("int64"),)]


@host("Gather")
def gather_known(data: np.ndarray, indices: np.ndarray, *, axis: int = 0) -> np.ndarray | None:
    return None if indices.dtype == object else data.take(indices.astype(np.int64, copy=False), axis)


@op("GatherElements")
def gather_elements(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return data.gather(axis, _wrapped(indices, data.shape[axis]))


@host("GatherElements")
def gather_elements_known(data: np.ndarray, indices: np.ndarray, *, axis: int = 0) -> np.ndarray | None:
    return None if indices.dtype == object else np.take_along_axis(data, indices.astype(np.int64), axis)


def _wrapped(indices: Tensor, extent: Any) -> Tensor:
    """Resolve negative indices, which count from the end."""
    return indexing.wrapped(indices.to(int64), extent)


@op("GatherND")
def gather_nd(data: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """Return the slices at the index tuples in the last axis of ``indices``, after the common batch axes."""
    depth = indices.shape[-1]
    outer, inner = tuple(indices.shape[batch_dims:-1]), tuple(data.shape[batch_dims + depth :])
    batch = tuple(data.shape[:batch_dims])
    rows = _flat_indices(indices, tuple(data.shape[batch_dims : batch_dims + depth]))
    spans = math.prod(data.shape[batch_dims : batch_dims + depth])
    flat = data.reshape(math.prod(batch) * spans, *inner)
    if batch_dims:
        first = arange(math.prod(batch)) * spans
        rows = rows.reshape(math.prod(batch), math.prod(outer)) + first.unsqueeze(1)
    return flat[rows.reshape(-1)].reshape(*batch, *outer, *inner)


@host("GatherND")
def gather_nd_known(data: np.ndarray, indices: np.ndarray, *, batch_dims: int = 0) -> np.ndarray | None:
    if batch_dims or indices.dtype == object:
        return None
    return data[tuple(np.moveaxis(indices.astype(np.int64), -1, 0))]


def _flat_indices(indices: Tensor, extents: Sequence[Any]) -> Tensor:
    """Return the row-major flat index of each index tuple, in the shape before the tuples' axis."""
    flat: Any = zeros(tuple(indices.shape[:-1]), dtype=int64)
    for i, extent in enumerate(extents):
        component = indices[..., i].to(int64)
        indexing.require(component, -extent, extent - 1, "index")
        flat = flat * extent + indexing.wrapped(component, extent)
    return flat


# ---- scattering


@op("Scatter", "ScatterElements", since=9)
def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    positions = _wrapped(indices, data.shape[axis])
    how = _reduction(reduction)
    return data.scatter_reduce(axis, positions, updates, how) if how else data.scatter(axis, positions, updates)


def _reduction(name: str) -> str:
    if name not in REDUCTIONS:
        raise AttributeValueError(f"reduction {name!r}", remedy=f"use one of {', '.join(REDUCTIONS)}")
    return REDUCTIONS[name]


@op("ScatterND", since=11)
def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    """Write slices at the index tuples in the last axis of ``indices``, or combine them with the old values."""
    depth = indices.shape[-1]
    outer, inner = tuple(data.shape[:depth]), tuple(data.shape[depth:])
    rows = _flat_indices(indices, outer).reshape(-1)
    flat = data.reshape(math.prod(outer), *inner)
    new = updates.reshape(math.prod(indices.shape[:-1]), *inner)
    how = _reduction(reduction)
    if how:
        wide = rows.reshape(-1, *(1,) * len(inner)).expand(new.shape)
        result = flat.scatter_reduce(0, wide, new, how)
    else:
        result = flat.index_copy(0, rows, new)
    return result.reshape(data.shape)


@host("ScatterND")
def scatter_nd_known(
    data: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, reduction: str = "none"
) -> np.ndarray | None:
    if reduction != "none" or indices.dtype == object:
        return None
    sized = next((a for a in (data, updates) if a.dtype == object), data)
    result = data.astype(sized.dtype)
    result[tuple(np.moveaxis(indices.astype(np.int64), -1, 0))] = updates
    return result


# ---- results whose size depends on values


@op("Compress", since=9)
def compress(input: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    """Select the entries of an axis, or the elements, where the condition holds.

    The condition may be shorter than the axis.
    """
    data = input.reshape(-1) if axis is None else input
    at = 0 if axis is None else axis % data.ndim
    mask = condition.to(bool_)
    if mask.shape[0] < data.shape[at]:
        mask = F.pad(mask, (0, data.shape[at] - mask.shape[0]))
    return data.index_select(at, positions(mask[: data.shape[at]], "Compress")[:, 0])


@op("NonZero")
def nonzero(X: Tensor) -> Tensor:
    return positions(X if X.ndim else X.reshape(1), "NonZero").transpose(0, 1)


host("NonZero")(lambda X: np.stack(np.nonzero(np.atleast_1d(X))))


@op("Unique")
def unique(X: Tensor, *, axis: int | None = None, sorted: int = 1) -> tuple[Any, ...]:
    """Return distinct elements or slices, their first indices, the inverse indices and their counts.

    They are in ascending order, or without ``sorted`` in the order of first occurrence.
    """
    x = X.detach()
    slices = x.reshape(-1) if axis is None else x.movedim(axis, 0)
    first, inverse, counts = distinct(slices, "Unique")
    if not sorted:
        by_first = first.argsort()
        first, counts, inverse = first[by_first], counts[by_first], by_first.argsort()[inverse]
    return slices[first].movedim(0, axis or 0), first, inverse, counts
