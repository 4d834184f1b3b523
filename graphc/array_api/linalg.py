"""Extension of the array API standard for linear algebra."""

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
    """Return the lower triangular factor L of a symmetric or Hermitian positive definite matrix L @ L.H (``upper``:
    L.H)."""
    return linalg.cholesky(x, upper=upper)


@standard
def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the vector product along an axis of size 3. Other axes broadcast. Raises ShapeError."""
    need_tensor("cross", x1, x2)
    a, b = promotion.promoted("cross", x1, x2)
    if not -min(a.ndim, b.ndim) <= axis < min(a.ndim, b.ndim) or a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ShapeError(f"cross takes axes of size 3, got {list(a.shape)} and {list(b.shape)} along axis {axis}")
    a, b = broadcast_together(a, b)
    return a.cross(b, axis)


@standard
def det(x: Tensor, /) -> Tensor:
    """Return the determinant."""
    return linalg.det(x)


@standard
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Return the diagonals of matrices, ``offset`` above the main one."""
    return _matrix("diagonal", x).diagonal(offset, -2, -1)


@standard
def eig(x: Tensor, /) -> EigResult:
    """Return eigenvalues and, as columns, eigenvectors of norm 1 of a square matrix. All are complex."""
    return linalg.eig(x)


@standard
def eigh(x: Tensor, /) -> EighResult:
    """Return ascending eigenvalues and, as columns, eigenvectors of a symmetric or Hermitian matrix.

    Reads the lower triangle only.
    """
    return linalg.eigh(x)


@standard
def eigvals(x: Tensor, /) -> Tensor:
    """Return the complex eigenvalues of a square matrix."""
    return linalg.eigvals(x)


@standard
def eigvalsh(x: Tensor, /) -> Tensor:
    """Return the ascending eigenvalues of a symmetric or Hermitian matrix."""
    return linalg.eigvalsh(x)


@standard
def inv(x: Tensor, /) -> Tensor:
    """Return the inverse. Raises ConditionError for a singular matrix."""
    return linalg.inv(x)


@standard
def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Return a norm of matrices.

    ``ord`` is ``fro``, ``nuc`` (sum of singular values), 2 and -2 (the largest and smallest of them), 1 and -1 (the
    largest and smallest column sum), infinity and minus infinity (of row sums).
    """
    return linalg.matrix_norm(_matrix("matrix_norm", x), ord, keepdim=keepdims)


@standard
def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Return the product of ``n`` equal square matrices, or of their inverses where ``n`` is negative."""
    return linalg.matrix_power(x, n)


@standard
def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Return the number of singular values larger than ``rtol`` times the largest.

    None means the precision of the type times the larger dimension.
    """
    return linalg.matrix_rank(x, rtol=rtol)


@standard
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return all products of elements of two vectors."""
    need_tensor("outer", x1, x2)
    a, b = promotion.promoted("outer", x1, x2)
    return a.outer(b)


@standard
def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverse. Singular values up to ``rtol`` times the largest count as 0."""
    return linalg.pinv(x, rtol=rtol)


@standard
def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Return an orthogonal and an upper triangular factor. With ``complete`` Q has as many columns as rows."""
    return linalg.qr(x, mode)


@standard
def slogdet(x: Tensor, /) -> SlogdetResult:
    """Return the sign of the determinant and the logarithm of its absolute value."""
    return linalg.slogdet(x)


@standard
def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the solution ``x`` of ``x1 @ x = x2`` for one vector or matrices ``x2``.

    Raises ConditionError for a singular ``x1``.
    """
    need_tensor("solve", x1, x2)
    a, b = promotion.promoted("solve", x1, x2)
    while 1 < b.ndim < a.ndim:  # PyTorch would take an operand with one dimension less for vectors
        b = b.unsqueeze(0)
    return linalg.solve(a, b)


@standard
def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Return left singular vectors, descending singular values, and right singular vectors as rows.

    Vectors that complete a basis have no gradient.
    """
    return linalg.svd(x, full_matrices)


@standard
def svdvals(x: Tensor, /) -> Tensor:
    """Return the descending singular values."""
    return linalg.svdvals(x)


@standard
def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Return the sum of a diagonal.

    ``dtype`` None means int64 or uint64 for integers, else the type of ``x``.
    """
    return statistics.sum(_matrix("trace", x).diagonal(offset, -2, -1), axis=-1, dtype=dtype)


@standard
def vector_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Return the norm of elements along axes.

    It is the root of order ``ord`` of the sum of powers, the largest element for infinity, and the number of nonzero
    elements for 0. Raises DTypeError for integers and bools.
    """
    need_tensor("vector_norm", x)
    if not x.dtype.is_differentiable:
        raise DTypeError(
            f"vector_norm takes a floating-point array, got {x.dtype.name}", remedy="convert it: astype(x, float64)"
        )
    return fold("vector_norm", lambda x, axes, keep: composite.norm(x, float(ord), axes, keep), x, axis, keepdims)


def _matrix(name: str, x: Any) -> Any:
    need_tensor(name, x)
    if x.ndim < 2:
        raise ShapeError(f"{name} takes matrices, got {list(x.shape)}", remedy="pass an array with at least two axes")
    return x


__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm"]
__all__ += ["matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd"]
__all__ += ["svdvals", "tensordot", "trace", "vecdot", "vector_norm"]
