"""Kernels of matrix factorizations and linear solvers, as loops over a copy of the matrix with lanes along its rows.

They avoid triangular loops: to leave a row unchanged, they add 0 times another one.
"""

from __future__ import annotations

import math

from graphc.base.dtypes import DType, int32, int64
from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.ir.kernel.index import Index, IndexLike, as_index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar

_ROW_MULTIPLE = 16
"""Multiple to which the elements of a row are padded: reading memory after a masked store is slow. Measured: Cholesky
factors of 12 rows in 0.6 of the time."""


@dataclass(frozen=True)
class Work:
    """Working copy of a matrix, in scratch memory."""

    nest: NestBuilder
    buffer: str
    dtype: DType
    columns: int

    def load(self, row: IndexLike, column: IndexLike) -> Scalar:
        """Load an element."""
        return self.nest.load_at(self.buffer, as_index(row) * self.columns + column, self.dtype)

    def store(self, row: IndexLike, column: IndexLike, value: Scalar) -> None:
        """Store an element."""
        self.nest.store_at(self.buffer, as_index(row) * self.columns + column, value)

    def kept(self, condition: Scalar, value: Scalar) -> Scalar:
        """Return the value where a condition holds, else 0."""
        return self.nest.select(condition, value, 0)


def work_of(c: LowerContext, dtype: DType, rows: int, columns: int) -> Work:
    """Allocate the working matrix of a kernel (one per kernel); padding columns are zero."""
    padded = columns if is_size(columns) else -(-columns // _ROW_MULTIPLE) * _ROW_MULTIPLE
    w = Work(c.nest, c.scratch(dtype, rows * padded), dtype, padded)
    with c.nest.loops((rows, padded - columns)) as (i, j):
        w.store(i, j + columns, c.nest.const(0, dtype))
    return w


def after(nest: NestBuilder, i: Index, k: Index) -> Scalar:
    """Emit the comparison ``i > k``."""
    return nest.index(i, int32) > nest.index(k, int32)


# ---- elimination


def _pivot_row(w: Work, k: Index, rows: int) -> Index:
    """Return the row from ``k`` on with the largest element in column ``k``, the first of equal ones."""
    nest = w.nest

    def size(i: Index) -> Scalar:
        return nest.select(after(nest, k, i), -1.0, nest.op("abs", w.load(i, k)))

    largest = nest.reduce("max", -1.0, w.dtype, [rows], size)
    last = nest.const(rows - 1, int32)
    first = nest.reduce(
        "min", rows - 1, int32, [rows], lambda i: nest.select(size(i).eq(largest), nest.index(i, int32), last)
    )
    # NOTE: no element equals NaN; the default, the last row, is never before k.
    return nest.dynamic(first.cast(int64), 0, rows - 1)


def _exchange(w: Work, k: Index, other: Index) -> None:
    with w.nest.loop(w.columns) as j:
        old, new = w.load(k, j), w.load(other, j)
        w.store(k, j, new)
        w.store(other, j, old)


def solve_in_loops(c: LowerContext, a: OperandRef, b: OperandRef) -> None:
    """Eliminate with all right-hand sides at once (Gauss), then substitute from the last row up."""
    nest, n, width = c.nest, a.shape[-1], b.shape[-1]
    with nest.loops(a.shape[:-2]) as at:
        w = work_of(c, a.dtype, n, n + width)
        with nest.loops((n, n)) as (i, j):
            w.store(i, j, c.load(a, (*at, i, j)))
        with nest.loops((n, width)) as (i, j):
            w.store(i, j + n, c.load(b, (*at, i, j)))
        with nest.loop(n, "serial") as k:
            _exchange(w, k, _pivot_row(w, k, n))
            inverse = 1.0 / w.load(k, k)
            with nest.loop(n) as i:
                factor = -w.kept(after(nest, i, k), w.load(i, k) * inverse)
                with nest.loop(w.columns) as j:
                    w.store(i, j, nest.fma(factor, w.load(k, j), w.load(i, j)))
        _from_below(w, n, width)
        with nest.loops((n, width)) as (i, j):
            c.store((*at, i, j), w.load(i, j + n))


def _from_below(w: Work, n: int, width: int) -> None:
    """Substitute backwards: solve the upper triangle in the first ``n`` columns, in place of the columns right of
    it."""
    nest = w.nest
    with nest.loop(n, "serial") as step:
        i = -step + (n - 1)
        inverse = 1.0 / w.load(i, i)
        with nest.loop(width) as column:
            total = nest.reduce(
                "add", 0, w.dtype, [n], lambda j: w.kept(after(nest, j, i), w.load(i, j) * w.load(j, column + n))
            )
            w.store(i, column + n, (w.load(i, column + n) - total) * inverse)


def lu_in_loops(c: LowerContext, a: OperandRef) -> None:
    """Factor as ``solve_in_loops`` does, with the multipliers below the diagonal and row numbers in a last column."""
    nest, (m, n) = c.nest, a.shape[-2:]
    with nest.loops(a.shape[:-2]) as at:
        w = work_of(c, a.dtype, m, n + 1)
        with nest.loops((m, n)) as (i, j):
            w.store(i, j, c.load(a, (*at, i, j)))
        with nest.loop(m) as i:
            number = nest.index(i, int32).cast(a.dtype)
            w.store(i, n, number)
            c.store((*at, i, n), number)
        with nest.loop(min(m, n), "serial") as k:
            pivot_row = _pivot_row(w, k, m)
            c.store((*at, k, n), nest.index(pivot_row).cast(a.dtype))
            _exchange(w, k, pivot_row)
            pivot = w.load(k, k)
            inverse = 1.0 / nest.select(pivot.eq(0), 1.0, pivot)
            with nest.loop(m) as i:
                below, first = after(nest, i, k), w.load(i, k)
                factor = w.kept(below, first * inverse)
                with nest.loop(w.columns) as j:
                    rest = nest.fma(-factor, w.load(k, j), w.load(i, j))
                    right = after(nest, j, k) & (nest.index(j, int32) < n)
                    w.store(i, j, nest.select(right, rest, w.load(i, j)))
                w.store(i, k, nest.select(below, factor, first))
        with nest.loops((m, n)) as (i, j):
            c.store((*at, i, j), w.load(i, j))
        with nest.loop(m) as i:
            c.store((*at, i, n + 1), w.load(i, n))


# ---- triangles


def triangular_in_loops(c: LowerContext, a: OperandRef, b: OperandRef, upper: bool, unit: bool) -> None:
    """Solve row after row; the other triangle is not used."""
    nest, n, width = c.nest, a.shape[-1], b.shape[-1]
    with nest.loops(a.shape[:-2]) as at:
        w = work_of(c, a.dtype, n, width)
        with nest.loops((n, width)) as (i, column):
            w.store(i, column, c.load(b, (*at, i, column)))
        with nest.loop(n, "serial") as step:
            i = -step + (n - 1) if upper else step
            with nest.loop(width) as column:

                def product(j: Index, i: Index = i, column: Index = column) -> Scalar:
                    is_solved = after(nest, j, i) if upper else after(nest, i, j)
                    return w.kept(is_solved, c.load(a, (*at, i, j)) * w.load(j, column))

                rest = w.load(i, column) - nest.reduce("add", 0, a.dtype, [n], product)
                w.store(i, column, rest if unit else rest / c.load(a, (*at, i, i)))
        with nest.loops((n, width)) as (i, column):
            c.store((*at, i, column), w.load(i, column))


def cholesky_in_loops(c: LowerContext, a: OperandRef) -> None:
    """Compute the transposed factor row after row in the upper triangle of a copy; the lower triangle becomes
    arbitrary.

    A row without a positive pivot counts as 0 while others are updated, so that NaN spreads to itself and later rows
    only.
    """
    nest, n = c.nest, a.shape[-1]
    with nest.loops(a.shape[:-2]) as at:
        w = work_of(c, a.dtype, n, n)
        with nest.loops((n, n)) as (i, j):
            w.store(j, i, nest.select(after(nest, j, i), 0, c.load(a, (*at, i, j))))
        with nest.loop(n, "serial") as k:
            pivot = w.load(k, k)
            good = pivot > 0
            inverse, wrong = 1.0 / nest.op("sqrt", pivot), nest.select(good, nest.const(0, a.dtype), math.nan)
            with nest.loop(w.columns) as j:
                w.store(k, j, w.kept(good, w.load(k, j) * inverse))
            with nest.loop(n) as i:
                factor = -w.kept(after(nest, i, k), w.load(k, i) + wrong)
                with nest.loop(w.columns) as j:
                    w.store(i, j, nest.fma(factor, w.load(k, j), w.load(i, j)))
            with nest.loop(w.columns) as j:
                w.store(k, j, w.load(k, j) + wrong)
        with nest.loops((n, n)) as (i, j):
            below = after(nest, j, i)
            c.store((*at, i, j), nest.select(below, 0, w.load(j, i)))
