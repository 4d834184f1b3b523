"""Tensor methods of matrices, whose work is done in ``graphc.linalg``: determinants, inverses, factors."""

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
        """The lower triangular L of symmetric positive definite matrices L @ L.mT (``upper``: its transpose)."""
        return _of("cholesky")(self, upper)

    def cholesky_inverse(self, upper: bool = False) -> Tensor:
        """The inverse of A, where this is the factor of ``cholesky(A)``."""
        return _of("cholesky_inverse")(self, upper)

    def cholesky_solve(self, L: Tensor, upper: bool = False) -> Tensor:
        """The X of ``A @ X = self`` from the factor of ``cholesky(A)``."""
        return _of("cholesky_solve")(self, L, upper)

    def det(self) -> Tensor:
        """The determinants of square matrices."""
        return _of("det")(self)

    def geqrf(self) -> tuple[Tensor, Tensor]:
        """The factors of ``qr`` in one matrix, Q as reflections below the diagonal, and the factors of these."""
        return _of("geqrf")(self)

    def inverse(self) -> Tensor:
        """The inverses of square matrices; raises ``linalg.LinAlgError`` for singular ones."""
        return _of("inverse")(self)

    def logdet(self) -> Tensor:
        """The logarithms of determinants: NaN of negative ones."""
        return _of("logdet")(self)

    def lu(self, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
        """Both triangular factors in one matrix, the rows that were exchanged and, for ``get_infos``, the first pivot
        of 0."""
        return _of("lu")(self, pivot, get_infos)

    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """The X of ``A @ X = self`` from ``linalg.lu_factor(A)``."""
        return _of("lu_solve")(self, LU_data, LU_pivots)

    def matrix_exp(self) -> Tensor:
        """The exponential of square matrices."""
        return _of("matrix_exp")(self)

    def matrix_power(self, n: int) -> Tensor:
        """The product of ``n`` square matrices; of inverses where ``n`` is negative."""
        return _of("matrix_power")(self, n)

    def orgqr(self, input2: Tensor) -> Tensor:
        """The first columns of a product of reflections, see ``linalg.householder_product``."""
        return _of("orgqr")(self, input2)

    def ormqr(self, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
        """The product of all reflections, of factors ``input2``, and ``input3``, from the other side without ``left``;
        ``transpose``: of the conjugated transpose."""
        return _of("ormqr")(self, input2, input3, left, transpose)

    def pinverse(self, rcond: float = 1e-15) -> Tensor:
        """The pseudo-inverses; singular values up to ``rcond`` times the largest count as 0."""
        return _of("pinverse")(self, rcond)

    def qr(self, some: bool = True) -> tuple[Tensor, Tensor]:
        """Orthogonal and upper triangular factors; without ``some`` Q is square."""
        return _of("qr")(self, some)

    def slogdet(self) -> tuple[Tensor, Tensor]:
        """Signs of determinants, and the logarithms of their absolute values."""
        return _of("slogdet")(self)

    def svd(self, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, Tensor, Tensor]:
        """U, S and V of ``U @ diag(S) @ V.mT``; without ``some`` U and V are square."""
        return _of("svd")(self, some, compute_uv)

    def triangular_solve(
        self, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
    ) -> tuple[Tensor, Tensor]:
        """The X of ``A @ X = self`` (``transpose``: of A.mT) for triangular A, and A."""
        return _of("triangular_solve")(self, A, upper, transpose, unitriangular)
