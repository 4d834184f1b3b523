"""Rules of ATen's linear algebra: norms, systems, factorizations, eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc import linalg
from graphc.interop.aten.registry import rule, same
from graphc.linalg import methods
from graphc.linalg.checks import require
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor

_OTHERS = frozenset({"LinAlgError", "matrix_rank", "pinv"})
"""Names of ``graphc.linalg`` that are not operators, or that take other arguments."""
for _name in sorted({*linalg.__all__} - _OTHERS):
    rule(f"linalg_{_name}")(getattr(linalg, _name))
rule("linalg_cond.p_str")(linalg.cond)
rule("linalg_matrix_norm.str_ord")(linalg.matrix_norm)
rule("linalg_norm.ord_str")(linalg.norm)
rule("linalg_matrix_rank.atol_rtol_float", "linalg_matrix_rank.atol_rtol_tensor")(linalg.matrix_rank)
rule("linalg_pinv.atol_rtol_float", "linalg_pinv.atol_rtol_tensor")(linalg.pinv)
same("cholesky cholesky_inverse cholesky_solve det inverse logdet lu_solve matrix_exp matrix_power orgqr pinverse")
same("qr slogdet svd triangular_solve geqrf ormqr")
rule("lu_unpack")(methods.lu_unpack)


@rule("linalg_matrix_rank", "linalg_matrix_rank.tol_tensor")
def matrix_rank(self: Tensor, tol: Any, hermitian: bool = False) -> Tensor:
    return linalg.matrix_rank(self, tol, hermitian=hermitian)


@rule("linalg_pinv", "linalg_pinv.rcond_tensor")
def pinv(self: Tensor, rcond: Any, hermitian: bool = False) -> Tensor:
    return linalg.pinv(self, rcond, hermitian=hermitian)


@rule("chain_matmul")
def chain_matmul(matrices: Sequence[Tensor]) -> Tensor:
    return methods.chain_matmul(*matrices)


# ---- internal operators to which PyTorch lowers functions


@rule("_linalg_check_errors")
def check_errors(info: Tensor, api_name: str, *, is_matrix: bool) -> None:
    require(functions.eq(info, 0), f"{api_name}: the computation failed for a matrix, which may be singular")


# NOTE: PyTorch's backward pass of determinants reads the factors of the transposed matrix.
@rule("_linalg_det")
def linalg_det(A: Tensor) -> tuple[Tensor, ...]:
    return linalg.det(A), *linalg.lu_factor_ex(A.mT)[:2]


@rule("_linalg_slogdet")
def linalg_slogdet(A: Tensor) -> tuple[Tensor, ...]:
    return *linalg.slogdet(A), *linalg.lu_factor_ex(A.mT)[:2]


@rule("_linalg_solve_ex")
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, ...]:
    solution = linalg.solve_ex(A, B, left=left, check_errors=check_errors)
    return solution.result, *linalg.lu_factor_ex(A if left else A.mT)[:2], solution.info


@rule("_linalg_eigh")
def linalg_eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, ...]:
    return tuple(linalg.eigh(A, UPLO))


@rule("_linalg_svd")
def linalg_svd(
    A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Tensor, ...]:
    return tuple(linalg.svd(A, full_matrices, driver=driver))
