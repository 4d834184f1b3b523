"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

import math
from typing import Any

from graphc.base.dtypes import DType
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.base.sizes.dims import Dims, dim_of, dims_of
from graphc.linalg.checks import need_matrix, need_square
from graphc.linalg.spectra import svdvals
from graphc.linalg.systems import inv_ex
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]

_ORDERS = "'fro', 'nuc', inf, -inf, 1, -1, 2, -2"


def _converted(name: str, x: Any, dtype: DType | None) -> Any:
    need_tensor(name, x)
    converted = x if dtype is None else ew.cast(x, dtype=dtype)
    if converted.dtype.kind not in "fc":
        raise DTypeError(
            f"{name} takes a tensor of floats or complex numbers, got {converted.dtype.name}",
            remedy="pass dtype=float32",
        )
    return converted


def vector_norm(x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Compute the norm of order ``ord`` of the elements along ``dim`` (None: of all elements).

    Infinite orders select the largest or the smallest absolute value; order 0 counts nonzero elements. ``dtype`` is the
    type of the computation.
    """
    values = _converted("vector_norm", x, dtype)
    if isinstance(ord, (str, bool)):
        raise AttributeValueError(f"vector_norm: ord is {ord!r}", remedy="pass a number")
    axes = dims_of(dim, values.ndim)
    if any(values.shape[a] == 0 for a in axes) and (ord < 0 or ord == math.inf):
        raise ShapeError(
            f"vector_norm: order {ord} is undefined without elements, {list(values.shape)}",
            remedy="pass a positive finite order",
        )
    return composite.norm(values, float(ord), dim, keepdim)


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Compute a norm of the matrices along the two dimensions ``dim``.

    ``fro`` is the Frobenius norm, ``nuc`` the sum of the singular values, 2 and -2 the largest and the smallest of
    these. 1 and -1 are the largest and smallest sum of a column's absolute values, inf and -inf of a row's.
    """
    matrices = _converted("matrix_norm", A, dtype)
    if matrices.ndim < 2:
        raise ShapeError(f"matrix_norm takes matrices, got {list(A.shape)}", remedy="pass at least two dimensions")
    if isinstance(dim, int) or len(dim) != 2:
        raise ShapeError(f"matrix_norm: dim {dim!r} must be two dimensions", remedy="pass dim=(-2, -1)")
    rows, columns = (dim_of(d, matrices.ndim) for d in dim)
    if rows == columns:
        raise ShapeError(f"matrix_norm: dim {dim!r} names one dimension twice", remedy="pass dim=(-2, -1)")
    empty = not (matrices.shape[rows] and matrices.shape[columns])
    if ord == "fro" or (empty and ord in ("nuc", 1, 2, math.inf)):
        return composite.norm(matrices, 2.0, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        values = svdvals(matrices.movedim((rows, columns), (-2, -1)))
        norms = composite.total(values, -1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = composite.total(ew.abs(matrices), rows if abs(ord) == 1 else columns, True)
        norms = (sums.amax if ord > 0 else sums.amin)((rows, columns), keepdim=False)
    else:
        raise AttributeValueError(f"matrix_norm: unknown ord {ord!r}", remedy=f"use one of {_ORDERS}")
    if not keepdim:
        return norms
    shape_with_ones = [1 if d in (rows, columns) else s for d, s in enumerate(matrices.shape)]
    return shape.reshape(norms, shape=tuple(shape_with_ones))


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Compute ``vector_norm`` along one dimension, or of all elements without ``ord`` and ``dim``; ``matrix_norm``
    along two dimensions, or of a matrix with ``ord``.

    Example:
        >>> import graphc as gc
        >>> gc.linalg.norm(gc.tensor([3.0, 4.0]))
        tensor(5.)
    """
    need_tensor("norm", A)
    if dim is None and ord is not None:
        if A.ndim not in (1, 2):
            raise ShapeError(f"norm: order {ord!r} of {list(A.shape)}", remedy="pass one or two dimensions, or dim=...")
        dim = (0,) if A.ndim == 1 else (0, 1)
    many = 0 if dim is None or isinstance(dim, int) else len(dim)
    if many > 2:
        raise ShapeError(
            f"norm: dim has {many} dimensions, {dim!r}", remedy="pass one or two, or call linalg.vector_norm"
        )
    if isinstance(ord, str) or (many == 2 and ord is not None):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """Compute the condition number [...] of matrices in the norm ``p`` of ``matrix_norm`` (None: 2, also for matrices
    that are not square). It is infinite for singular matrices, 0 for empty ones."""
    need_matrix("cond", A)
    if not A.numel():
        return A.real.new_zeros(A.shape[:-2])
    if p in (None, 2, -2):
        values = svdvals(A)
        largest, least = values[..., 0], values[..., -1]
        return largest / least if p != -2 else least / largest
    need_square("cond", A)
    condition = matrix_norm(A, p) * matrix_norm(inv_ex(A).inverse, p)
    return ew.where(ew.ne(condition, condition), math.inf, condition)
