"""Eigenvalues, singular values and orthogonal factors, and their uses: ranks, pseudo-inverses, least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.errors import ArgumentError, AttributeValueError, ShapeError
from graphc.base.sizes.dims import common_shape
from graphc.linalg import decompositions, place
from graphc.linalg.checks import expanded, need_float, need_matrix, need_square
from graphc.linalg.results import EighResult, EigResult, LstsqResult, QRResult, SVDResult
from graphc.linalg.systems import solve_triangular
from graphc.ops import dispatch
from graphc.ops.effects.state import straight_through
from graphc.ops.factorization import eigen, orthogonal
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.reduction import reduce
from graphc.tensors import composite
from graphc.tensors.free_functions import cat
from graphc.tensors.tensor import Tensor

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "lstsq", "matrix_rank", "pinv", "qr", "svd", "svdvals"]

# ---- orthogonal factors


def qr(A: Tensor, mode: str = "reduced") -> QRResult:
    """Compute orthogonal Q [..., m, k] and upper triangular R [..., k, n] with ``A = Q @ R``. k is the smaller of m and
    n (``reduced``), or m (``complete``); ``r`` computes R alone, and leaves Q empty.

    Example:
        >>> import graphc as gc
        >>> a = gc.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> q, r = gc.linalg.qr(a)
        >>> q.shape, r.shape, gc.allclose(q @ r, a, atol=1e-5)
        ((3, 2), (2, 2), True)
    """
    if mode not in ("reduced", "complete", "r"):
        raise AttributeValueError(f"qr: unknown mode {mode!r}", remedy="use 'reduced', 'complete' or 'r'")
    m, n = need_matrix("qr", A).shape[-2:]
    k = m if mode == "complete" else min(m, n)
    packed = place.apply(orthogonal.qr, A, complete=mode == "complete")
    Q = A.new_empty(0) if mode == "r" else packed[..., :k]
    return QRResult(Q, packed[..., :k, k:])


# ---- eigenvalues


def eigh(A: Tensor, UPLO: str = "L") -> EighResult:
    """Compute ascending eigenvalues [..., n] and, as columns, eigenvectors of symmetric or Hermitian matrices [..., n,
    n].

    Only the lower (``UPLO="U"``: upper) triangle is read, but the gradient goes to both triangles equally. Gradients of
    eigenvectors need distinct eigenvalues. The largest element of each eigenvector is positive.

    Example:
        >>> import graphc as gc
        >>> values, vectors = gc.linalg.eigh(gc.tensor([[2.0, 1.0], [1.0, 2.0]]))
        >>> gc.allclose(values, gc.tensor([1.0, 3.0]))
        True
    """
    need_square("eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise AttributeValueError(f"eigh: unknown UPLO {UPLO!r}", remedy="use 'L' or 'U'")
    read = A.mH if UPLO.upper() == "U" else A
    packed = place.apply(eigen.eigh, straight_through((A + A.mH) * 0.5, read), most=place.rotated_rows(A))
    return EighResult(packed[..., 0].real, packed[..., 1:])


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Compute the eigenvalues of ``eigh``."""
    return eigh(A, UPLO).eigenvalues


def eig(A: Tensor) -> EigResult:
    """Compute complex eigenvalues [..., n] and, as columns, complex eigenvectors of norm 1 of square matrices [..., n,
    n].

    The gradient needs distinct eigenvalues, and functions that do not depend on the phases of eigenvectors.
    """
    return EigResult(*decompositions.apply(decompositions.EIGEN_OF_ANY, need_square("eig", A)))


def eigvals(A: Tensor) -> Tensor:
    """Compute the eigenvalues of ``eig``."""
    return eig(A).eigenvalues


# ---- singular values


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVDResult:
    """Compute U [..., m, m], descending singular values S [..., k] and Vh [..., n, n] with
    ``A = U[:, :k] @ diag(S) @ Vh[:k]``; k is the smaller of m and n.

    Without ``full_matrices``, U has k columns and Vh k rows. Vectors beyond k have no gradient. ``driver`` exists for
    compatibility with PyTorch, and must be None.

    Example:
        >>> import graphc as gc
        >>> a = gc.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> u, s, vh = gc.linalg.svd(a, full_matrices=False)
        >>> gc.allclose(u @ gc.diag(s) @ vh, a, atol=1e-5)
        True
    """
    if driver is not None:
        raise ArgumentError(f"svd: driver {driver!r} requires CUDA", remedy="pass driver=None")
    m, n = need_matrix("svd", A).shape[-2:]
    if not full_matrices or m == n:
        return SVDResult(*decompositions.apply(decompositions.SINGULAR, A))
    full = SVDResult(*decompositions.apply(decompositions.SINGULAR_FULL, A.detach()))
    if not A.requires_grad:
        return full
    # Vectors that complete a basis are arbitrary, and have no gradient.
    U, S, Vh = decompositions.apply(decompositions.SINGULAR, A)
    k = min(m, n)
    return SVDResult(cat([U, full.U[..., k:]], -1), S, cat([Vh, full.Vh[..., k:, :]], -2))


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Compute the descending singular values [..., k] of matrices."""
    return svd(A, False, driver=driver).S


def _number(value: Any, like: Any) -> Any:
    """Return a tolerance; a tensor is aligned with the last dimension of ``like``."""
    return value.unsqueeze(-1).to(like.dtype) if isinstance(value, Tensor) else value


def _significant(A: Any, values: Any, atol: Any, rtol: Any) -> Any:
    """Return a mask of the values (at least 0) that exceed both tolerances."""
    atol, rtol = _tolerances(A, atol, rtol)
    largest = reduce.max(values, axes=(values.ndim - 1,), keepdims=True)
    return ew.gt(values, ew.maximum(ew.mul(largest, _number(rtol, values)), _number(atol, values)))


def _tolerances(A: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Return both tolerances. If none is given, or ``atol`` is the number 0, ``rtol`` is the precision times the larger
    dimension. (Unlike in PyTorch, an ``atol`` tensor of zeros counts as given.)"""
    if rtol is None:
        is_absolute = atol is not None and (isinstance(atol, Tensor) or atol > 0)
        rtol = 0.0 if is_absolute else max(A.shape[-2:]) * float(np.finfo(A.dtype.numpy).eps)
    return 0.0 if atol is None else atol, rtol


def matrix_rank(A: Tensor, tol: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """Count the singular values (of ``hermitian`` matrices: absolute eigenvalues) above ``atol``, or ``tol``, and above
    ``rtol`` times the largest one (i64, [...]). Tolerances are numbers or tensors [...]."""
    need_matrix("matrix_rank", A)
    if min(A.shape[-2:]) == 0:
        return A.new_zeros(A.shape[:-2], dtype=int64)
    values = ew.abs(eigvalsh(A)) if hermitian else svdvals(A)
    if tol is not None:
        atol, rtol = tol, 0.0
    return composite.total(_significant(A, values, atol, rtol), -1)


def pinv(A: Tensor, rcond: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """Compute the Moore-Penrose pseudo-inverses [..., n, m] of matrices [..., m, n]; singular values up to ``atol`` or
    ``rtol`` (``rcond``) times the largest count as 0."""
    rtol = rcond if rtol is None else rtol
    need_matrix("pinv", A)
    if min(A.shape[-2:]) == 0:
        return A.mH.clone()
    read = straight_through((A + A.mH) * 0.5, A.tril() + A.tril(-1).mH) if hermitian else A
    least, relative = (_tensor(A, t) for t in _tolerances(A, atol, rtol))
    return decompositions.apply(decompositions.PSEUDO_INVERSE, read, least, relative)[0]


def _tensor(A: Any, number: Any) -> Any:
    dtype = A.dtype.real
    return ew.cast(number, dtype=dtype) if isinstance(number, Tensor) else dispatch.current().scalar(number, dtype)


# ---- least squares

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LstsqResult:
    """Solve ``A @ X = B`` by least squares for A [..., m, n] and B [..., m, k] or [..., m]; of several solutions,
    return the one of least norm.

    The driver ``gels`` assumes full rank, and its factorization is native code. The others, and None, use singular
    values; those up to ``rcond`` times the largest count as 0.

    ``residuals`` are sums of squares [..., k] for m > n if all ranks are n, else empty. Compiled code cannot know
    ranks, and returns residuals for all m > n. They are always empty for ``gelsy``. ``rank`` is empty for ``gels``, and
    ``singular_values`` for ``gels`` and ``gelsy``.

    Example:
        >>> import graphc as gc
        >>> a = gc.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> line = gc.linalg.lstsq(a, gc.tensor([[1.0], [3.0], [5.0]])).solution
        >>> gc.allclose(line, gc.tensor([[1.0], [2.0]]), atol=1e-4)
        True
    """
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise AttributeValueError(f"lstsq: unknown driver {driver!r}", remedy=f"use {' or '.join(_DRIVERS)}")
    need_matrix("lstsq", A)
    need_float("lstsq", A, B)
    vectors = B.ndim == A.ndim - 1
    right_sides = B.unsqueeze(-1) if vectors else B
    if right_sides.ndim < 2 or right_sides.shape[-2] != A.shape[-2]:
        raise ShapeError(f"lstsq: {list(A.shape)} and {list(B.shape)} do not fit")
    batch = common_shape(A.shape[:-2], right_sides.shape[:-2])
    a, b = expanded(A, batch), expanded(right_sides, batch)
    if driver == "gels":
        solution, rank, values = _by_factors(a, b), A.new_empty(0, dtype=int64), a.real.flatten()[:0]
    else:
        values = svdvals(a.detach())
        solution, rank = pinv(a, rcond) @ b, matrix_rank(a.detach(), rtol=rcond)
    none = a.real.flatten()[:0]
    residuals = none if driver == "gelsy" else _residuals(a, b, solution, rank)
    return LstsqResult(
        solution.squeeze(-1) if vectors else solution, residuals, rank, values if driver in _DRIVERS[2:] else none
    )


def _by_factors(a: Any, b: Any) -> Any:
    m, n = a.shape[-2:]
    Q, R = qr(a if m >= n else a.mH)
    if m >= n:
        return solve_triangular(R, Q.mH @ b, upper=True)
    return Q @ solve_triangular(R.mH, b, upper=False)


def _residuals(a: Any, b: Any, solution: Any, rank: Any) -> Any:
    m, n = a.shape[-2:]
    full = m > n and (not rank.numel() or not dispatch.is_default() or bool((rank == n).all()))
    if not full:
        return a.real.flatten()[:0]
    return composite.total(composite.squared(ew.sub(a @ solution, b)), -2)
