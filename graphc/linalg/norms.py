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
from graphc.ops import elementwise as ew
from graphc.ops import shape
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor

_ORDERS = "'fro', 'nuc', inf, -inf, 1, -1, 2, -2"


def _taken(name: str, x: Any, dtype: DType | None) -> Any:
    need_tensor(name, x)
    found = x if dtype is None else ew.cast(x, dtype=dtype)
    if found.dtype.kind not in "fc":
        raise DTypeError(
            f"{name} takes a tensor of floats or complex numbers, got {found.dtype.name}", remedy="dtype=float32"
        )
    return found


def vector_norm(x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of the elements along ``dim`` (None: of all): the root of order ``ord`` of the sum of such powers of
    their absolute values; inf and -inf for the largest and the smallest, 0 for how many are not 0. ``dtype`` is that in
    which it is computed."""
    taken = _taken("vector_norm", x, dtype)
    if isinstance(ord, (str, bool)):
        raise AttributeValueError(f"vector_norm: the order is {ord!r}", remedy="a number")
    axes = dims_of(dim, taken.ndim)
    if any(taken.shape[a] == 0 for a in axes) and (ord < 0 or ord == math.inf):
        raise ShapeError(f"vector_norm: order {ord} of no elements, {list(taken.shape)}", remedy="a positive order")
    return composite.norm(taken, float(ord), dim, keepdim)


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """A norm of the matrices that lie along the two dimensions ``dim``: ``fro`` (Frobenius), ``nuc`` (sum of singular
    values), 2 and -2 (the largest and the smallest of these), 1 and -1 (of the sums of columns), inf and -inf (of the
    sums of rows)."""
    taken = _taken("matrix_norm", A, dtype)
    if taken.ndim < 2:
        raise ShapeError(f"matrix_norm takes matrices, got {list(A.shape)}", remedy="at least two dimensions")
    if isinstance(dim, int) or len(dim) != 2:
        raise ShapeError(f"matrix_norm: dim {dim!r} are not two dimensions", remedy="dim=(-2, -1)")
    rows, columns = (dim_of(d, taken.ndim) for d in dim)
    if rows == columns:
        raise ShapeError(f"matrix_norm: dim {dim!r} names one dimension twice", remedy="dim=(-2, -1)")
    empty = not (taken.shape[rows] and taken.shape[columns])
    if ord == "fro" or (empty and ord in ("nuc", 1, 2, math.inf)):
        return composite.norm(taken, 2.0, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        values = svdvals(taken.movedim((rows, columns), (-2, -1)))
        found = composite.total(values, -1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = composite.total(ew.abs(taken), rows if abs(ord) == 1 else columns, True)
        found = (sums.amax if ord > 0 else sums.amin)((rows, columns), keepdim=False)
    else:
        raise AttributeValueError(f"matrix_norm: {ord!r} is not known", remedy=_ORDERS)
    if not keepdim:
        return found
    kept = [1 if d in (rows, columns) else s for d, s in enumerate(taken.shape)]
    return shape.reshape(found, shape=tuple(kept))


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """``vector_norm`` along one dimension, or of all elements where neither ``ord`` nor ``dim`` are given;
    ``matrix_norm`` along two, or of a matrix for which ``ord`` is given."""
    need_tensor("norm", A)
    if dim is None and ord is not None:
        if A.ndim not in (1, 2):
            raise ShapeError(f"norm: order {ord!r} of {list(A.shape)}", remedy="one or two dimensions, or dim=...")
        dim = (0,) if A.ndim == 1 else (0, 1)
    many = 0 if dim is None or isinstance(dim, int) else len(dim)
    if many > 2:
        raise ShapeError(f"norm: {many} dimensions, {dim!r}", remedy="one or two, or linalg.vector_norm")
    if isinstance(ord, str) or (many == 2 and ord is not None):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number [...] of matrices in the norm ``p`` of ``matrix_norm`` (None: 2, which takes matrices that
    are not square, too); infinite for singular ones, 0 for those without elements."""
    need_matrix("cond", A)
    if not A.numel():
        return A.real.new_zeros(A.shape[:-2])
    if p in (None, 2, -2):
        values = svdvals(A)
        largest, least = values[..., 0], values[..., -1]
        return largest / least if p != -2 else least / largest
    need_square("cond", A)
    found = matrix_norm(A, p) * matrix_norm(inv_ex(A).inverse, p)
    return ew.where(ew.ne(found, found), math.inf, found)
