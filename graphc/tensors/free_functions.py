"""Functions on tensors under ``graphc.`` that are no methods: joining, einsum, grids, sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, dtype_of, int64
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, ShapeError
from graphc.base.sizes.dims import common_shape, new_shape, numpy_names
from graphc.ops import elementwise as ew
from graphc.ops import exact
from graphc.ops.check import check_true
from graphc.ops.define import common_type
from graphc.tensors import sampling
from graphc.tensors.methods import algebra, selection, shaping
from graphc.tensors.methods.arithmetic import product
from graphc.tensors.out import with_hints
from graphc.tensors.tensor import Tensor


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


def assert_true(condition: Tensor, message: str = "") -> None:
    """Raises ConditionError with ``message`` unless all elements of a bool tensor are true: at once in eager mode, and
    in compiled code in each call, before it has written to parameters and buffers. ``assert`` itself would ask for a
    value, which a trace has not. ``GRAPHC_CHECK_INDICES=off`` leaves such checks out of compiled code."""
    if not isinstance(condition, Tensor) or condition.dtype is not bool_:
        given = condition.dtype.name if isinstance(condition, Tensor) else type(condition).__name__
        raise ArgumentError(f"assert_true takes a bool tensor, got {given}", remedy="a comparison, such as x > 0")
    check_true(condition, message=message)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape."""
    extents = common_shape(*(t.shape for t in tensors))
    return tuple(t.expand(*extents) for t in tensors)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids of vectors; ``ij`` puts the first vector along the first dimension, ``xy`` along the second."""
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)
    if not given:
        raise ArgumentError("meshgrid takes at least one vector", remedy="graphc.meshgrid(x, y)")
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


def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where elements of ``input`` [..., N] go into ascending sequences [..., M] (or one vector): before equal elements,
    or behind with ``right`` or ``side="right"``; i64 [..., N], or i32. ``sorter`` is the order in which a sequence that
    does not ascend does."""
    return sorted_sequence.searchsorted(input, out_int32=out_int32, right=right, side=side, sorter=sorter)


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Which interval between ``boundaries`` (an ascending vector) each element lies in (i64, or i32)."""
    if len(boundaries.shape) != 1:
        raise ShapeError(f"bucketize: boundaries are a vector, got {list(boundaries.shape)}")
    return boundaries.searchsorted(input, out_int32=out_int32, right=right)


def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """(variance, mean) along ``dim``."""
    over = None if isinstance(dim, bool) else dim
    return input.var(dim, unbiased, keepdim, correction=correction), input.mean(over, keepdim)


def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """(standard deviation, mean) along ``dim``."""
    over = None if isinstance(dim, bool) else dim
    return input.std(dim, unbiased, keepdim, correction=correction), input.mean(over, keepdim)


def atleast_1d(*tensors: Any) -> Any:
    """With at least one dimension; several tensors, or a list of them, give a tuple."""
    return _at_least(tensors, 1)


def atleast_2d(*tensors: Any) -> Any:
    """With at least two dimensions: vectors become rows; see ``atleast_1d``."""
    return _at_least(tensors, 2)


def atleast_3d(*tensors: Any) -> Any:
    """With at least three dimensions; see ``atleast_1d``."""
    return _at_least(tensors, 3)


def _at_least(tensors: tuple[Any, ...], rank: int) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return selection.at_least(tensors[0], rank)
    given = tensors[0] if len(tensors) == 1 else tensors
    if not isinstance(given, (tuple, list)) or not all(isinstance(t, Tensor) for t in given):
        raise ArgumentError(f"atleast_{rank}d takes tensors or a list of them", remedy="graphc.tensor(...)")
    return tuple(selection.at_least(t, rank) for t in given)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = int64, device: Any = None) -> Tensor:
    """Rows and columns (i64[2, n]) of the lower triangle of a matrix."""
    return selection.triangle_indices(row, col, offset, True, dtype, device)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = int64, device: Any = None) -> Tensor:
    """Rows and columns (i64[2, n]) of the upper triangle of a matrix."""
    return selection.triangle_indices(row, col, offset, False, dtype, device)


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The common shape by the rules of broadcasting; a number is one dimension."""
    return common_shape(*shapes)


def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The element type of an operation on both."""
    return common_type([tensor1, tensor2], "result_type")


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero."""
    return bool(input)


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Indices drawn with the probabilities (up to a factor) in the last dimension; without ``replacement`` each index
    is drawn at most once (the largest of exponential races, Efraimidis and Spirakis 2006).

    Raises AttributeValueError for weights that are negative or not finite, and for rows without a positive one. In
    compiled code the weights have no values to look at: there a row without a positive weight gives index 0 and up.
    """
    if not input.dtype.is_floating_point or input.ndim not in (1, 2):
        raise ArgumentError("multinomial takes a vector or a matrix of floating-point weights")
    if num_samples < 1:
        raise AttributeValueError(f"multinomial: {num_samples} samples", remedy="at least one")
    if input.dtype.kind == "h":  # NOTE: sums of f16 and bf16 would lose small weights.
        input = input.float()
    if isinstance(input._data, np.ndarray):
        _check_weights(input._data)
    if not replacement:
        if num_samples > input.shape[-1]:
            raise ArgumentError(f"multinomial: {num_samples} of {input.shape[-1]} cannot be drawn without replacement")
        race = sampling.uniform(input.shape, input.dtype, generator, input)
        times = ew.div(exact.exact_log(ew.sub(1.0, race)), input)
        return ew.where(ew.gt(input, 0), times, -np.inf).topk(num_samples, -1).indices
    ends = input.cumsum(-1)
    draws = sampling.uniform((*input.shape[:-1], num_samples), input.dtype, generator, input)
    places = ew.mul(draws, ends.narrow(-1, input.shape[-1] - 1, 1))
    return ends.searchsorted(places, right=True).clamp(max=input.shape[-1] - 1)


def _check_weights(weights: np.ndarray) -> None:
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise AttributeValueError(
            "multinomial: weights are negative, infinite or NaN", remedy="probabilities, such as x.softmax(-1)"
        )
    if not np.all(weights.sum(-1) > 0):
        raise AttributeValueError(
            "multinomial: no weight of a row is positive", remedy="at least one positive weight per row"
        )


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates of positions in a flattened tensor of a shape, one tensor for each dimension. Raises DTypeError,
    AttributeValueError."""
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"unravel_index: positions are whole numbers, got {indices.dtype.name}", remedy="x.long()")
    extents = new_shape((shape,))
    indices = indices.to_dtype(int64)
    values = indices._data
    if isinstance(values, np.ndarray) and np.any((values < 0) | (values >= max(math.prod(extents), 1))):
        raise AttributeValueError(f"unravel_index: a position is none of a tensor of shape {list(extents)}")
    return selection.unravelled(indices, extents)


def can_cast(from_: Any, to: Any) -> bool:
    """Whether a result of one element type may be written to a tensor of another one: the kind may only go up, from
    bool over whole numbers and floating point to complex numbers."""
    rank = {"b": 0, "u": 1, "i": 1, "f": 2, "h": 2, "c": 3}
    return rank[dtype_of(from_).kind] <= rank[dtype_of(to).kind]


__all__ = [
    "assert_true",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "bucketize",
    "can_cast",
    "cartesian_prod",
    "cat",
    "cdist",
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
    "unravel_index",
    "vander",
    "var_mean",
    "vstack",
    "where",
]

_WITHOUT = ("assert_true", "broadcast_shapes", "can_cast", "is_floating_point", "is_nonzero", "numel", "typename")
"""What gives no tensors."""
globals().update({_name: with_hints(globals()[_name]) for _name in __all__ if _name not in _WITHOUT})
