"""Singular values of matrices of low rank, from products with few random vectors.

Halko, Martinsson, Tropp, Finding structure with randomness, 2011, whose algorithms the functions name.
"""

from __future__ import annotations

from typing import Any

from graphc.base.errors import AttributeValueError
from graphc.linalg.checks import need_matrix
from graphc.linalg.results import SVDColumnsResult
from graphc.linalg.spectra import qr, svd
from graphc.tensors.creation import randn
from graphc.tensors.tensor import Tensor


def _basis(A: Any, q: int, niter: int) -> Any:
    """Return ``q`` orthonormal columns that nearly span the columns of A: algorithm 4.4."""
    Q = qr(A @ randn(A.shape[-1], q, dtype=A.dtype)).Q
    for _ in range(niter):
        Q = qr(A @ qr(A.mH @ Q).Q).Q
    return Q


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> SVDColumnsResult:
    """Return U [..., m, q], descending S [..., q] and V [..., n, q] (not transposed) with ``U @ diag(S) @ V.mH`` close
    to A for ranks up to ``q``.

    With M, which broadcasts, decompose ``A - M``. Algorithm 5.1, with ``niter`` power iterations; draws random numbers.
    """
    q, rounds = 6 if q is None else q, 2 if niter is None else niter
    if q < 0 or rounds < 0:
        raise AttributeValueError(f"svd_lowrank: q is {q} and niter {rounds}", remedy="pass numbers of 0 or more")
    X: Any = need_matrix("svd_lowrank", A if M is None else A - M)
    wide = X.shape[-2] < X.shape[-1]
    X = X.mH if wide else X
    Q = _basis(X, q, rounds)
    U, S, Vh = svd(Q.mH @ X, False)
    left_vectors, right_vectors = Q @ U, Vh.mH
    return (
        SVDColumnsResult(right_vectors, S, left_vectors) if wide else SVDColumnsResult(left_vectors, S, right_vectors)
    )


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> SVDColumnsResult:
    """Compute the principal components of the rows of A [..., m, n]: ``svd_lowrank`` of A minus its mean row
    (``center=False``: of A). ``q``, from 0 to the smaller of m and n, is their number; by default at most 6."""
    least = min(need_matrix("pca_lowrank", A).shape[-2:])
    if q is not None and not 0 <= q <= least:
        raise AttributeValueError(f"pca_lowrank: q is {q} for shape {list(A.shape)}", remedy=f"pass 0 to {least}")
    if niter < 0:
        raise AttributeValueError(f"pca_lowrank: niter is {niter}", remedy="pass 0 or more")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, min(6, least) if q is None else q, niter)
