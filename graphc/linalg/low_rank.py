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
    """``q`` orthonormal columns that span nearly what the columns of A do: algorithm 4.4."""
    Q = qr(A @ randn(A.shape[-1], q, dtype=A.dtype)).Q
    for _ in range(niter):
        Q = qr(A @ qr(A.mH @ Q).Q).Q
    return Q


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> SVDColumnsResult:
    """U [..., m, q], descending S [..., q] and V [..., n, q] (not transposed) of which ``U @ diag(S) @ V.mH`` is nearly
    A (of ``A - M``, which broadcasts), where its rank is at most ``q``: algorithm 5.1, with ``niter`` rounds of powers.
    Draws random numbers."""
    q, rounds = 6 if q is None else q, 2 if niter is None else niter
    if q < 0 or rounds < 0:
        raise AttributeValueError(f"svd_lowrank: {q} columns and {rounds} rounds", remedy="numbers from 0 on")
    X: Any = need_matrix("svd_lowrank", A if M is None else A - M)
    wide = X.shape[-2] < X.shape[-1]
    X = X.mH if wide else X
    Q = _basis(X, q, rounds)
    U, S, Vh = svd(Q.mH @ X, False)
    left, right = Q @ U, Vh.mH
    return SVDColumnsResult(right, S, left) if wide else SVDColumnsResult(left, S, right)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> SVDColumnsResult:
    """Principal components of rows of A [..., m, n]: ``svd_lowrank`` of A without its mean row (``center=False``: of
    A). ``q``: how many, from 0 to the smaller of m and n; the smaller of that and 6 without."""
    least = min(need_matrix("pca_lowrank", A).shape[-2:])
    if q is not None and not 0 <= q <= least:
        raise AttributeValueError(f"pca_lowrank: {q} components of {list(A.shape)}", remedy=f"0 to {least}")
    if niter < 0:
        raise AttributeValueError(f"pca_lowrank: {niter} rounds", remedy="0 or more")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, min(6, least) if q is None else q, niter)
