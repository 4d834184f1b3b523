"""The extension of the array API standard for linear algebra, without what needs complex numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from graphc.array_api import decompositions as factors
from graphc.array_api import promotion
from graphc.array_api.array import broadcast_together, standard
from graphc.array_api.products import matmul, matrix_transpose, tensordot, vecdot
from graphc.array_api.statistics import Axis, fold
from graphc.base.dtypes import dtype_of
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.ops import elementwise as ew
from graphc.ops import reduce, shape
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor


class EighResult(NamedTuple):
    """Of a symmetric matrix."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """An orthogonal and an upper triangular factor."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """Of a determinant."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """Singular vectors and values; those on the right are rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@standard
def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower triangular L of a symmetric positive definite matrix L @ L.T (``upper``: its transpose)."""
    (found,) = factors.apply(factors.CHOLESKY, factors.need_square("cholesky", x))
    return found.mT if upper else found


@standard
def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector product along an axis of size 3; the others broadcast. Raises ShapeError."""
    need_tensor("cross", x1, x2)
    a, b = promotion.promoted("cross", x1, x2)
    if not -min(a.ndim, b.ndim) <= axis < min(a.ndim, b.ndim) or a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ShapeError(f"cross takes axes of size 3, got {list(a.shape)} and {list(b.shape)} along axis {axis}")
    a, b = broadcast_together(a, b)
    return a.cross(b, axis)


@standard
def det(x: Tensor, /) -> Tensor:
    """The determinant."""
    return factors.apply(factors.DETERMINANT, factors.need_square("det", x))[0]


@standard
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices, ``offset`` above the middle one."""
    return _matrix("diagonal", x).diagonal(offset, -2, -1)


@standard
def eigh(x: Tensor, /) -> EighResult:
    """Ascending eigenvalues and, as columns, eigenvectors of a symmetric matrix; its lower triangle is read."""
    return EighResult(*factors.apply(factors.EIGEN, factors.need_square("eigh", x)))


@standard
def eigvalsh(x: Tensor, /) -> Tensor:
    """The ascending eigenvalues of a symmetric matrix."""
    return factors.apply(factors.EIGEN, factors.need_square("eigvalsh", x))[0]


@standard
def inv(x: Tensor, /) -> Tensor:
    """The inverse; raises AttributeValueError for a singular matrix."""
    return factors.apply(factors.INVERSE, factors.need_square("inv", x))[0]


@standard
def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices: ``fro``, ``nuc`` (sum of singular values), 2 and -2 (the extreme ones), 1 and -1 (sums of
    columns), infinity and minus infinity (sums of rows)."""
    _matrix("matrix_norm", x)
    if ord == "fro":
        return composite.norm(x, 2.0, (-2, -1), keepdims)
    if ord in ("nuc", 2, -2):
        values = factors.apply(factors.SINGULAR, x)[1]
        found = composite.total(values, -1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = composite.total(ew.abs(x), -2 if abs(ord) == 1 else -1)
        found = sums.amax(-1) if ord > 0 else sums.amin(-1)
    else:
        raise AttributeValueError(f"matrix_norm: {ord!r} is not known", remedy="'fro', 'nuc', 1, 2, inf, -1, -2, -inf")
    return shape.reshape(found, shape=(*found.shape, 1, 1)) if keepdims else found


@standard
def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The product of ``n`` square matrices; of inverses where ``n`` is negative."""
    factors.need_square("matrix_power", x)
    base = x if n >= 0 else factors.apply(factors.INVERSE, x)[0]
    identity = ew.cast(shape.broadcast_to(_identity(x), shape=x.shape), dtype=x.dtype)
    found, left = identity, abs(n)
    while left:
        found = found @ base if left & 1 else found
        base = base @ base if left > 1 else base
        left >>= 1
    return found


def _identity(x: Any) -> Any:
    return ew.ne(x.new_ones(x.shape[-2:]).tril().triu(), 0)


@standard
def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are larger than ``rtol`` times the largest (None: the precision times the size)."""
    _matrix("matrix_rank", x)
    values = factors.apply(factors.SINGULAR, x)[1]
    return composite.total(ew.gt(values, _least("matrix_rank", x, values, rtol)), -1)


def _least(name: str, x: Any, values: Any, rtol: Any) -> Any:
    """The singular value up to which others count as 0."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * float(np.finfo(x.dtype.numpy).eps)
    wide = rtol.unsqueeze(-1) if isinstance(rtol, Tensor) else rtol
    return ew.mul(reduce.max(values, axes=(values.ndim - 1,), keepdims=True), wide)


@standard
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of elements of two vectors."""
    need_tensor("outer", x1, x2)
    a, b = promotion.promoted("outer", x1, x2)
    return a.outer(b)


@standard
def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse of Moore and Penrose; singular values up to ``rtol`` times the largest count as 0."""
    _matrix("pinv", x)
    left, values, right = factors.apply(factors.SINGULAR, x)
    kept = ew.gt(values, _least("pinv", x, values, rtol))
    inverse = ew.where(kept, ew.div(1.0, ew.where(kept, values, 1)), 0)
    return (right.mT * inverse.unsqueeze(-2)) @ left.mT


@standard
def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """An orthogonal and an upper triangular factor; ``complete`` for as many columns of Q as rows."""
    rules = {"reduced": factors.TRIANGULAR, "complete": factors.TRIANGULAR_COMPLETE}
    if mode not in rules:
        raise AttributeValueError(f"qr: mode {mode!r} is not known", remedy="'reduced' or 'complete'")
    return QRResult(*factors.apply(rules[mode], x))


@standard
def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its absolute value."""
    return SlogdetResult(*factors.apply(factors.LOG_DETERMINANT, factors.need_square("slogdet", x)))


@standard
def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The ``x`` of ``x1 @ x = x2``, where ``x2`` is one vector, or matrices; raises AttributeValueError for a singular
    ``x1``."""
    need_tensor("solve", x1, x2)
    a, b = promotion.promoted("solve", x1, x2)
    factors.need_square("solve", a)
    (found,) = factors.apply(factors.SOLVE, a, b.unsqueeze(-1) if b.ndim == 1 else b)
    return found.squeeze(-1) if b.ndim == 1 else found


@standard
def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular vectors, descending singular values and vectors on the right as rows. There is a gradient where
    ``full_matrices`` is False, or the matrix square."""
    full = full_matrices and _matrix("svd", x).shape[-1] != x.shape[-2]
    return SVDResult(*factors.apply(factors.SINGULAR_FULL if full else factors.SINGULAR, x))


@standard
def svdvals(x: Tensor, /) -> Tensor:
    """The descending singular values."""
    return factors.apply(factors.SINGULAR, x)[1]


@standard
def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal, in ``dtype``: None for int64 for integers, else the type of ``x``."""
    found = _matrix("trace", x).diagonal(offset, -2, -1)
    return composite.total(found, -1, dtype=None if dtype is None else dtype_of(dtype))


@standard
def vector_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The norm of elements along axes: the root of order ``ord`` of the sum of such powers; infinity for the largest,
    0 for how many are not zero. Raises DTypeError for a type that is not floating point."""
    need_tensor("vector_norm", x)
    if not x.dtype.is_floating_point:
        raise DTypeError(f"vector_norm takes a floating-point array, got {x.dtype.name}", remedy="astype(x, float64)")
    return fold("vector_norm", lambda x, axes, kept: composite.norm(x, float(ord), axes, kept), x, axis, keepdims)


def _matrix(name: str, x: Any) -> Any:
    need_tensor(name, x)
    if x.ndim < 2:
        raise ShapeError(f"{name} takes matrices, got {list(x.shape)}", remedy="at least two axes")
    return x


__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
