"""Matrix factorizations and linear solvers.

Kernels of small matrices keep them in scalars and unroll the algorithm, so that each lane works on a matrix; larger
ones use loops (see ``ops.factorization.factor_loops``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64, int64
from graphc.base.errors import DTypeError, ShapeError
from graphc.base.sizes.size import is_size
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.op import Attr, ErrorSample, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.batch import leading
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.define import define
from graphc.ops.factorization.factor_loops import cholesky_in_loops, lu_in_loops, solve_in_loops, triangular_in_loops
from graphc.ops.movement.shape import concat, reshape, slice, transpose
from graphc.ops.pointwise.elementwise import add, cast, eq, mul, neg, where
from graphc.ops.pointwise.parts_of_complex import conjugate, holomorphic, named
from graphc.ops.rules import check_kind, check_one_dtype, show
from graphc.ops.samples import floats
from graphc.ops.selection.index import iota

MATERIALIZED = Trait.PURE | Trait.MATERIALIZE
Rows = list[list[Scalar]]
"""A matrix in a kernel, as scalars."""
_COLUMNS = 8
"""Right-hand sides eliminated with one copy of the matrix. Further ones start again from the matrix, so that fewer
scalars are live at a time."""
_WRITTEN_OUT = 8
"""Rows of the largest unrolled matrices: code grows with their cube. Measured: LLVM takes 0.6 s for systems of 8 rows,
2.8 s for 12."""
_PANEL = 32
"""Columns of a panel, and rows of a triangle, that numpy processes one after the other. Any number is correct."""
_F = TensorType(float32, (3, 3))


# ---- types


def check_square(name: str, a: TensorType) -> None:
    """Raise ShapeError or DTypeError unless the type is square matrices of floats or complex numbers."""
    check_kind(name, 0, a.dtype, "fc")
    if a.rank < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name} takes square matrices, got {show(a.shape)}")


def _infer_system(name: str) -> Callable[..., TensorType]:
    def infer(a: TensorType, b: TensorType, **attrs: Any) -> TensorType:
        check_square(name, a)
        check_one_dtype(name, (a, b))
        if b.shape[:-1] != a.shape[:-1]:
            raise ShapeError(
                f"{name}: right sides {show(b.shape)} for matrices {show(a.shape)}",
                remedy="make all dimensions but the last one equal",
            )
        return b

    return infer


# ---- helpers of gradient rules


def turned(x: Any) -> Any:
    """Exchange the last two dimensions."""
    rank = len(x.shape)
    return transpose(x, permutation=(*range(rank - 2), rank - 1, rank - 2))


def adjoint(x: Any) -> Any:
    """Exchange the last two dimensions, and conjugate complex numbers."""
    return conjugate(turned(x))


def half_of_hermitian(x: Any) -> Any:
    """Return the lower triangle with a real diagonal."""
    if x.dtype.kind != "c":
        return triangle(x, 0)
    return named.complex(triangle(named.real(x), 0), triangle(named.imag(x), -1))


def triangle(x: Any, above: int, upper: bool = False) -> Any:
    """Return the elements on and below the diagonal ``above`` the main one (``upper``: on and above it), else 0."""
    rows, columns = x.shape[-2:]
    mask = np.triu(np.ones((rows, columns), np.bool_), above) if upper else np.tri(rows, columns, above, np.bool_)
    return where(dispatch.current().constant(mask), x, 0)


def part(x: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """Return a block of the matrices, given as half-open ranges of rows and columns."""
    rank = len(x.shape)
    starts = (*(0,) * (rank - 2), rows[0], columns[0])
    stops = (*x.shape[:-2], rows[1], columns[1])
    return slice(x, starts=starts, stops=stops, steps=(1,) * rank)


# ---- Cholesky


def _infer_cholesky(a: TensorType) -> TensorType:
    check_square("cholesky", a)
    return a


def each_matrix(compute: Callable[..., np.ndarray], *operands: np.ndarray) -> np.ndarray:
    """Apply a numpy function to matrices, with NaN for matrices which it rejects."""
    try:
        return compute(*operands)
    except np.linalg.LinAlgError:
        pass
    first = operands[-1]
    result = np.full(first.shape, np.nan, first.dtype)
    for at in np.ndindex(first.shape[:-2]):
        try:
            result[at] = compute(*[x[at] for x in operands])
        except np.linalg.LinAlgError:
            continue
    return result


def _cholesky_reference(a: np.ndarray) -> np.ndarray:
    """Factor the matrices. A matrix without a factor gives the factor of its largest positive definite leading block,
    and NaN in the rest."""
    factors = each_matrix(np.linalg.cholesky, a)
    for at in np.argwhere(np.isnan(factors).any((-2, -1))):
        matrix = a[tuple(at)]
        size = bisect_left(range(len(matrix)), True, key=partial(_lacks_factor, matrix))
        factors[*at, :size, :size] = np.linalg.cholesky(matrix[:size, :size])
    return factors


def _lacks_factor(matrix: np.ndarray, last: int) -> bool:
    """Check whether the leading block up to this row is not positive definite."""
    return bool(np.isnan(each_matrix(np.linalg.cholesky, matrix[: last + 1, : last + 1])).any())


def _nest_cholesky(c: LowerContext, a: OperandRef) -> None:
    n = a.shape[-1]
    if n > _WRITTEN_OUT:
        return cholesky_in_loops(c, a)
    with c.nest.loops(a.shape[:-2]) as at:
        factor: Rows = [[] for _ in range(n)]
        for j in range(n):
            pivot = _less(c.nest, c.load(a, (*at, j, j)), [(x, x) for x in factor[j]])
            root = c.nest.op("sqrt", pivot)
            inverse = 1.0 / root
            for i in range(j + 1, n):
                rest = _less(c.nest, c.load(a, (*at, i, j)), zip(factor[i], factor[j], strict=True))
                factor[i].append(rest * inverse)
            factor[j].append(root)
        zero = c.nest.const(0, a.dtype)
        for i, j in np.ndindex(n, n):
            c.store((*at, i, j), factor[i][j] if j <= i else zero)


def _less(nest: NestBuilder, start: Scalar, products: Any) -> Scalar:
    for x, y in products:
        start = nest.fma(-x, y, start)
    return start


def _cholesky_gradient(g: Any, result: Any, a: Any) -> Any:
    """Apply Murray, Differentiation of the Cholesky decomposition, 2016, equation 10, for the lower triangle."""
    upper = adjoint(result)
    inner = matmul(upper, g)
    halved = add(triangle(inner, -1), mul(mul(triangle(inner, 0), _identity(a)), 0.5))
    half = solve_triangular(upper, halved, upper=True)
    full = adjoint(solve_triangular(upper, adjoint(half), upper=True))
    return add(half_of_hermitian(full), triangle(adjoint(full), -1))


def _identity(x: Any) -> Any:
    return dispatch.current().constant(np.eye(x.shape[-1], dtype=x.dtype.numpy))


def _positive(*shape: int, dtype: str = "float64") -> np.ndarray:
    x = floats(shape, dtype)
    return np.asarray(x @ x.swapaxes(-1, -2) + 2 * np.eye(shape[-1]), dtype)


cholesky = define(
    "cholesky",
    "The lower triangular L of symmetric or Hermitian positive definite matrices L @ L.H; only the lower triangle is "
    "read. Other matrices give NaN on the diagonal from the first leading minor on that is not positive.",
    "a",
    _infer_cholesky,
    reference=_cholesky_reference,
    vjp=(_cholesky_gradient,),
    lower_nest=_nest_cholesky,
    traits=MATERIALIZED,
    batch=leading,
    samples=lambda: [
        Sample((_positive(3, 3),)),
        Sample((_positive(2, 4, 4),)),
        Sample((_positive(2, 3, 2, 2, dtype="float32"),)),
        Sample((_positive(1, 1),)),
        Sample((_positive(0, 3, 3),)),
        Sample((_positive(20, 3, 3, dtype="float32"),), differentiable=False),
        Sample((_positive(2, 9, 9),), differentiable=False),
    ],
    error_samples=[
        ErrorSample((TensorType(float32, (2, 3)),), "square matrices, got [2,3]", {}, ShapeError),
        ErrorSample((TensorType(int64, (2, 2)),), "signed integer", {}, DTypeError),
    ],
)


# ---- triangles


def _substitute(a: np.ndarray, b: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    """Solve row after row, and large triangles by halves."""
    n = a.shape[-1]
    if n <= _PANEL:
        x = np.array(b)
        for i in reversed(range(n)) if upper else range(n):
            solved = np.s_[i + 1 :] if upper else np.s_[:i]
            x[..., i, :] -= (a[..., i : i + 1, solved] @ x[..., solved, :])[..., 0, :]
            if not unit:
                x[..., i, :] /= a[..., i, i, None]
        return x
    first, rest = (np.s_[n // 2 :], np.s_[: n // 2]) if upper else (np.s_[: n // 2], np.s_[n // 2 :])
    start = _substitute(a[..., first, first], b[..., first, :], upper, unit)
    remaining = b[..., rest, :] - a[..., rest, first] @ start
    end = _substitute(a[..., rest, rest], remaining, upper, unit)
    return np.concatenate([end, start] if upper else [start, end], -2)


def _nest_triangular(c: LowerContext, a: OperandRef, b: OperandRef, upper: bool, unit: bool) -> None:
    n = a.shape[-1]
    if n > _WRITTEN_OUT:
        return triangular_in_loops(c, a, b, upper, unit)
    with c.nest.loops((*b.shape[:-2], b.shape[-1])) as (*at, column):
        solution: dict[int, Scalar] = {}
        for i in reversed(range(n)) if upper else range(n):
            products = [(c.load(a, (*at, i, j)), x) for j, x in solution.items()]
            rest = _less(c.nest, c.load(b, (*at, i, column)), products)
            solution[i] = rest if unit else rest / c.load(a, (*at, i, i))
        for i, x in solution.items():
            c.store((*at, i, column), x)


def _triangular_gradient_a(g: Any, result: Any, a: Any, b: Any, upper: bool, unit: bool) -> Any:
    right = solve_triangular(turned(a), g, upper=not upper, unit=unit)
    above = (1 if upper else -1) if unit else 0
    return triangle(neg(matmul(right, result, transpose_b=True)), above, upper)


def _triangular(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.asarray(floats(shape, dtype) + 3 * np.eye(shape[-1]), dtype)


solve_triangular = define(
    "solve_triangular",
    "The x of a @ x = b for triangular a. The other triangle is not read, nor the diagonal if it is unit.",
    "a b",
    _infer_system("solve_triangular"),
    attrs=[
        Attr("upper", "bool", "the upper triangle is read, not the lower one", False, False),
        Attr("unit", "bool", "the diagonal counts as ones", False, False),
    ],
    reference=_substitute,
    vjp=(
        holomorphic(_triangular_gradient_a),
        holomorphic(lambda g, result, a, b, upper, unit: solve_triangular(turned(a), g, upper=not upper, unit=unit)),
    ),
    lower_nest=_nest_triangular,
    traits=MATERIALIZED,
    batch=leading,
    samples=lambda: [
        *(
            Sample((_triangular(3, 3), floats((3, 2), seed=1)), {"upper": u, "unit": d})
            for u in (False, True)
            for d in (False, True)
        ),
        Sample((_triangular(2, 3, 3, dtype="float32"), floats((2, 3, 17), "float32")), {"upper": True}),
        Sample((_triangular(2, 0, 0), floats((2, 0, 2)))),
        *(
            Sample((_triangular(2, 9, 9), floats((2, 9, columns))), {"upper": u, "unit": d}, False)
            for columns, u, d in ((1, False, False), (3, True, False), (1, False, True))
        ),
    ],
    error_samples=[
        ErrorSample((_F, TensorType(float32, (2, 1))), "right sides [2,1] for matrices [3,3]", {}, ShapeError),
        ErrorSample((_F, TensorType(float64, (3, 1))), "element types differ", {}, DTypeError),
    ],
)


# ---- elimination


def _eliminate(nest: NestBuilder, rows: Rows, columns: int, full_rows: bool) -> list[Scalar]:
    """Run Gaussian elimination with partial pivoting in the first ``columns`` columns: multipliers below the diagonal,
    the remainder on and above it. Return the row numbers of the pivots. With ``full_rows``, exchange rows including
    their multipliers, which are 0 for a zero pivot."""
    dtype, pivots = rows[0][0].dtype, []
    for k in range(min(len(rows), columns)):
        pivots.append(_exchange(nest, rows, k, 0 if full_rows else k))
        pivot = rows[k][k]
        if full_rows:
            pivot = nest.select(pivot.eq(0), nest.const(1, dtype), pivot)
        inverse = 1.0 / pivot if k + 1 < len(rows) else pivot
        for row in rows[k + 1 :]:
            row[k] = row[k] * inverse
            minus = -row[k]
            for j in range(k + 1, len(row)):
                row[j] = nest.fma(minus, rows[k][j], row[j])
    return pivots


def _exchange(nest: NestBuilder, rows: Rows, k: int, first: int) -> Scalar:
    """Move the row with the largest element of column ``k`` to row ``k``, in the columns from ``first`` on."""
    dtype = rows[k][k].dtype
    largest, pivot_row = nest.op("abs", rows[k][k]), nest.const(k, dtype)
    for i in range(k + 1, len(rows)):
        size = nest.op("abs", rows[i][k])
        larger = size > largest
        largest, pivot_row = nest.select(larger, size, largest), nest.select(larger, nest.const(i, dtype), pivot_row)
    old = list(rows[k])
    for i in range(k + 1, len(rows)):
        here = pivot_row.eq(i)
        for j in range(first, len(old)):
            rows[k][j] = nest.select(here, rows[i][j], rows[k][j])
            rows[i][j] = nest.select(here, old[j], rows[i][j])
    return pivot_row


def _blocks(width: int) -> list[tuple[int, int, int]]:
    """Return (first column, number of blocks, columns of each) that cover all right-hand sides."""
    if is_size(width):
        return [(0, width, 1)]
    full = width // _COLUMNS
    runs = [(0, full, _COLUMNS), (full * _COLUMNS, 1, width % _COLUMNS)]
    return [run for run in runs if run[1] and run[2]]


def _nest_solve(c: LowerContext, a: OperandRef, b: OperandRef) -> None:
    n, nest = a.shape[-1], c.nest
    if n > _WRITTEN_OUT:
        return solve_in_loops(c, a, b)
    for first, number, columns in _blocks(b.shape[-1]) if n else []:
        with nest.loops((*a.shape[:-2], number)) as (*at, block):
            targets = [block * columns + (first + j) for j in range(columns)]
            rows = [
                [c.load(a, (*at, i, j)) for j in range(n)] + [c.load(b, (*at, i, target)) for target in targets]
                for i in range(n)
            ]
            _eliminate(nest, rows, n, full_rows=False)
            for i in reversed(range(n)):
                inverse = 1.0 / rows[i][i]
                for j in range(n, n + columns):
                    products = [(rows[i][k], rows[k][j]) for k in range(i + 1, n)]
                    rows[i][j] = _less(nest, rows[i][j], products) * inverse
            for i in range(n):
                for j, target in enumerate(targets):
                    c.store((*at, i, target), rows[i][n + j])


solve = define(
    "solve",
    "The x of a @ x = b for square a; not finite where a is singular.",
    "a b",
    _infer_system("solve"),
    reference=lambda a, b: each_matrix(np.linalg.solve, a, b),
    vjp=(
        holomorphic(lambda g, result, a, b: neg(matmul(solve(turned(a), g), result, transpose_b=True))),
        holomorphic(lambda g, result, a, b: solve(turned(a), g)),
    ),
    lower_nest=_nest_solve,
    traits=MATERIALIZED,
    batch=leading,
    samples=lambda: [
        Sample((_triangular(3, 3), floats((3, 2), seed=1))),
        Sample((np.flip(_triangular(2, 4, 4), 1).copy(), floats((2, 4, 1), seed=1))),
        Sample((_triangular(2, 3, 3, dtype="float32"), floats((2, 3, 17), "float32"))),
        Sample((_triangular(0, 0), floats((0, 2)))),
        Sample((_triangular(1, 1), floats((1, 0)))),
        Sample((np.flip(_triangular(2, 9, 9), 1).copy(), floats((2, 9, 1))), differentiable=False),
        Sample((np.roll(_triangular(10, 10), 3, 1), floats((10, 4))), differentiable=False),
    ],
    error_samples=[
        ErrorSample((_F, TensorType(float32, (2, 1))), "right sides [2,1] for matrices [3,3]", {}, ShapeError),
        ErrorSample((TensorType(float32, (2, 3)),) * 2, "square matrices, got [2,3]", {}, ShapeError),
    ],
)


# ---- triangular factors


def _infer_lu(a: TensorType) -> TensorType:
    check_kind("lu", 0, a.dtype, "fc")
    if a.rank < 2:
        raise ShapeError(f"lu takes matrices, got {show(a.shape)}", remedy="pass at least two dimensions")
    return TensorType(a.dtype, (*a.shape[:-1], a.shape[-1] + 2))


def _sizes(x: np.ndarray) -> np.ndarray:
    """Return the magnitudes by which LAPACK chooses pivots: absolute values; for complex numbers, the sum over both
    parts."""
    return np.abs(np.real(x)) + np.abs(np.imag(x)) if x.dtype.kind == "c" else np.abs(x)


def _factor_panel(a: np.ndarray, order: np.ndarray, pivots: np.ndarray, first: int, end: int) -> None:
    """Eliminate the columns ``first`` to ``end`` of matrices [b, m, n] in place, exchanging entire rows."""
    every = np.arange(len(a))
    for k in range(first, min(end, *a.shape[1:])):
        pivot_rows = k + np.argmax(_sizes(a[:, k:, k]), 1)
        pivots[:, k] = pivot_rows
        for x in (a, order):
            x[every, k], x[every, pivot_rows] = x[every, pivot_rows], x[every, k]
        pivot = a[:, k, k, None]
        a[:, k + 1 :, k] /= np.where(pivot == 0, 1, pivot)
        a[:, k + 1 :, k + 1 : end] -= a[:, k + 1 :, k, None] * a[:, k, None, k + 1 : end]


def _lu_reference(a: np.ndarray) -> np.ndarray:
    """Factor panel after panel, and update the columns right of a panel by products."""
    *batch, m, n = a.shape
    factors = np.array(a).reshape(prod(batch), m, n)
    order = np.broadcast_to(np.arange(m), (len(factors), m)).copy()
    pivots = order.copy()
    for first in range(0, min(m, n), _PANEL):
        end = min(first + _PANEL, m, n)
        _factor_panel(factors, order, pivots, first, end)
        if end < n:
            top = _substitute(factors[:, first:end, first:end], factors[:, first:end, end:], upper=False, unit=True)
            factors[:, first:end, end:] = top
            factors[:, end:, end:] -= factors[:, end:, first:end] @ top
    packed = np.concatenate([factors, pivots[..., None], order[..., None]], -1).astype(a.dtype)
    return packed.reshape(*batch, m, n + 2)


def _nest_lu(c: LowerContext, a: OperandRef) -> None:
    *batch, m, n = a.shape
    if max(m, n) > _WRITTEN_OUT:
        return lu_in_loops(c, a)
    with c.nest.loops(batch) as at:
        numbers = [c.nest.const(i, a.dtype) for i in range(m)]
        rows = [[*(c.load(a, (*at, i, j)) for j in range(n)), numbers[i]] for i in range(m)]
        pivots = [] if not n else _factor(c.nest, rows, n)
        for i, row in enumerate(rows):
            for j, x in enumerate([*row[:n], pivots[i] if i < len(pivots) else numbers[i], row[n]]):
                c.store((*at, i, j), x)


def _factor(nest: NestBuilder, rows: Rows, columns: int) -> list[Scalar]:
    """Run ``_eliminate`` on rows followed by their numbers, which are only exchanged with them."""
    order = [row.pop() for row in rows]
    pivots = _eliminate(nest, rows, columns, full_rows=True)
    for k, pivot_row in enumerate(pivots):
        for i in range(k + 1, len(rows)):
            here = pivot_row.eq(i)
            first, second = order[k], order[i]
            order[k], order[i] = nest.select(here, second, first), nest.select(here, first, second)
    for row, number in zip(rows, order, strict=True):
        row.append(number)
    return pivots


def rows_to(order: Any, dtype: Any) -> Any:
    """Return the matrices that permute rows to an order [..., m]: row ``i`` of a product with one is row
    ``order[i]``."""
    *batch, m = order.shape
    wide = reshape(order, shape=(*batch, m, 1))
    return cast(eq(wide, cast(iota(shape=(m,), axis=0), dtype=order.dtype)), dtype=dtype)


def _lu_gradient(g: Any, result: Any, a: Any) -> Any:
    """Differentiate A = P L U: the square corner by both triangles; the blocks below or right of it by one triangular
    solve each."""
    m, n = a.shape[-2:]
    k = min(m, n)
    if not k:
        return mul(a, 0.0)
    corner, low, right = ((0, k), (0, k)), ((k, m), (0, k)), ((0, k), (k, n))
    factors, grad = part(result, *corner), part(g, *corner)
    below, above = triangle(grad, -1), triangle(grad, 0, upper=True)
    lower = add(triangle(factors, -1), _identity(factors))
    lower_term = matmul(lower, below, transpose_a=True)
    top = matmul(above, triangle(factors, 0, upper=True), transpose_b=True)
    if n > k:
        lower_term = add(lower_term, neg(matmul(part(g, *right), part(result, *right), transpose_b=True)))
    if m > k:
        top = add(top, neg(matmul(part(result, *low), part(g, *low), transpose_a=True)))
    inner = add(triangle(lower_term, -1), triangle(top, 0, upper=True))

    def by_upper(x: Any) -> Any:
        return turned(solve_triangular(factors, turned(x), upper=True))

    def by_lower(x: Any) -> Any:
        return solve_triangular(turned(factors), x, upper=True, unit=True)

    # NOTE: x U^-T is the transpose of U^-1 x^T.
    full = by_lower(by_upper(inner))
    if m > k:
        full = concat(full, by_upper(part(g, *low)), axis=len(a.shape) - 2)
    if n > k:
        full = concat(full, by_lower(part(g, *right)), axis=len(a.shape) - 1)
    order = reshape(part(result, (0, m), (n + 1, n + 2)), shape=a.shape[:-1])
    return matmul(rows_to(order, a.dtype), full, transpose_a=True)


lu = define(
    "lu",
    "Triangular factors of matrices [.., m, n] with partial pivoting: L without its ones below the diagonal, U on and "
    "above it. Two more columns follow: the rows with which pivots were exchanged, and the order of rows.",
    "a",
    _infer_lu,
    reference=_lu_reference,
    vjp=(holomorphic(_lu_gradient),),
    lower_nest=_nest_lu,
    traits=MATERIALIZED,
    batch=leading,
    samples=lambda: [
        Sample((np.flip(_triangular(3, 3), 0).copy(),)),
        Sample((np.roll(_triangular(2, 4, 4), 1, 1)[:, :, :2].copy(),)),
        Sample((np.roll(_triangular(2, 4, 4), 1, 2)[:, :3].copy(),)),
        Sample((_triangular(2, 3, 3, dtype="float32"),)),
        Sample((_triangular(1, 1),)),
        Sample((floats((2, 0, 3)),)),
        Sample((floats((3, 0)),)),
        Sample((np.flip(_triangular(2, 9, 9), 1)[:, :, :4].copy(),), differentiable=False),
        Sample((np.roll(_triangular(9, 9), 3, 1)[:7].copy(),), differentiable=False),
    ],
    error_samples=[ErrorSample((TensorType(float32, (3,)),), "takes matrices, got [3]", {}, ShapeError)],
)
