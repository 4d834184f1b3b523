"""Kernels of factors and solutions as loops over a copy of the matrix, with lanes along its rows.

They do without triangular loops: a row that shall stay is changed by 0 times another one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphc.base.dtypes import DType, int32, int64
from graphc.base.sizes.size import is_size
from graphc.ir.kernel.index import Index, IndexLike, as_index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar

_WHOLE = 16
"""Of how many elements a row is a multiple: what was stored under a mask is slow to be read again. Measured: factors of
12 rows by Cholesky in 0.6 of the time."""


@dataclass(frozen=True)
class Work:
    """The matrix that a kernel works on, in memory of its own."""

    nest: NestBuilder
    buffer: str
    dtype: DType
    columns: int

    def load(self, row: IndexLike, column: IndexLike) -> Scalar:
        """An element."""
        return self.nest.load_at(self.buffer, as_index(row) * self.columns + column, self.dtype)

    def store(self, row: IndexLike, column: IndexLike, value: Scalar) -> None:
        """Replaces an element."""
        self.nest.store_at(self.buffer, as_index(row) * self.columns + column, value)

    def kept(self, condition: Scalar, value: Scalar) -> Scalar:
        """The value where a condition holds, else 0."""
        return self.nest.select(condition, value, 0)


def work_of(c: LowerContext, dtype: DType, rows: int, columns: int) -> Work:
    """A matrix to work on, of which a kernel has one, with zeros in the columns that it has beside those asked for."""
    whole = columns if is_size(columns) else -(-columns // _WHOLE) * _WHOLE
    w = Work(c.nest, c.scratch(dtype, rows * whole), dtype, whole)
    with c.nest.loops((rows, whole - columns)) as (i, j):
        w.store(i, j + columns, c.nest.const(0, dtype))
    return w


def after(nest: NestBuilder, i: Index, k: Index) -> Scalar:
    """Whether ``i`` is larger than ``k``."""
    return nest.index(i, int32) > nest.index(k, int32)


# ---- elimination


def _pivot_row(w: Work, k: Index, rows: int) -> Index:
    """The row from ``k`` on with the largest element in column ``k``, the first of equal ones."""
    nest = w.nest

    def size(i: Index) -> Scalar:
        return nest.select(after(nest, k, i), -1.0, nest.op("abs", w.load(i, k)))

    largest = nest.reduce("max", -1.0, w.dtype, [rows], size)
    last = nest.const(rows - 1, int32)
    found = nest.reduce(
        "min", rows - 1, int32, [rows], lambda i: nest.select(size(i).eq(largest), nest.index(i, int32), last)
    )
    # NOTE: nothing is equal to NaN, and the last row is none before k.
    return nest.dynamic(found.cast(int64), 0, rows - 1)


def _exchange(w: Work, k: Index, found: Index) -> None:
    with w.nest.loop(w.columns) as j:
        old, new = w.load(k, j), w.load(found, j)
        w.store(k, j, new)
        w.store(found, j, old)


def solve_in_loops(c: LowerContext, a: OperandRef, b: OperandRef) -> None:
    """Gauss's algorithm beside all right sides, then from the last row up."""
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
    """The solutions of an upper triangle in the first ``n`` columns, in place of what stands right of it."""
    nest = w.nest
    with nest.loop(n, "serial") as step:
        i = -step + (n - 1)
        inverse = 1.0 / w.load(i, i)
        with nest.loop(width) as column:
            known = nest.reduce(
                "add", 0, w.dtype, [n], lambda j: w.kept(after(nest, j, i), w.load(i, j) * w.load(j, column + n))
            )
            w.store(i, column + n, (w.load(i, column + n) - known) * inverse)


def lu_in_loops(c: LowerContext, a: OperandRef) -> None:
    """As ``solve_in_loops``, with the multipliers below the diagonal and the numbers of rows in a last column."""
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
            found = _pivot_row(w, k, m)
            c.store((*at, k, n), nest.index(found).cast(a.dtype))
            _exchange(w, k, found)
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
    """Row after row; of what stands in the other triangle nothing counts."""
    nest, n, width = c.nest, a.shape[-1], b.shape[-1]
    with nest.loops(a.shape[:-2]) as at:
        w = work_of(c, a.dtype, n, width)
        with nest.loops((n, width)) as (i, column):
            w.store(i, column, c.load(b, (*at, i, column)))
        with nest.loop(n, "serial") as step:
            i = -step + (n - 1) if upper else step
            with nest.loop(width) as column:

                def product(j: Index, i: Index = i, column: Index = column) -> Scalar:
                    known = after(nest, j, i) if upper else after(nest, i, j)
                    return w.kept(known, c.load(a, (*at, i, j)) * w.load(j, column))

                rest = w.load(i, column) - nest.reduce("add", 0, a.dtype, [n], product)
                w.store(i, column, rest if unit else rest / c.load(a, (*at, i, i)))
        with nest.loops((n, width)) as (i, column):
            c.store((*at, i, column), w.load(i, column))


def cholesky_in_loops(c: LowerContext, a: OperandRef) -> None:
    """The transposed factor in the upper triangle of a copy, row after row; what is below becomes anything.

    A row without a positive pivot is 0 while others are changed, so that NaN comes to itself and to later ones only."""
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
