"""The extension of the array API standard for linear algebra."""

from __future__ import annotations

from typing import Any

from graphc import linalg
from graphc.array_api import promotion, statistics
from graphc.array_api.array import broadcast_together, standard
from graphc.array_api.products import matmul, matrix_transpose, tensordot, vecdot
from graphc.array_api.statistics import Axis, fold
from graphc.base.errors import DTypeError, ShapeError
from graphc.linalg.results import EighResult, EigResult, QRResult, SlogdetResult, SVDResult
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor


@standard
def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The lower triangular L of a symmetric or Hermitian positive definite matrix L @ L.H (``upper``: L.H)."""
    return linalg.cholesky(x, upper=upper)


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
    return linalg.det(x)


@standard
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices, ``offset`` above the middle one."""
    return _matrix("diagonal", x).diagonal(offset, -2, -1)


@standard
def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues and, as columns, eigenvectors of norm 1 of a square matrix; all are complex."""
    return linalg.eig(x)


@standard
def eigh(x: Tensor, /) -> EighResult:
    """Ascending eigenvalues and, as columns, eigenvectors of a symmetric or Hermitian matrix, of which the
    lower triangle is read."""
    return linalg.eigh(x)


@standard
def eigvals(x: Tensor, /) -> Tensor:
    """The complex eigenvalues of a square matrix."""
    return linalg.eigvals(x)


@standard
def eigvalsh(x: Tensor, /) -> Tensor:
    """The ascending eigenvalues of a symmetric or Hermitian matrix."""
    return linalg.eigvalsh(x)


@standard
def inv(x: Tensor, /) -> Tensor:
    """The inverse; raises ConditionError for a singular matrix."""
    return linalg.inv(x)


@standard
def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of matrices: ``fro``, ``nuc`` (sum of singular values), 2 and -2 (the extreme ones), 1 and -1 (sums of
    columns), infinity and minus infinity (sums of rows)."""
    return linalg.matrix_norm(_matrix("matrix_norm", x), ord, keepdim=keepdims)


@standard
def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The product of ``n`` square matrices; of inverses where ``n`` is negative."""
    return linalg.matrix_power(x, n)


@standard
def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are larger than ``rtol`` times the largest (None: the precision times the size)."""
    return linalg.matrix_rank(x, rtol=rtol)


@standard
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of elements of two vectors."""
    need_tensor("outer", x1, x2)
    a, b = promotion.promoted("outer", x1, x2)
    return a.outer(b)


@standard
def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse of Moore and Penrose; singular values up to ``rtol`` times the largest count as 0."""
    return linalg.pinv(x, rtol=rtol)


@standard
def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """An orthogonal and an upper triangular factor; ``complete`` for as many columns of Q as rows."""
    return linalg.qr(x, mode)


@standard
def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of the determinant and the logarithm of its absolute value."""
    return linalg.slogdet(x)


@standard
def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The ``x`` of ``x1 @ x = x2``, where ``x2`` is one vector, or matrices; raises ConditionError for a singular
    ``x1``."""
    need_tensor("solve", x1, x2)
    a, b = promotion.promoted("solve", x1, x2)
    while 1 < b.ndim < a.ndim:  # what is one dimension less would be vectors, in PyTorch
        b = b.unsqueeze(0)
    return linalg.solve(a, b)


@standard
def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular vectors, descending singular values and vectors on the right as rows; vectors that complete a basis have
    no gradient."""
    return linalg.svd(x, full_matrices)


@standard
def svdvals(x: Tensor, /) -> Tensor:
    """The descending singular values."""
    return linalg.svdvals(x)


@standard
def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal, in ``dtype``: None for int64 or uint64 for integers, else the type of ``x``."""
    return statistics.sum(_matrix("trace", x).diagonal(offset, -2, -1), axis=-1, dtype=dtype)


@standard
def vector_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The norm of elements along axes: the root of order ``ord`` of the sum of such powers; infinity for the largest,
    0 for how many are not zero. Raises DTypeError for a type that is not floating point."""
    need_tensor("vector_norm", x)
    if not x.dtype.is_differentiable:
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
    "eig",
    "eigh",
    "eigvals",
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
