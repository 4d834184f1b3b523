"""Matrix functions of PyTorch outside of ``torch.linalg``: methods of tensors, and older forms."""

from __future__ import annotations

from typing import NamedTuple

from graphc.base.errors import ArgumentError
from graphc.linalg.checks import identity, need_matrix
from graphc.linalg.low_rank import pca_lowrank, svd_lowrank
from graphc.linalg.products import matrix_exp, matrix_power, multi_dot
from graphc.linalg.reflections import geqrf, householder_product, ormqr
from graphc.linalg.results import LUResult, QRResult, SVDColumnsResult
from graphc.linalg.spectra import pinv, svdvals
from graphc.linalg.spectra import qr as qr_of
from graphc.linalg.spectra import svd as svd_of
from graphc.linalg.systems import cholesky as cholesky_of
from graphc.linalg.systems import det, inv, logdet, lu_factor_ex, permutation, slogdet, solve_triangular, triangles
from graphc.linalg.systems import lu_solve as solve_by_lu
from graphc.ops.factorization.factors import rows_to
from graphc.tensors.tensor import Tensor


class TriangularSolveResult(NamedTuple):
    """A solution, and a copy of the matrix."""

    solution: Tensor
    cloned_coefficient: Tensor


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """See ``linalg.cholesky``."""
    return cholesky_of(input, upper=upper)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """See ``linalg.pinv``."""
    return pinv(input, rcond)


def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Solve ``A @ X = input`` for X, given the factor of ``cholesky(A)``."""
    inner = solve_triangular(L.mH if upper else L, input, upper=False)
    return solve_triangular(L if upper else L.mH, inner, upper=True)


def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """Compute the inverse of A, given the factor of ``cholesky(A)``."""
    need_matrix("cholesky_inverse", input)
    half = solve_triangular(input, identity(input).expand(*input.shape), upper=upper)
    return half @ half.mH if upper else half.mH @ half


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolveResult:
    """Return the X of ``A @ X = b`` (``transpose``: of A.mT) for triangular A, and A."""
    matrix, above = (A.mT, not upper) if transpose else (A, upper)
    return TriangularSolveResult(solve_triangular(matrix, b, upper=above, unitriangular=unitriangular), A.clone())


def inverse(input: Tensor) -> Tensor:
    """See ``linalg.inv``."""
    return inv(input)


def qr(input: Tensor, some: bool = True) -> QRResult:
    """See ``linalg.qr``; ``some`` is its mode ``reduced``, else ``complete``."""
    return qr_of(input, "reduced" if some else "complete")


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVDColumnsResult:
    """See ``linalg.svd``; ``some`` is its ``full_matrices=False``, and V is not transposed. Without ``compute_uv`` U
    and V are zeros."""
    if not compute_uv:
        S = svdvals(input)
        *batch, m, n = input.shape
        return SVDColumnsResult(input.new_zeros(*batch, m, m), S, input.new_zeros(*batch, n, n))
    U, S, Vh = svd_of(input, not some)
    return SVDColumnsResult(U, S, Vh.mH)


def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """See ``linalg.householder_product``."""
    return householder_product(input, input2)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """Return the results of ``linalg.lu_factor_ex``, the last one with ``get_infos``. A zero pivot is not an error."""
    factorization = lu_factor_ex(A, pivot=pivot)
    return tuple(factorization) if get_infos else tuple(factorization[:2])


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """See ``linalg.lu_solve``."""
    return solve_by_lu(LU_data, LU_pivots, b)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> LUResult:
    """Return P, L and U of ``linalg.lu`` from ``linalg.lu_factor(A)``; results not requested are empty."""
    none = LU_data.new_empty(0)
    P = rows_to(permutation(LU_pivots, LU_data.shape[-2]), LU_data.dtype).mT if unpack_pivots else none
    return LUResult(P, *(triangles(LU_data) if unpack_data else (none, none)))


def chain_matmul(*matrices: Tensor) -> Tensor:
    """Multiply matrices like ``linalg.multi_dot``, also a single one."""
    if not matrices:
        raise ArgumentError("chain_matmul takes matrices, got none")
    return multi_dot(matrices) if len(matrices) > 1 else next(iter(matrices))


__all__ = ["chain_matmul", "cholesky", "cholesky_inverse", "cholesky_solve", "det", "geqrf", "inverse", "logdet", "lu"]
__all__ += ["lu_solve", "lu_unpack", "matrix_exp", "matrix_power", "orgqr", "ormqr", "pca_lowrank", "pinverse", "qr"]
__all__ += ["slogdet", "svd", "svd_lowrank", "triangular_solve"]
