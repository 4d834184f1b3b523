"""Functions on tensors under ``graphc.`` that are no methods: joining, einsum, grids, sampling."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc import sampling
from graphc.dims import common_shape, numpy_names
from graphc.errors import ArgumentError
from graphc.methods import algebra, selection, shaping
from graphc.methods.arithmetic import product
from graphc.ops import elementwise as ew
from graphc.ops import exact
from graphc.ops.define import common_type
from graphc.tensor import Tensor


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product: vectors are rows on the left and columns on the right; batches broadcast."""
    return product(input, other)


@numpy_names
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Joins tensors along a dimension."""
    return shaping.concatenate(tensors, dim)


concat = concatenate = cat
hstack, vstack, dstack, column_stack = selection.hstack, selection.vstack, selection.dstack, selection.column_stack
row_stack = vstack
block_diag, cartesian_prod = selection.block_diag, selection.cartesian_prod
combinations, vander = selection.combinations, selection.vander
einsum, tensordot, cdist = algebra.einsum, algebra.tensordot, algebra.cdist


def polygamma(n: int, input: Tensor) -> Tensor:
    """The derivative of order ``n`` of ``digamma``."""
    return input.polygamma(n)


@numpy_names
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Joins tensors of one shape along a new dimension."""
    return shaping.stacked(tensors, dim)


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """``input`` where the condition holds, else ``other``; alone, the indices where it holds (which needs values)."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    return ew.where(condition, input, other)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape."""
    extents = common_shape(*(t.shape for t in tensors))
    return tuple(t.expand(*extents) for t in tensors)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids of vectors; ``ij`` puts the first vector along the first dimension, ``xy`` along the second."""
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"indexing must be 'ij' or 'xy', got {indexing!r}")
    swap = indexing == "xy" and len(given) > 1
    ordered = [given[1], given[0], *given[2:]] if swap else given
    count = len(ordered)
    extents = [t.numel() for t in ordered]
    grids = [t.reshape(*(-1 if d == i else 1 for d in range(count))).expand(*extents) for i, t in enumerate(ordered)]
    return (grids[1], grids[0], *grids[2:]) if swap else tuple(grids)


def numel(input: Tensor) -> int:
    """Number of elements."""
    return input.numel()


def is_floating_point(input: Tensor) -> bool:
    """True for f32 and f64."""
    return input.is_floating_point()


def typename(value: Any) -> str:
    """The name of a tensor's element type, or of any other object's class."""
    if isinstance(value, Tensor):
        return value.type()
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def searchsorted(sorted_sequence: Tensor, input: Any, *, right: bool = False, side: str | None = None) -> Tensor:
    """Where elements of ``input`` go into an ascending sequence (last dimension): before equal elements, or behind."""
    return sorted_sequence.searchsorted(input, right=right, side=side)


def bucketize(input: Any, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """Which interval between ``boundaries`` (an ascending vector) each element lies in."""
    return boundaries.searchsorted(input, right=right)


def var_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float = 1
) -> tuple[Tensor, Tensor]:
    """(variance, mean) along ``dim``."""
    over = None if isinstance(dim, bool) else dim
    return input.var(dim, unbiased, keepdim, correction=correction), input.mean(over, keepdim)


def std_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float = 1
) -> tuple[Tensor, Tensor]:
    """(standard deviation, mean) along ``dim``."""
    over = None if isinstance(dim, bool) else dim
    return input.std(dim, unbiased, keepdim, correction=correction), input.mean(over, keepdim)


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of matrices, from left to right."""
    return functools.reduce(product, matrices)


def atleast_1d(input: Tensor) -> Tensor:
    """With at least one dimension."""
    return selection.at_least(input, 1)


def atleast_2d(input: Tensor) -> Tensor:
    """With at least two dimensions: vectors become rows."""
    return selection.at_least(input, 2)


def atleast_3d(input: Tensor) -> Tensor:
    """With at least three dimensions."""
    return selection.at_least(input, 3)


def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Rows and columns (i64[2, n]) of the lower triangle of a matrix."""
    return selection.triangle_indices(row, col, offset, lower=True)


def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Rows and columns (i64[2, n]) of the upper triangle of a matrix."""
    return selection.triangle_indices(row, col, offset, lower=False)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The common shape by the rules of broadcasting."""
    return common_shape(*shapes)


def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The element type of an operation on both."""
    return common_type([tensor1, tensor2], "result_type")


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero."""
    return bool(input)


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Indices drawn with the probabilities (up to a factor) in the last dimension; without ``replacement`` each index
    is drawn at most once (the largest of exponential races, Efraimidis and Spirakis 2006)."""
    if input.dtype.kind != "f" or input.ndim not in (1, 2):
        raise ArgumentError("multinomial takes a vector or a matrix of floating-point weights")
    if not replacement:
        if num_samples > input.shape[-1]:
            raise ArgumentError(f"multinomial: {num_samples} of {input.shape[-1]} cannot be drawn without replacement")
        race = sampling.uniform(input.shape, input.dtype, generator)
        times = ew.div(exact.exact_log(ew.sub(1.0, race)), input)
        return ew.where(ew.gt(input, 0), times, -np.inf).topk(num_samples, -1).indices
    ends = input.cumsum(-1)
    draws = sampling.uniform((*input.shape[:-1], num_samples), input.dtype, generator)
    places = ew.mul(draws, ends.narrow(-1, input.shape[-1] - 1, 1))
    return ends.searchsorted(places, right=True).clamp(max=input.shape[-1] - 1)


__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "bucketize",
    "cartesian_prod",
    "cat",
    "cdist",
    "chain_matmul",
    "column_stack",
    "combinations",
    "concat",
    "concatenate",
    "dstack",
    "einsum",
    "hstack",
    "is_floating_point",
    "is_nonzero",
    "matmul",
    "meshgrid",
    "multinomial",
    "numel",
    "polygamma",
    "result_type",
    "row_stack",
    "searchsorted",
    "stack",
    "std_mean",
    "tensordot",
    "tril_indices",
    "triu_indices",
    "typename",
    "vander",
    "var_mean",
    "vstack",
    "where",
]
