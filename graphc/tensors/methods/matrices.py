"""Tensor methods of matrices, implemented in ``graphc.linalg``: determinants, inverses, factorizations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.base.lazy import deferred
from graphc.tensors.tensor_base import TensorBase

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


def _of(name: str) -> Any:
    return deferred(f"graphc.linalg.methods:{name}")


class Matrices(TensorBase):
    """Functions of matrices and of batches of them."""

    def cholesky(self, upper: bool = False) -> Tensor:
        """Return the lower triangular L of symmetric positive definite matrices L @ L.mT (``upper``: its transpose)."""
        return _of("cholesky")(self, upper)

    def cholesky_inverse(self, upper: bool = False) -> Tensor:
        """Compute the inverse of A, given this tensor as the factor of ``cholesky(A)``."""
        return _of("cholesky_inverse")(self, upper)

    def cholesky_solve(self, L: Tensor, upper: bool = False) -> Tensor:
        """Solve ``A @ X = self`` for X, given the factor of ``cholesky(A)``."""
        return _of("cholesky_solve")(self, L, upper)

    def det(self) -> Tensor:
        """Compute the determinants of square matrices."""
        return _of("det")(self)

    def geqrf(self) -> tuple[Tensor, Tensor]:
        """Return the factors of ``qr`` in one matrix, with Q as reflections below the diagonal, and the reflections'
        factors."""
        return _of("geqrf")(self)

    def inverse(self) -> Tensor:
        """Compute the inverses of square matrices; raise ``linalg.LinAlgError`` for singular ones."""
        return _of("inverse")(self)

    def logdet(self) -> Tensor:
        """Compute the logarithms of determinants; NaN for negative ones."""
        return _of("logdet")(self)

    def lu(self, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
        """Return both triangular factors in one matrix, the exchanged rows and, with ``get_infos``, the first zero
        pivot."""
        return _of("lu")(self, pivot, get_infos)

    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """Solve ``A @ X = self`` for X, given ``linalg.lu_factor(A)``."""
        return _of("lu_solve")(self, LU_data, LU_pivots)

    def matrix_exp(self) -> Tensor:
        """Compute the exponential of square matrices."""
        return _of("matrix_exp")(self)

    def matrix_power(self, n: int) -> Tensor:
        """Compute the ``n``-th power of square matrices, a power of the inverses for negative ``n``."""
        return _of("matrix_power")(self, n)

    def orgqr(self, input2: Tensor) -> Tensor:
        """Compute the first columns of a product of reflections, see ``linalg.householder_product``."""
        return _of("orgqr")(self, input2)

    def ormqr(self, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
        """Multiply the product of all reflections, of factors ``input2``, by ``input3``, from the other side without
        ``left``. ``transpose`` uses the conjugated transpose of the product."""
        return _of("ormqr")(self, input2, input3, left, transpose)

    def pinverse(self, rcond: float = 1e-15) -> Tensor:
        """Compute the pseudo-inverses; singular values up to ``rcond`` times the largest count as 0."""
        return _of("pinverse")(self, rcond)

    def qr(self, some: bool = True) -> tuple[Tensor, Tensor]:
        """Return orthogonal and upper triangular factors; without ``some`` Q is square."""
        return _of("qr")(self, some)

    def slogdet(self) -> tuple[Tensor, Tensor]:
        """Return the signs of determinants, and the logarithms of their absolute values."""
        return _of("slogdet")(self)

    def svd(self, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, S and V of ``U @ diag(S) @ V.mT``; without ``some`` U and V are square."""
        return _of("svd")(self, some, compute_uv)

    def triangular_solve(
        self, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return the X of ``A @ X = self`` (``transpose``: of A.mT) for triangular A, and A."""
        return _of("triangular_solve")(self, A, upper, transpose, unitriangular)
