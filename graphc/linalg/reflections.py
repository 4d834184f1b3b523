"""Products of Householder reflections, and orthogonal factors in the form of such reflections.

A reflection is ``1 - tau * v @ v.mH``, where v is 0 above a row, 1 in it, and below it equals a column of the matrix
below the diagonal, as LAPACK stores it (Golub, van Loan, Matrix computations, section 5.1).
"""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ShapeError
from graphc.linalg.checks import expanded, identity, need_float, need_matrix
from graphc.linalg.results import GeqrfResult
from graphc.ops.effects.state import straight_through
from graphc.ops.pointwise import elementary
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.pointwise.parts_of_complex import named
from graphc.ops.reduction import reduce
from graphc.ops.selection.index import iota
from graphc.tensors import composite
from graphc.tensors.free_functions import stack
from graphc.tensors.tensor import Tensor

__all__ = ["householder_product"]


def _reflected(A: Tensor, tau: Tensor, X: Any, adjoint: bool) -> Any:
    """Multiply the product of all reflections, or its adjoint, by X [..., m, n]."""
    m, k = A.shape[-2], tau.shape[-1]
    below, units = A.tril(-1), identity(A, m)
    for i in range(k) if adjoint else reversed(range(k)):
        v = below[..., i : i + 1] + units[:, i : i + 1]
        factor = tau[..., i, None, None]
        X = X - (factor.conj() if adjoint else factor) * v * (v.mH @ X)
    return X


def _check(name: str, A: Any, tau: Any) -> None:
    need_matrix(name, A)
    need_float(name, A, tau)
    if tau.ndim != A.ndim - 1 or tau.shape[:-1] != A.shape[:-2] or tau.shape[-1] > min(A.shape[-2:]):
        raise ShapeError(f"{name}: reflections of shape {list(A.shape)} do not fit factors of shape {list(tau.shape)}")


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """Compute the first n columns of the product of reflections ``1 - tau[..., i] * v @ v.mH``, where v is column i of
    A [..., m, n] with 0 above its diagonal and 1 on it."""
    _check("householder_product", A, tau)
    if A.shape[-2] < A.shape[-1]:
        raise ShapeError(
            f"householder_product: a product of reflections of shape {list(A.shape)} has fewer than {A.shape[-1]} "
            f"columns"
        )
    columns = identity(A, A.shape[-2])[:, : A.shape[-1]]
    return _reflected(A, tau, straight_through(A * 0, expanded(columns, tuple(A.shape[:-2]))), False)


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Compute ``Q @ other`` (``left=False``: ``other @ Q``; ``transpose``: with Q.mH), where Q [..., m, m] is the full
    product of the reflections of ``householder_product(input, tau)``."""
    if not left:
        need_matrix("ormqr", other)
        return ormqr(input, tau, other.mH, True, not transpose).mH
    _check("ormqr", input, tau)
    need_float("ormqr", input, need_matrix("ormqr", other))
    if other.shape[-2] != input.shape[-2] or tuple(other.shape[:-2]) != tuple(input.shape[:-2]):
        raise ShapeError(
            f"ormqr: reflections of shape {list(input.shape)} do not fit matrices of shape {list(other.shape)}"
        )
    return _reflected(input, tau, other, transpose)


def geqrf(input: Tensor) -> GeqrfResult:
    """Return the factors of ``qr`` of [..., m, n] in one matrix: R in its upper triangle, and below it the reflections
    whose product with the factors ``tau`` [..., k] is Q; k is the smaller of m and n."""
    m, n = need_matrix("geqrf", input).shape[-2:]
    a, taus = input, []
    rows, columns = iota(shape=(m, 1), axis=0), iota(shape=(1, n), axis=1)
    for k in range(min(m, n)):
        first, below = a[..., k : k + 1, k : k + 1], ew.where(ew.gt(rows, k), a[..., k : k + 1], 0)
        tau, target, scale = _reflection(first, below)
        v = ew.add(ew.mul(below, scale), ew.cast(ew.eq(rows, k), dtype=a.dtype))
        rest = ew.sub(a, tau.conj() * v * (v.mH @ a))
        inside = ew.where(ew.gt(rows, k), v, ew.where(ew.eq(rows, k), target, a))
        a = ew.where(ew.gt(columns, k), rest, ew.where(ew.eq(columns, k), inside, a))
        taus.append(tau[..., 0, 0])
    return GeqrfResult(a, stack(taus, -1) if taus else input.new_empty(*input.shape[:-2], 0))


def _reflection(first: Any, below: Any) -> tuple[Any, Any, Any]:
    """Return the reflection that maps a column (``first``, then ``below``) to one number and zeros: tau, that number,
    and the factor for the elements below. If they are zero already and ``first`` is real, tau is 0."""
    real = first.real
    rest = reduce.sum(composite.squared(below), axes=(below.ndim - 2,), keepdims=True)
    is_trivial = ew.eq(rest, 0)
    if first.dtype.is_complex:
        is_trivial = ew.logical_and(is_trivial, ew.eq(first.imag, 0))
    norm = mathematics.sqrt(ew.where(is_trivial, 1.0, ew.add(composite.squared(first), rest)))
    target = ew.where(is_trivial, real, ew.neg(elementary.copysign(norm, real)))
    safe = ew.where(is_trivial, 1.0, target)
    tau = ew.where(is_trivial, 0.0, ew.div(ew.sub(safe, real), safe))
    if first.dtype.is_complex:
        tau = named.complex(tau, ew.where(is_trivial, 0.0, ew.neg(ew.div(first.imag, safe))))
    scale = ew.div(1.0, ew.where(is_trivial, 1.0, ew.sub(first, safe)))
    return tau, ew.cast(target, dtype=first.dtype), scale
