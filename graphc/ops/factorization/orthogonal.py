"""QR factorization: by Householder reflections, in loops over a copy of the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import float32, int32, int64
from graphc.base.errors import DTypeError, GradientError, ShapeError
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.op import Attr, ErrorSample, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.batch import leading
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.define import define
from graphc.ops.factorization.factor_loops import Work, after, work_of
from graphc.ops.factorization.factors import adjoint, half_of_hermitian, part, solve_triangular, triangle
from graphc.ops.movement.shape import concat, filled
from graphc.ops.pointwise.elementwise import add, sub
from graphc.ops.pointwise.parts_of_complex import conjugate
from graphc.ops.rules import check_kind, show
from graphc.ops.samples import floats


def _inner(m: int, n: int, complete: bool) -> int:
    """Return the number of columns of Q, which is the number of rows of R."""
    return m if complete else min(m, n)


def _infer(a: TensorType, complete: bool) -> TensorType:
    check_kind("qr", 0, a.dtype, "fc")
    if a.rank < 2:
        raise ShapeError(f"qr takes matrices, got {show(a.shape)}", remedy="pass at least two dimensions")
    *batch, m, n = a.shape
    return TensorType(a.dtype, (*batch, m, _inner(m, n, complete) + n))


def _reference(a: np.ndarray, complete: bool) -> np.ndarray:
    q, r = np.linalg.qr(a, mode="complete" if complete else "reduced")
    rows = np.zeros((*r.shape[:-2], q.shape[-2] - r.shape[-2], r.shape[-1]), a.dtype)
    return np.concatenate([q, np.concatenate([r, rows], -2)], -1).astype(a.dtype)


def _reflect(w: Work, k: Index, m: int, v: int) -> None:
    """Reflect the rows from ``k`` on so that column ``k`` becomes 0 below its diagonal; ``v`` is a scratch column. As
    in LAPACK, a column with zeros below the diagonal stays unchanged (Golub, van Loan, Matrix computations, section
    5.1)."""
    nest = w.nest
    first = w.load(k, k)
    below = nest.reduce("add", 0, w.dtype, [m], lambda i: w.kept(after(nest, i, k), w.load(i, k) * w.load(i, k)))
    norm = nest.op("sqrt", nest.fma(first, first, below))
    target = -nest.op("copysign", norm, first)
    is_zero = below.eq(0)
    head = nest.select(is_zero, 1.0, first - target)
    factor = nest.select(is_zero, 0.0, -(head / nest.select(is_zero, 1.0, target)))
    with nest.loop(m) as i:
        tail = w.kept(after(nest, i, k), w.load(i, k) / head)
        w.store(i, v, nest.select(nest.index(i, int32).eq(nest.index(k, int32)), 1.0, tail))
    with nest.loop(w.columns) as j:
        along = nest.reduce("add", 0, w.dtype, [m], lambda i: w.load(i, v) * w.load(i, j))
        w.store(m, j, -(along * factor))
    with nest.loop(m) as i:
        own = w.load(i, v)
        with nest.loop(w.columns) as j:
            w.store(i, j, nest.fma(own, w.load(m, j), w.load(i, j)))


def _nest(c: LowerContext, a: OperandRef, complete: bool) -> None:
    """Reflect the matrix, and the identity right of it, which becomes the transposed Q."""
    nest, (m, n) = c.nest, a.shape[-2:]
    inner = _inner(m, n, complete)
    with nest.loops(a.shape[:-2]) as at:
        w = work_of(c, a.dtype, m + 1, n + m + 1)
        with nest.loops((m, n)) as (i, j):
            w.store(i, j, c.load(a, (*at, i, j)))
        with nest.loops((m, m)) as (i, j):
            same = nest.index(i, int32).eq(nest.index(j, int32))
            w.store(i, j + n, nest.select(same, nest.const(1, a.dtype), 0))
        with nest.loop(min(m, n), "serial") as k:
            _reflect(w, k, m, n + m)
        with nest.loops((m, inner)) as (i, j):
            c.store((*at, i, j), w.load(j, i + n))
        with nest.loops((m, n)) as (i, j):
            c.store((*at, i, j + inner), w.nest.select(after(w.nest, i, j), 0, w.load(i, j)))


def _gradient(g: Any, result: Any, a: Any, complete: bool) -> Any:
    """Apply Walter, Lehmann, Algorithmic differentiation of linear algebra functions, 2010, section 3.2. For wide
    matrices, the columns right of a square are Q.H times the original ones."""
    m, n = a.shape[-2:]
    k = min(m, n)
    if complete and m > n:
        raise GradientError(
            f"qr of {list(a.shape)} with complete Q has no gradient, since its last columns are not unique",
            remedy='pass mode="reduced"',
        )
    if not k:
        return filled(0, a.dtype, a.shape)
    q, g_q = part(result, (0, m), (0, k)), part(g, (0, m), (0, k))
    r, g_r = part(result, (0, k), (k, 2 * k)), triangle(part(g, (0, k), (k, 2 * k)), 0, upper=True)
    right = []
    if n > m:
        g_rest = part(g, (0, k), (2 * k, k + n))
        g_q = add(g_q, matmul(part(a, (0, m), (k, n)), conjugate(g_rest), transpose_b=True))
        right = [matmul(q, g_rest)]
    mixed = sub(matmul(r, conjugate(g_r), transpose_b=True), matmul(conjugate(g_q), q, transpose_a=True))
    symmetric = add(half_of_hermitian(mixed), adjoint(triangle(mixed, -1)))
    inner = add(g_q, matmul(q, symmetric))
    full = adjoint(solve_triangular(r, adjoint(inner), upper=True))
    return concat(full, *right, axis=len(a.shape) - 1) if right else full


qr = define(
    "qr",
    "Orthogonal and upper triangular factors in one array: Q [.., m, k], then R [k, n] with zeros below it; k is the "
    "smaller of m and n, or m if it is complete.",
    "a",
    _infer,
    attrs=[Attr("complete", "bool", "Q is square", False, False)],
    reference=_reference,
    vjp=(_gradient,),
    lower_nest=_nest,
    traits=Trait.PURE | Trait.MATERIALIZE,
    batch=leading,
    samples=lambda: [
        Sample((floats((3, 3)) + 2 * np.eye(3),)),
        Sample((floats((2, 4, 3)) + np.eye(4, 3),)),
        Sample((floats((2, 3)) + np.eye(2, 3),)),
        Sample((floats((4, 2)),), {"complete": True}, False),
        Sample((np.asarray(floats((2, 5, 4)) + np.eye(5, 4), "float32"),)),
        Sample((np.eye(3),), differentiable=False),
        Sample((floats((1, 1)),)),
        Sample((floats((2, 0, 3)),)),
        Sample((floats((3, 0)),)),
    ],
    error_samples=[
        ErrorSample((TensorType(float32, (3,)),), "takes matrices, got [3]", {}, ShapeError),
        ErrorSample((TensorType(int64, (3, 3)),), "signed integer", {}, DTypeError),
    ],
)
