"""Operations whose results have as many elements as the values say: nonzero elements, distinct ones, repeated ones.

Eager mode computes them by numpy. In a trace of a call their number is a size that each call reads; elsewhere in a
trace they raise ValueNeededError.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.base.dtypes import float64, int64
from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.base.records import NamedTuple
from graphc.base.sizes.dims import dim_of, same_sizes
from graphc.base.sizes.size import LARGEST
from graphc.ops.effects.check import check_true
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise.complex import view_as_real
from graphc.ops.reduction import reduce
from graphc.ops.selection.index import iota, scatter
from graphc.tensors.tensor_base import TensorBase, front

_COUNTED = "bincount takes a vector of integers of 0 or more"


def positions(mask: Any, title: str) -> Any:
    """Return the indices of nonzero elements, one row each (int64).

    ``title`` names the operation in messages.
    """
    values = front().known(mask)
    if values is not None:
        return front().constant(np.argwhere(values))
    count = front().size(mask.ne(0).sum(), mask.numel(), f"the number of results of {title}")
    return mask.nonzero_static(size=count)


class Distinct(NamedTuple):
    """Distinct slices of a tensor along one dimension: indices into it, and its slices as indices of them."""

    first: Any
    """Index of the first occurrence of each."""
    inverse: Any
    """Index among the distinct ones of each slice."""
    counts: Any


def distinct(slices: Any, title: str, is_sorted: bool = True) -> Distinct:
    """Find the distinct slices along the first dimension, in ascending order.

    Without ``is_sorted`` only slices equal to the one before them are dropped. Each NaN is distinct.
    """
    slices = slices.detach()
    values = front().known(slices)
    if values is not None:
        arrays = _distinct_rows(values.reshape(len(values), math.prod(values.shape[1:])), is_sorted)
        return Distinct(*(front().constant(array) for array in arrays))
    if slices.dtype.is_complex:
        slices = view_as_real(slices)
    count = slices.shape[0]
    rows = shape.reshape(slices, shape=(count, math.prod(slices.shape[1:])))
    indices = order = iota(shape=(count,), axis=0, dtype=int64)
    for column in reversed(range(rows.shape[1] if is_sorted else 0)):
        order = order[rows[order, column].argsort(stable=True)]
    # NOTE: there may be no slice at all, which only calls know: every step keeps the number of slices.
    previous = order[ew.sub(indices, 1).clamp(min=0)]
    is_new = ew.logical_or(reduce.any(ew.ne(rows[order], rows[previous]), axes=(1,)), ew.eq(indices, 0))
    start = positions(is_new, title)[:, 0]
    inverse = scatter(shape.filled(0, int64, (count,)), order, ew.sub(is_new.cumsum(0), 1), axis=0)
    counts = shape.filled(0, int64, start.shape).index_add(0, inverse, shape.filled(1, int64, (count,)))
    return Distinct(order[start], inverse, counts)


def _distinct_rows(rows: np.ndarray, is_sorted: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return first indices, inverse indices and counts of the rows of a matrix."""
    order = np.lexsort(rows.T[::-1]) if is_sorted and rows.shape[1] else np.arange(len(rows))
    ordered = rows[order]
    is_new = np.ones(len(rows), bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = np.cumsum(is_new) - 1
    start = np.flatnonzero(is_new)
    return order[start], inverse, np.diff(np.append(start, len(rows)))


def unique(x: Any, title: str, dim: int | None, is_sorted: bool = True) -> tuple[Any, Any, Any]:
    """Return the distinct elements, or slices along ``dim``; inverse indices; counts. No gradient."""
    x = x.detach()
    slices = shape.reshape(x, shape=(x.numel(),)) if dim is None else x.movedim(dim_of(dim, x.ndim), 0)
    first, inverse, counts = distinct(slices, title, is_sorted)
    if dim is None:
        return slices[first], shape.reshape(inverse, shape=x.shape), counts
    return slices[first].movedim(0, dim).contiguous(), inverse, counts


def repeat_indices(numbers: Any, extent: Any) -> Any:
    """Return the index of each of ``extent`` entries, as often as ``numbers`` says, an integer or one for each."""
    values = front().known(numbers) if isinstance(numbers, TensorBase) else np.asarray(numbers)
    kind, count = (numbers.dtype.kind, numbers.numel()) if values is None else (values.dtype.kind, values.size)
    if not (kind in "iu" and (same_sizes((count,), (1,)) or count == extent)) or (
        values is not None and np.any(values < 0)
    ):
        raise AttributeValueError(
            f"repeat_interleave: repeats must be one int, or {extent} ints", remedy="pass ints of 0 or more"
        )
    if values is not None:
        return front().constant(np.repeat(np.arange(extent), np.broadcast_to(values.reshape(-1), (extent,))))
    tensor: Any = numbers
    check_true(ew.ge(tensor, 0).all(), message="repeat_interleave: a number of repeats is negative")
    repeats = tensor.to(int64).reshape(-1).expand(extent)
    total = front().size(repeats.sum(), LARGEST, "the number of results of repeat_interleave()")
    return repeats.cumsum(0).searchsorted(iota(shape=(total,), axis=0, dtype=int64), right=True)


def bincount(x: Any, weights: Any, least: int) -> Any:
    """Count each number from 0 on in a vector of integers, or add its ``weights``; at least ``least`` results."""
    if x.ndim != 1 or x.dtype.kind not in "iu":
        raise ArgumentError(_COUNTED)
    values, weight_values = front().known(x), None if weights is None else front().known(weights)
    if values is not None and (weights is None or weight_values is not None):
        if values.size and values.min() < 0:
            raise ArgumentError(_COUNTED)
        counts = np.bincount(values, weight_values, least)
        dtype = weight_values.dtype if weight_values is not None and weight_values.dtype.kind == "f" else counts.dtype
        return front().constant(counts.astype(dtype, copy=False))
    check_true(ew.ge(x, 0).all(), message=_COUNTED)
    largest = shape.concat(x.to(int64), shape.filled(least - 1, int64, (1,)), axis=0).max()
    size = front().size(ew.add(largest, 1), LARGEST, "the number of results of bincount()")
    addends = shape.filled(1, int64, x.shape) if weights is None else weights
    addends = addends if addends.dtype.is_floating_point else addends.to(int64 if weights is None else float64)
    return shape.filled(0, addends.dtype, (size,)).index_add(0, x.to(int64), addends)
