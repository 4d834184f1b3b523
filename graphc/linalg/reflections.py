"""Products of Householder's reflections, and orthogonal factors in the form of such reflections.

A reflection is ``1 - tau * v @ v.mH``, where v is 0 above a row, 1 there, and below it what a matrix holds below its
diagonal: as LAPACK stores them (Golub, van Loan, Matrix computations, section 5.1).
"""

from __future__ import annotations

from typing import Any

from graphc.base.errors import ShapeError
from graphc.linalg.checks import expanded, identity, need_float, need_matrix
from graphc.linalg.results import GeqrfResult
from graphc.ops import elementary, reduce
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops.index import iota
from graphc.ops.parts_of_complex import named
from graphc.ops.state import straight_through
from graphc.tensors import composite
from graphc.tensors.free_functions import stack
from graphc.tensors.tensor import Tensor


def _reflected(A: Tensor, tau: Tensor, X: Any, turned: bool) -> Any:
    """The product of all reflections and X [..., m, n]; ``turned``: of its conjugated transpose and X."""
    m, k = A.shape[-2], tau.shape[-1]
    below, units = A.tril(-1), identity(A, m)
    for i in range(k) if turned else reversed(range(k)):
        v = below[..., i : i + 1] + units[:, i : i + 1]
        factor = tau[..., i, None, None]
        X = X - (factor.conj() if turned else factor) * v * (v.mH @ X)
    return X


def _check(name: str, A: Any, tau: Any) -> None:
    need_matrix(name, A)
    need_float(name, A, tau)
    if tau.ndim != A.ndim - 1 or tau.shape[:-1] != A.shape[:-2] or tau.shape[-1] > min(A.shape[-2:]):
        raise ShapeError(f"{name}: reflections {list(A.shape)} with factors {list(tau.shape)}")


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of the product of reflections ``1 - tau[..., i] * v @ v.mH``, where v is column i of A
    [..., m, n] with 0 above its diagonal and 1 on it."""
    _check("householder_product", A, tau)
    if A.shape[-2] < A.shape[-1]:
        raise ShapeError(f"householder_product: there are not {A.shape[-1]} columns in products of {list(A.shape)}")
    columns = identity(A, A.shape[-2])[:, : A.shape[-1]]
    return _reflected(A, tau, straight_through(A * 0, expanded(columns, tuple(A.shape[:-2]))), False)


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """``Q @ other`` (``left=False``: ``other @ Q``; ``transpose``: with Q.mH), where Q [..., m, m] is the whole product
    of the reflections of ``householder_product(input, tau)``."""
    if not left:
        need_matrix("ormqr", other)
        return ormqr(input, tau, other.mH, True, not transpose).mH
    _check("ormqr", input, tau)
    need_float("ormqr", input, need_matrix("ormqr", other))
    if other.shape[-2] != input.shape[-2] or tuple(other.shape[:-2]) != tuple(input.shape[:-2]):
        raise ShapeError(f"ormqr: reflections {list(input.shape)} of matrices {list(other.shape)}")
    return _reflected(input, tau, other, transpose)


def geqrf(input: Tensor) -> GeqrfResult:
    """The factors of ``qr`` of [..., m, n] in one matrix: R in its upper triangle, and below it the reflections whose
    product with the factors ``tau`` [..., k] is Q, k the smaller of m and n."""
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
    """What turns a column ``first`` and ``below`` it into one number and zeros: tau, that number, and what the numbers
    below are to be multiplied by. Where there are zeros already and the number is real, nothing."""
    real = first.real
    rest = reduce.sum(composite.squared(below), axes=(below.ndim - 2,), keepdims=True)
    nothing = ew.eq(rest, 0)
    if first.dtype.is_complex:
        nothing = ew.logical_and(nothing, ew.eq(first.imag, 0))
    norm = mathematics.sqrt(ew.where(nothing, 1.0, ew.add(composite.squared(first), rest)))
    target = ew.where(nothing, real, ew.neg(elementary.copysign(norm, real)))
    safe = ew.where(nothing, 1.0, target)
    tau = ew.where(nothing, 0.0, ew.div(ew.sub(safe, real), safe))
    if first.dtype.is_complex:
        tau = named.complex(tau, ew.where(nothing, 0.0, ew.neg(ew.div(first.imag, safe))))
    scale = ew.div(1.0, ew.where(nothing, 1.0, ew.sub(first, safe)))
    return tau, ew.cast(target, dtype=first.dtype), scale
