"""Functions on tensors under ``graphc.`` that are not methods: joining, einsum, grids, sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, dtype_of, int64
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, ShapeError
from graphc.base.sizes.dims import common_shape, new_shape, numpy_names
from graphc.ops.define import common_type
from graphc.ops.effects.check import check_true
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import exact
from graphc.tensors.methods import algebra, selection, shaping
from graphc.tensors.methods.arithmetic import product
from graphc.tensors.out import with_hints
from graphc.tensors.random import sampling
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Compute the matrix product: vectors are rows on the left and columns on the right; batches broadcast."""
    return product(input, other)


@numpy_names
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenate tensors along a dimension.

    Example:
        >>> import graphc as gc
        >>> gc.cat([gc.zeros(1, 2), gc.ones(1, 2)], dim=1)
        tensor([[0., 0., 1., 1.]])
    """
    return shaping.concatenate(tensors, dim)


concat = concatenate = cat
hstack, vstack, dstack, column_stack = selection.hstack, selection.vstack, selection.dstack, selection.column_stack
row_stack = vstack
block_diag, cartesian_prod = selection.block_diag, selection.cartesian_prod
combinations, vander = selection.combinations, selection.vander
einsum, tensordot, cdist = algebra.einsum, algebra.tensordot, algebra.cdist


def polygamma(n: int, input: Tensor) -> Tensor:
    """Compute the derivative of order ``n`` of ``digamma``."""
    return input.polygamma(n)


@numpy_names
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Stack tensors of one shape along a new dimension.

    Example:
        >>> import graphc as gc
        >>> gc.stack([gc.tensor([1, 2]), gc.tensor([3, 4])], dim=1)
        tensor([[1, 3],
                [2, 4]])
    """
    return shaping.stacked(tensors, dim)


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Select ``input`` where the condition holds, else ``other``. With the condition alone, return the indices where it
    holds (not possible in compiled code).

    Example:
        >>> import graphc as gc
        >>> x = gc.tensor([-1.0, 2.0])
        >>> gc.where(x > 0, x, 0.0)
        tensor([0., 2.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    return ew.where(condition, input, other)


def assert_true(condition: Tensor, message: str = "") -> None:
    """Raise ConditionError with ``message`` unless all elements of a bool tensor are true.

    Eager mode raises at once; compiled code checks in each call, before it writes to parameters and buffers. A plain
    ``assert`` would need a value, which a trace lacks. ``GRAPHC_CHECK_INDICES=off`` compiles without such checks.
    """
    if not isinstance(condition, Tensor) or condition.dtype is not bool_:
        actual = condition.dtype.name if isinstance(condition, Tensor) else type(condition).__name__
        raise ArgumentError(f"assert_true takes a bool tensor, got {actual}", remedy="pass a comparison, such as x > 0")
    check_true(condition, message=message)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Expand the tensors to their common shape."""
    need_tensor("broadcast_tensors", *tensors)
    extents = common_shape(*(t.shape for t in tensors))
    return tuple(t.expand(*extents) for t in tensors)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Create coordinate grids of vectors; ``ij`` puts the first vector along the first dimension, ``xy`` along the
    second.

    Example:
        >>> import graphc as gc
        >>> rows, columns = gc.meshgrid(gc.arange(2), gc.arange(3), indexing="ij")
        >>> columns
        tensor([[0, 1, 2],
                [0, 1, 2]])
    """
    vectors = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)
    if not vectors:
        raise ArgumentError("meshgrid takes at least one vector", remedy="call graphc.meshgrid(x, y)")
    need_tensor("meshgrid", *vectors)
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
    swap = indexing == "xy" and len(vectors) > 1
    ordered = [vectors[1], vectors[0], *vectors[2:]] if swap else vectors
    count = len(ordered)
    extents = [t.numel() for t in ordered]
    grids = [t.reshape(*(-1 if d == i else 1 for d in range(count))).expand(*extents) for i, t in enumerate(ordered)]
    return (grids[1], grids[0], *grids[2:]) if swap else tuple(grids)


def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return input.numel()


def is_floating_point(input: Tensor) -> bool:
    """Return whether the element type is floating point."""
    return input.is_floating_point()


def typename(value: Any) -> str:
    """Return the name of a tensor's element type, or of any other object's class."""
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
    """Find the insertion positions of elements of ``input`` [..., N] in ascending sequences [..., M] (or one vector).

    Positions are before equal elements, or after them with ``right`` or ``side="right"``; i64 [..., N], or i32.
    ``sorter`` is the permutation that sorts an unsorted sequence.

    Example:
        >>> import graphc as gc
        >>> gc.searchsorted(gc.tensor([1, 3, 5]), gc.tensor([0, 3, 4]))
        tensor([0, 1, 2])
    """
    return sorted_sequence.searchsorted(input, out_int32=out_int32, right=right, side=side, sorter=sorter)


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Find the interval between ``boundaries`` (an ascending vector) of each element, as i64 or i32."""
    if len(boundaries.shape) != 1:
        raise ShapeError(f"bucketize: boundaries must be a vector, got {list(boundaries.shape)}")
    return boundaries.searchsorted(input, out_int32=out_int32, right=right)


def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (variance, mean) along ``dim``."""
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
    """Return (standard deviation, mean) along ``dim``."""
    over = None if isinstance(dim, bool) else dim
    return input.std(dim, unbiased, keepdim, correction=correction), input.mean(over, keepdim)


def atleast_1d(*tensors: Any) -> Any:
    """Give a tensor at least one dimension; several tensors, or a list of them, return a tuple."""
    return _at_least(tensors, 1)


def atleast_2d(*tensors: Any) -> Any:
    """Give a tensor at least two dimensions; vectors become rows. See ``atleast_1d``."""
    return _at_least(tensors, 2)


def atleast_3d(*tensors: Any) -> Any:
    """Give a tensor at least three dimensions; see ``atleast_1d``."""
    return _at_least(tensors, 3)


def _at_least(tensors: tuple[Any, ...], rank: int) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return selection.at_least(tensors[0], rank)
    listed = tensors[0] if len(tensors) == 1 else tensors
    if not isinstance(listed, (tuple, list)) or not all(isinstance(t, Tensor) for t in listed):
        raise ArgumentError(f"atleast_{rank}d takes tensors or a list of them", remedy="pass graphc.tensor(...)")
    return tuple(selection.at_least(t, rank) for t in listed)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = int64, device: Any = None) -> Tensor:
    """Return the rows and columns (i64[2, n]) of the lower triangle of a matrix."""
    return selection.triangle_indices(row, col, offset, True, dtype, device)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = int64, device: Any = None) -> Tensor:
    """Return the rows and columns (i64[2, n]) of the upper triangle of a matrix."""
    return selection.triangle_indices(row, col, offset, False, dtype, device)


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """Return the common shape under broadcasting; an int is a shape of one dimension."""
    return common_shape(*shapes)


def result_type(tensor1: Any, tensor2: Any) -> Any:
    """Return the element type of an operation on both arguments."""
    return common_type([tensor1, tensor2], "result_type")


def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is not zero."""
    return bool(input)


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Draw indices with probabilities proportional to the last dimension.

    Without ``replacement`` each index is drawn at most once (the largest of exponential races, Efraimidis and Spirakis
    2006). Raises AttributeValueError for negative or non-finite weights, and for rows without a positive one. Compiled
    code does not check them: a row without a positive weight yields index 0 and up.
    """
    if not input.dtype.is_floating_point or input.ndim not in (1, 2):
        raise ArgumentError("multinomial takes a vector or a matrix of floating-point weights")
    if num_samples < 1:
        raise AttributeValueError(f"multinomial: num_samples is {num_samples}", remedy="draw at least one sample")
    if input.dtype.kind == "h":  # NOTE: sums of f16 and bf16 would lose small weights.
        input = input.float()
    if isinstance(input._data, np.ndarray):
        _check_weights(input._data)
    if not replacement:
        if num_samples > input.shape[-1]:
            raise ArgumentError(f"multinomial: cannot draw {num_samples} of {input.shape[-1]} without replacement")
        race = sampling.uniform(input.shape, input.dtype, generator, input)
        times = ew.div(exact.exact_log(ew.sub(1.0, race)), input)
        return ew.where(ew.gt(input, 0), times, -np.inf).topk(num_samples, -1).indices
    ends = input.cumsum(-1)
    draws = sampling.uniform((*input.shape[:-1], num_samples), input.dtype, generator, input)
    targets = ew.mul(draws, ends.narrow(-1, input.shape[-1] - 1, 1))
    return ends.searchsorted(targets, right=True).clamp(max=input.shape[-1] - 1)


def _check_weights(weights: np.ndarray) -> None:
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise AttributeValueError(
            "multinomial: weights are negative, infinite or NaN", remedy="pass probabilities, such as x.softmax(-1)"
        )
    if not np.all(weights.sum(-1) > 0):
        raise AttributeValueError(
            "multinomial: no weight of a row is positive", remedy="pass at least one positive weight per row"
        )


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Convert positions in a flattened tensor to coordinates, one tensor for each dimension. Raises DTypeError for
    positions that are not integers, AttributeValueError for positions out of range."""
    if indices.dtype.kind not in "iu":
        raise DTypeError(
            f"unravel_index: indices must be integers, got {indices.dtype.name}", remedy="call indices.long()"
        )
    extents = new_shape((shape,))
    indices = indices.to_dtype(int64)
    values = indices._data
    if isinstance(values, np.ndarray) and np.any((values < 0) | (values >= max(math.prod(extents), 1))):
        raise AttributeValueError(f"unravel_index: an index is out of range for shape {list(extents)}")
    return selection.unravelled(indices, extents)


def can_cast(from_: Any, to: Any) -> bool:
    """Return whether results of one element type may be written to tensors of another: the kind may only rise, from
    bool through integers and floating point to complex numbers."""
    rank = {"b": 0, "u": 1, "i": 1, "f": 2, "h": 2, "c": 3}
    return rank[dtype_of(from_).kind] <= rank[dtype_of(to).kind]


__all__ = ["assert_true", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes"]
__all__ += ["broadcast_tensors", "bucketize", "can_cast", "cartesian_prod", "cat", "cdist", "column_stack"]
__all__ += ["combinations", "concat", "concatenate", "dstack", "einsum", "hstack", "is_floating_point", "is_nonzero"]
__all__ += ["matmul", "meshgrid", "multinomial", "numel", "polygamma", "result_type", "row_stack", "searchsorted"]
__all__ += ["stack", "std_mean", "tensordot", "tril_indices", "triu_indices", "typename", "unravel_index", "vander"]
__all__ += ["var_mean", "vstack", "where"]

_WITHOUT = ("assert_true", "broadcast_shapes", "can_cast", "is_floating_point", "is_nonzero", "numel", "typename")
"""Functions that return no tensors."""
globals().update({_name: with_hints(globals()[_name]) for _name in __all__ if _name not in _WITHOUT})
