"""Linear systems, inverses and determinants, with their triangular factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import int32, int64
from graphc.base.errors import ShapeError, UnsupportedError
from graphc.base.sizes.dims import common_shape
from graphc.linalg import place
from graphc.linalg.checks import expanded, identity, need_float, need_matrix, need_square, require
from graphc.linalg.results import (
    CholeskyExResult,
    InvExResult,
    LUFactorExResult,
    LUFactorResult,
    LUResult,
    SlogdetResult,
    SolveExResult,
)
from graphc.ops import dispatch
from graphc.ops.effects.state import straight_through
from graphc.ops.factorization import factors
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.reduction import reduce
from graphc.ops.selection.index import iota
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor

__all__ = ["cholesky", "cholesky_ex", "det", "inv", "inv_ex", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "slogdet"]
__all__ += ["solve", "solve_ex", "solve_triangular"]

# ---- Cholesky


def _factor(name: str, A: Tensor, upper: bool) -> Any:
    """Return the lower factor, from the requested triangle; the gradient goes to both triangles equally."""
    need_square(name, A)
    symmetric = (A + A.mH) * 0.5
    return place.apply(factors.cholesky, straight_through(symmetric, A.mH if upper else A))


def _first_bad(good: Any) -> Any:
    """Return the number, from 1, of the first false element along the last dimension; 0 for none (i32)."""
    n = good.shape[-1]
    if not n:
        return good.new_zeros(good.shape[:-1], dtype=int32)
    positions = ew.where(good, n, iota(shape=(n,), axis=0))
    first = reduce.min(positions, axes=(good.ndim - 1,))
    return ew.cast(ew.where(ew.eq(first, n), 0, ew.add(first, 1)), dtype=int32)


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """Compute the lower triangular L of symmetric positive definite matrices A = L @ L.mT [..., n, n] (``upper``: its
    transpose), or of Hermitian ones A = L @ L.mH. Only one triangle of A is read. Raises LinAlgError for other
    matrices.

    Example:
        >>> import graphc as gc
        >>> gc.linalg.cholesky(gc.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    factor = _factor("cholesky", A, upper)
    good = ew.gt(factor.diagonal(0, -2, -1).real, 0)
    require(good, "linalg.cholesky: a matrix is not positive definite")
    return factor.mH if upper else factor


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyExResult:
    """Compute ``cholesky`` with ``info`` (i32, [...]) instead of an error: the number of the first leading minor that
    is not positive, or 0. From there on the diagonal of the factor is NaN."""
    factor = _factor("cholesky_ex", A, upper)
    info = _first_bad(ew.gt(factor.diagonal(0, -2, -1).real, 0))
    if check_errors:
        require(ew.eq(info, 0), "linalg.cholesky_ex: a matrix is not positive definite")
    return CholeskyExResult(factor.mH if upper else factor, info)


# ---- solutions


def _are_vectors(A: Tensor, B: Tensor) -> bool:
    """Return whether right sides are one vector, or one for each matrix."""
    return B.ndim == 1 or tuple(B.shape) == tuple(A.shape[:-1])


def _systems(name: str, A: Tensor, B: Tensor) -> tuple[Any, Any, bool]:
    """Return matrices and right sides with a common batch, and whether the latter are vectors."""
    need_square(name, A)
    need_float(name, A, B)
    vectors = _are_vectors(A, B)
    right_sides = B.unsqueeze(-1) if vectors else B
    if right_sides.shape[-2] != A.shape[-1]:
        raise ShapeError(f"{name}: {list(A.shape)} and {list(B.shape)} do not fit")
    batch = common_shape(A.shape[:-2], right_sides.shape[:-2])
    return expanded(A, batch), expanded(right_sides, batch), vectors


def _solved(name: str, A: Tensor, B: Tensor, left: bool) -> Any:
    if not left:
        need_square(name, A)
        if B.ndim < 2 or _are_vectors(A, B):
            raise ShapeError(f"{name}: left=False takes matrices on the right, got {list(B.shape)} for {list(A.shape)}")
        return _solved(name, A.mT, B.mT, True).mT
    a, b, vectors = _systems(name, A, B)
    solution = place.apply(factors.solve, a, b)
    return solution.squeeze(-1) if vectors else solution


def _require_finite(name: str, solution: Any, *operands: Any) -> None:
    """Raise LinAlgError for a non-finite solution of finite numbers: a pivot is 0."""
    bad = ew.logical_not(_finite(solution))
    for x in operands:
        bad = ew.mul(bad, _finite(x))
    require(ew.logical_not(bad), f"linalg.{name}: a matrix is singular")


def _finite(x: Any) -> Any:
    return reduce.min(mathematics.isfinite(x), axes=tuple(range(x.ndim))) if x.numel() else x.new_ones((), dtype="bool")


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Solve ``A @ X = B`` (``left=False``: ``X @ A = B``) for X, with A [..., n, n] and B [..., n, k], [n], or [..., n]
    with the batch of A. Batches broadcast. Raises LinAlgError for a singular A.

    Example:
        >>> import graphc as gc
        >>> gc.linalg.solve(gc.tensor([[2.0, 0.0], [0.0, 4.0]]), gc.tensor([2.0, 4.0]))
        tensor([1., 1.])
    """
    solution = _solved("solve", A, B, left)
    _require_finite("solve", solution, A, B)
    return solution


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveExResult:
    """Compute ``solve`` with ``info`` (i32, [...]) instead of an error: the number of the first zero pivot, or 0."""
    solution = _solved("solve_ex", A, B, left)
    info = _info(_packed("solve_ex", A))
    if check_errors:
        require(ew.eq(info, 0), "linalg.solve_ex: a matrix is singular")
    return SolveExResult(solution, info)


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Solve ``A @ X = B`` (``left=False``: ``X @ A = B``) for X, with triangular A [..., n, n]. The other triangle is
    not read, nor is the diagonal with ``unitriangular``. Zeros on the diagonal give infinities."""
    if not left:
        return solve_triangular(A.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    need_square("solve_triangular", A)
    need_float("solve_triangular", A, B)
    if B.ndim < 2 or B.shape[-2] != A.shape[-1]:
        raise ShapeError(f"solve_triangular: {list(A.shape)} and {list(B.shape)} do not fit")
    batch = common_shape(A.shape[:-2], B.shape[:-2])
    return place.apply(
        factors.solve_triangular, expanded(A, batch), expanded(B, batch), upper=upper, unit=unitriangular
    )


def _inverse(name: str, A: Tensor) -> Any:
    need_square(name, A)
    return place.apply(factors.solve, A, expanded(identity(A), tuple(A.shape[:-2])))


def inv(A: Tensor) -> Tensor:
    """Compute the inverses of square matrices [..., n, n]; raise LinAlgError for singular ones.

    Example:
        >>> import graphc as gc
        >>> gc.linalg.inv(gc.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    inverse = _inverse("inv", A)
    _require_finite("inv", inverse, A)
    return inverse


def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvExResult:
    """Compute ``inv`` with ``info`` (i32, [...]) instead of an error: the number of the first zero pivot, or 0."""
    inverse, info = _inverse("inv_ex", A), _info(_packed("inv_ex", A))
    if check_errors:
        require(ew.eq(info, 0), "linalg.inv_ex: a matrix is singular")
    return InvExResult(inverse, info)


# ---- triangular factors


def _packed(name: str, A: Tensor) -> Any:
    return place.apply(factors.lu, need_matrix(name, A))


def _together(packed: Any) -> Any:
    return packed[..., :-2]


def _info(packed: Any) -> Any:
    return _first_bad(ew.ne(_together(packed).detach().diagonal(0, -2, -1), 0))


def _need_pivot(name: str, pivot: bool) -> None:
    if not pivot:
        raise UnsupportedError(f"{name} without pivots", remedy="pass pivot=True")


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorExResult:
    """Compute the factors of ``lu`` in one matrix [..., m, n], the row exchanged in each step (i32, from 1), and the
    number of the first zero pivot, or 0."""
    _need_pivot("lu_factor", pivot)
    packed = _packed("lu_factor", A)
    info = _info(packed)
    if check_errors:
        require(ew.eq(info, 0), "linalg.lu_factor_ex: a pivot is 0")
    pivots = packed[..., : min(A.shape[-2:]), -2].detach().real
    return LUFactorExResult(_together(packed), ew.add(ew.cast(pivots, dtype=int32), 1), info)


def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactorResult:
    """Compute ``lu_factor_ex`` without its last result; raise LinAlgError for a zero pivot."""
    factorization = lu_factor_ex(A, pivot=pivot)
    require(ew.eq(factorization.info, 0), "linalg.lu_factor: a pivot is 0")
    return LUFactorResult(factorization.LU, factorization.pivots)


def lu(A: Tensor, *, pivot: bool = True) -> LUResult:
    """Compute P [..., m, m], L [..., m, k] with ones on its diagonal, and U [..., k, n] with ``A = P @ L @ U``; k is
    the smaller of m and n."""
    _need_pivot("lu", pivot)
    packed = _packed("lu", A)
    order = packed[..., -1].detach()
    P = factors.rows_to(order, A.dtype).mT
    return LUResult(P, *triangles(_together(packed)))


def triangles(LU: Any) -> tuple[Any, Any]:
    """Split a matrix [..., m, n] into L, with ones on its diagonal, and U."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    return ew.add(LU[..., :k].tril(-1), dispatch.current().constant(np.eye(m, k, dtype=LU.dtype.numpy))), LU[
        ..., :k, :
    ].triu()


def permutation(pivots: Tensor, m: int) -> Any:
    """Return the order of ``m`` rows after exchanging row i with row ``pivots[..., i] - 1``, one after the other
    (i64)."""
    rows = iota(shape=(m,), axis=0)
    order = expanded(rows.unsqueeze(0), tuple(pivots.shape[:-1]))[..., 0, :] if pivots.ndim > 1 else rows
    for i in range(pivots.shape[-1]):
        other = ew.sub(ew.cast(pivots[..., i : i + 1], dtype=int64), 1)
        there = ew.eq(rows, other)
        second = reduce.sum(ew.where(there, order, 0), axes=(order.ndim - 1,), keepdims=True)
        first = order[..., i : i + 1]
        order = ew.where(there, first, ew.where(ew.eq(rows, i), second, order))
    return order


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Solve ``A @ X = B`` (``left=False``: ``X @ A = B``; ``adjoint``: for A.mH) for X, given ``lu_factor(A)``."""
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    need_square("lu_solve", LU)
    need_float("lu_solve", LU, B)
    P = factors.rows_to(permutation(pivots, LU.shape[-1]), LU.dtype)
    if adjoint:
        inner = solve_triangular(LU.mH, B, upper=False)
        return P.mT @ solve_triangular(LU.mH, inner, upper=True, unitriangular=True)
    inner = solve_triangular(LU, P @ B, upper=False, unitriangular=True)
    return solve_triangular(LU, inner, upper=True)


# ---- determinants


def _pivots(name: str, A: Tensor) -> tuple[Any, Any]:
    """Return the diagonal of U, and the sign of the row exchanges."""
    need_square(name, A)
    packed = _packed(name, A)
    exchanged = ew.ne(packed[..., -2].detach(), ew.cast(iota(shape=(A.shape[-1],), axis=0), dtype=A.dtype))
    signs = ew.where(exchanged, expanded_number(A, -1.0), 1.0)
    return _together(packed).diagonal(0, -2, -1), reduce.prod(signs, axes=(signs.ndim - 1,))


def expanded_number(x: Any, value: float) -> Any:
    """Return a number as a tensor without dimensions in the type of ``x``."""
    return dispatch.current().scalar(value, x.dtype)


def det(A: Tensor) -> Tensor:
    """Compute the determinants [...] of square matrices [..., n, n]. The gradient of singular matrices is NaN.

    Example:
        >>> import graphc as gc
        >>> gc.linalg.det(gc.tensor([[2.0, 0.0], [1.0, 4.0]]))
        tensor(8.)
    """
    pivots, sign = _pivots("det", A)
    return reduce.prod(pivots, axes=(pivots.ndim - 1,)) * sign


def slogdet(A: Tensor) -> SlogdetResult:
    """Compute the signs of the determinants (0 for singular matrices; of absolute value 1 for complex ones), and the
    logarithms of their absolute values."""
    pivots, sign = _pivots("slogdet", A)
    signs = reduce.prod(ew.sign(pivots), axes=(pivots.ndim - 1,))
    return SlogdetResult(signs * sign, composite.total(mathematics.log(ew.abs(pivots)), -1))


def logdet(A: Tensor) -> Tensor:
    """Compute the logarithms of determinants: NaN for negative ones, minus infinity for singular matrices, complex for
    complex matrices."""
    sign, logarithm = slogdet(A)
    if A.dtype.is_complex:
        return mathematics.log(sign) + logarithm
    return ew.where(ew.lt(sign, 0), float("nan"), logarithm)
