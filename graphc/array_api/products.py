"""Products of matrices and vectors in the main namespace of the standard."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.array_api import promotion
from graphc.array_api.array import broadcast_together, standard
from graphc.base.errors import ShapeError
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise.parts_of_complex import conjugate
from graphc.ops.reduction import reduce
from graphc.tensors.methods import algebra
from graphc.tensors.methods.arithmetic import product
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor


@standard
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the matrix product. Vectors are rows on the left and columns on the right. Batches broadcast."""
    need_tensor("matmul", x1, x2)
    return promotion.apply("matmul", product, x1, x2)


@standard
def matrix_transpose(x: Tensor, /) -> Tensor:
    """Swap the last two axes. Raises ShapeError for fewer axes."""
    need_tensor("matrix_transpose", x)
    if x.ndim < 2:
        raise ShapeError(
            f"matrix_transpose takes matrices, got {list(x.shape)}", remedy="pass an array with at least two axes"
        )
    return x.transpose(-2, -1)


@standard
def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sum products over the last ``axes`` of ``x1`` and the first of ``x2``, or over two lists of axes."""
    need_tensor("tensordot", x1, x2)
    a, b = promotion.promoted("tensordot", x1, x2)
    return algebra.tensordot(a, b, axes)


@standard
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sum products of the conjugates of ``x1`` with ``x2`` along an axis of both, counted from the end.

    Other axes broadcast. Raises ShapeError where the axis differs in size.
    """
    need_tensor("vecdot", x1, x2)
    a, b = promotion.promoted("vecdot", x1, x2)
    if not (-min(a.ndim, b.ndim) <= axis and a.shape[axis] == b.shape[axis]):
        raise ShapeError(f"vecdot: {list(a.shape)} and {list(b.shape)} do not fit along axis {axis}")
    a, b = broadcast_together(a, b)
    result = reduce.sum(ew.mul(conjugate(a), b), axes=(axis % a.ndim,), keepdims=False)
    return result if result.dtype is a.dtype else ew.cast(result, dtype=a.dtype)


__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]
