"""Eigenvalues and eigenvectors of symmetric matrices, by Jacobi rotations.

For up to 3 rows the rotations are unrolled, so that each lane works on a matrix; larger matrices use loops over a copy.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, int32, int64
from graphc.base.errors import DTypeError, ShapeError
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.op import ErrorSample, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.batch import leading
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.define import define
from graphc.ops.factorization.factor_loops import Work, after, work_of
from graphc.ops.factorization.factors import adjoint, check_square, half_of_hermitian, part, triangle, turned
from graphc.ops.movement.shape import reshape
from graphc.ops.pointwise.elementwise import add, div, eq, mul, sub, where
from graphc.ops.pointwise.parts_of_complex import conjugate
from graphc.ops.samples import floats


def _infer(a: TensorType) -> TensorType:
    check_square("eigh", a)
    return TensorType(a.dtype, (*a.shape[:-1], a.shape[-1] + 1))


def _reference(a: np.ndarray) -> np.ndarray:
    try:
        values, vectors = np.linalg.eigh(a)
    except np.linalg.LinAlgError:
        return np.full((*a.shape[:-1], a.shape[-1] + 1), np.nan, a.dtype)
    largest = np.argmax(np.abs(vectors), -2, keepdims=True) if a.shape[-1] else np.zeros((*a.shape[:-2], 1, 0), int)
    largest_elements = np.take_along_axis(vectors, largest, -2)
    signs = np.where(largest_elements < 0, -1, 1) if a.dtype.kind != "c" else np.conj(np.sign(largest_elements))
    return np.concatenate([values[..., None], vectors * signs], -1).astype(a.dtype)


def sweeps(n: int) -> int:
    """Return the number of sweeps over all pairs of rows. Determined by counting until the off-diagonal elements were
    rounding errors: f64 matrices of 4, 8, 16 and 24 rows took at most 4, 7, 10 and 11."""
    return min(n + 2, 3 + 2 * (n - 1).bit_length())


_WRITTEN_OUT = 3
"""Rows of the largest unrolled matrices, which are scalars in the kernel: each rotation of each sweep has its own
code."""


def _angle(nest: NestBuilder, first: Scalar, second: Scalar, off_diagonal: Scalar) -> tuple[Scalar, Scalar]:
    """Return the cosine and sine of the rotation that zeroes ``off_diagonal``, the element between two diagonal ones
    (Golub, van Loan, Matrix computations, section 8.5)."""
    one, done = nest.const(1, first.dtype), off_diagonal.eq(0)
    ratio = (second - first) / (nest.select(done, one, off_diagonal) * 2.0)
    root = nest.op("sqrt", nest.fma(ratio, ratio, 1.0))
    tangent = nest.select(done, 0.0, nest.op("copysign", one, ratio) / (nest.op("abs", ratio) + root))
    cosine = 1.0 / nest.op("sqrt", nest.fma(tangent, tangent, 1.0))
    return cosine, tangent * cosine


def _rotate(w: Work, p: Index, q: Index, n: int) -> None:
    """Zero the elements (p, q) and (q, p); the columns right of the matrix take part in row operations only."""
    nest = w.nest
    cosine, sine = _angle(nest, w.load(p, p), w.load(q, q), w.load(p, q))
    with nest.loop(w.columns) as j:
        a, b = w.load(p, j), w.load(q, j)
        w.store(p, j, cosine * a - sine * b)
        w.store(q, j, sine * a + cosine * b)
    with nest.loop(n) as i:
        a, b = w.load(i, p), w.load(i, q)
        w.store(i, p, cosine * a - sine * b)
        w.store(i, q, sine * a + cosine * b)


def _nest(c: LowerContext, a: OperandRef) -> None:
    """Diagonalize the matrix, while the identity right of it becomes the transposed eigenvectors; then sort them."""
    nest, n = c.nest, a.shape[-1]
    if n <= _WRITTEN_OUT:
        return _nest_written_out(c, a)
    with nest.loops(a.shape[:-2]) as at:
        w = work_of(c, a.dtype, n, 2 * n)
        with nest.loops((n, n)) as (i, j):
            lower, upper = c.load(a, (*at, i, j)), c.load(a, (*at, j, i))
            w.store(i, j, nest.select(after(nest, j, i), upper, lower))
        with nest.loops((n, n)) as (i, j):
            same = nest.index(i, int32).eq(nest.index(j, int32))
            w.store(i, j + n, nest.select(same, nest.const(1, a.dtype), 0))
        with (
            nest.loop(sweeps(n), "serial"),
            nest.loop(n // 2, "serial") as distance,
            nest.loop(n, "serial") as p,
        ):
            _rotate(w, p, (p + distance + 1) % n, n)
        with nest.loop(n, "serial") as k:
            position, sign = _position(w, k, n), _sign(w, k, n)
            c.store((*at, position, 0), w.load(k, k))
            with nest.loop(n) as i:
                c.store((*at, i, position + 1), w.load(k, i + n) * sign)


def _nest_written_out(c: LowerContext, a: OperandRef) -> None:
    nest, n = c.nest, a.shape[-1]
    with nest.loops(a.shape[:-2]) as at:
        w = [[c.load(a, (*at, max(i, j), min(i, j))) for j in range(n)] for i in range(n)]
        vectors = [[nest.const(i == j, a.dtype) for j in range(n)] for i in range(n)]
        for _ in range(sweeps(n)):
            for p, q in combinations(range(n), 2):
                cosine, sine = _angle(nest, w[p][p], w[q][q], w[p][q])
                for rows in (w, vectors):
                    rows[p], rows[q] = _rotated(rows[p], rows[q], cosine, sine)
                for row in w:
                    (row[p],), (row[q],) = _rotated([row[p]], [row[q]], cosine, sine)
        eigenpairs = [[w[i][i], *vectors[i]] for i in range(n)]
        for i, j in combinations(range(n), 2):
            is_larger, both = eigenpairs[j][0] < eigenpairs[i][0], list(zip(eigenpairs[i], eigenpairs[j], strict=True))
            eigenpairs[i] = [nest.select(is_larger, y, x) for x, y in both]
            eigenpairs[j] = [nest.select(is_larger, x, y) for x, y in both]
        for k, (value, *vector) in enumerate(eigenpairs):
            sign = _sign_of(nest, vector)
            c.store((*at, k, 0), value)
            for i, x in enumerate(vector):
                c.store((*at, i, k + 1), x * sign)


def _rotated(a: list[Scalar], b: list[Scalar], cosine: Scalar, sine: Scalar) -> tuple[list[Scalar], list[Scalar]]:
    both = list(zip(a, b, strict=True))
    return [cosine * x - sine * y for x, y in both], [sine * x + cosine * y for x, y in both]


def _sign_of(nest: NestBuilder, vector: list[Scalar]) -> Scalar:
    most, least = (reduce(lambda x, y, name=name: nest.op(name, x, y), vector) for name in ("max", "min"))
    return nest.select(-least > most, nest.const(-1, most.dtype), 1.0)


def _position(w: Work, k: Index, n: int) -> Index:
    """Return the number of eigenvalues before number ``k``; equal ones are ordered by their numbers."""
    nest, own = w.nest, w.load(k, k)

    def before(j: Index) -> Scalar:
        other = w.load(j, j)
        first = (other < own) | (other.eq(own) & after(nest, k, j))
        return nest.select(first, nest.const(1, int32), 0)

    return nest.dynamic(nest.reduce("add", 0, int32, [n], before).cast(int64), 0, n - 1)


def _sign(w: Work, k: Index, n: int) -> Scalar:
    """Return -1 where the largest element of an eigenvector is negative, else 1."""
    nest = w.nest
    most, least = (nest.reduce(name, 0.0, w.dtype, [n], lambda i: w.load(k, i + n)) for name in ("max", "min"))
    return nest.select(-least > most, nest.const(-1, w.dtype), 1.0)


def _gradient(g: Any, result: Any, a: Any) -> Any:
    """Apply the formula of Giles, Collected matrix derivative results, 2008, section 3.1, for the lower triangle; terms
    between equal eigenvalues are zero."""
    n = a.shape[-1]
    if not n:
        return mul(a, 0.0)
    values, vectors = part(result, (0, n), (0, 1)), part(result, (0, n), (1, n + 1))
    g_values, g_vectors = part(g, (0, n), (0, 1)), part(g, (0, n), (1, n + 1))
    gaps = sub(turned(values), values)
    zero = eq(gaps, 0)
    inner = where(zero, 0, div(matmul(conjugate(vectors), g_vectors, transpose_a=True), where(zero, 1, gaps)))
    spread = mul(vectors, reshape(g_values, shape=(*a.shape[:-2], 1, n)))
    right = conjugate(vectors)
    full = add(
        matmul(spread, right, transpose_b=True),
        matmul(matmul(vectors, inner), right, transpose_b=True),
    )
    return add(half_of_hermitian(full), triangle(adjoint(full), -1))


def _symmetric(*shape: int) -> np.ndarray:
    x = floats(shape)
    return x + x.swapaxes(-1, -2) + 3 * np.diag(np.arange(float(shape[-1])))


eigh = define(
    "eigh",
    "Eigenvalues and eigenvectors of symmetric or Hermitian matrices [.., n, n]; only the lower triangle is read. The "
    "result is a column of ascending values, followed by the vectors as columns whose largest elements are positive.",
    "a",
    _infer,
    reference=_reference,
    vjp=(_gradient,),
    lower_nest=_nest,
    traits=Trait.PURE | Trait.MATERIALIZE,
    batch=leading,
    samples=lambda: [
        Sample((_symmetric(3, 3),)),
        Sample((_symmetric(2, 2, 2),)),
        Sample((_symmetric(2, 4, 4).astype("float32"),), differentiable=False),
        Sample((_symmetric(5, 5),), differentiable=False),
        Sample((np.diag([3.0, 1.0, 2.0]),), differentiable=False),
        Sample((_symmetric(1, 1),)),
        Sample((np.ones((2, 3, 3)) - np.diag([0.0, 1.0, 2.0]),), differentiable=False),
        Sample((floats((2, 0, 0)),)),
        Sample((floats((0, 3, 3)),)),
    ],
    error_samples=[
        ErrorSample((TensorType(float32, (2, 3)),), "square matrices, got [2,3]", {}, ShapeError),
        ErrorSample((TensorType(int64, (3, 3)),), "signed integer", {}, DTypeError),
    ],
)
