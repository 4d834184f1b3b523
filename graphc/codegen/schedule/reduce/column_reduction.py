"""Column sums: rows are read in memory order, and a few at a time are added to a row of sums in scratch memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.base.locks import cached_property
from graphc.base.records import dataclass
from graphc.base.sizes.size import bounds, hint, is_size
from graphc.codegen.machine.costs import ReductionCosts
from graphc.codegen.schedule.loops.transform import block_index, blocks, wrap
from graphc.ir.kernel.access import UNIFORM, UNIT, access
from graphc.ir.kernel.index import Axis, Index, IndexLike, as_index
from graphc.ir.kernel.map import BodyCopier, Names, chain_of
from graphc.ir.kernel.products import PRODUCTS
from graphc.ir.kernel.statements import (
    Acc,
    Buffer,
    IndexLet,
    Let,
    Load,
    Loop,
    Read,
    Stmt,
    Store,
    Update,
    identity,
)

Ahead = Callable[[Index, int], tuple[Stmt, ...]]
"""Function of (first row, number of rows) that returns the statements to run before these rows are added."""


def is_column_sum(
    columns: Axis | None, before: Sequence[Stmt], loop: Loop, k: ReductionCosts, once: frozenset[str] = frozenset()
) -> bool:
    """Check whether a reduction for each of many columns reads rows of contiguous columns, longer than accumulators in
    registers cover.

    A product of a matrix with a vector counts if the matrix is among the buffers read ``once``; other products are left
    to codegen.schedule.contraction.match.
    """
    if columns is None or hint(columns.extent) <= k.wide or hint(loop.axis.extent) < k.high:
        return False
    if not all(isinstance(s, Acc | Let | IndexLet | Load) for s in before):
        return False
    body = leaf(loop)[1]
    loads = [s for s in body if isinstance(s, Load)]
    accesses = [access(s.index, columns) for s in loads]
    plain = all(isinstance(s, Load | Let | IndexLet | Update) and not getattr(s, "guard", ()) for s in body)
    lets = [s for s in body if isinstance(s, Let) and s.op != "cast"]
    product = UNIFORM in accesses and [s.op in PRODUCTS for s in lets] == [True] and len(loads) == 2
    again = any(s.buffer not in once for s, a in zip(loads, accesses, strict=True) if a == UNIT)
    return plain and not (product and again) and UNIT in accesses and all(a.plain for a in accesses)


def leaf(loop: Loop) -> tuple[list[Axis], tuple[Stmt, ...]]:
    """Return the axes and the innermost body of a perfect nest of reductions."""
    loops, body = chain_of(loop)
    return [inner.axis for inner in loops], body


def no_statements(_start: Index, _count: int) -> tuple[Stmt, ...]:
    """Return no statements (the default ``Ahead``)."""
    return ()


@dataclass(frozen=True)
class ColumnSums:
    """Builder of the sums over rows. ``before`` declares the accumulators of one column, ``loop`` updates them."""

    names: Names
    columns: Axis
    before: Sequence[Stmt]
    loop: Loop
    costs: ReductionCosts
    ahead: Ahead = no_statements

    @cached_property
    def axes(self) -> list[Axis]:
        """The reduced axes, outermost first."""
        return leaf(self.loop)[0]

    @cached_property
    def body(self) -> tuple[Stmt, ...]:
        """The statements for one element."""
        return leaf(self.loop)[1]

    @cached_property
    def accs(self) -> list[Acc]:
        """The accumulators of one column."""
        updated = {s.acc for s in self.body if isinstance(s, Update)}
        return [s for s in self.before if isinstance(s, Acc) and s.name in updated]

    @cached_property
    def widths(self) -> list[tuple[int, int, int]]:
        """Blocks of columns, as (start, count, size)."""
        return blocks(self.columns.extent, self.costs.row_bytes // sum(a.dtype.itemsize for a in self.accs))

    @cached_property
    def scratch(self) -> list[Buffer]:
        """The rows of sums."""
        longest = max(bounds(size)[1] for _, _, size in self.widths)
        return [Buffer(f"sums{i}", a.dtype, longest, "scratch") for i, a in enumerate(self.accs)]

    @property
    def rows(self) -> int:
        """Number of rows to add at a time."""
        k = self.costs
        return next((r for r in k.rows_together if r * len(self.body) <= k.row_statements), 1)

    def nest(
        self, axes: dict[Axis, Axis], start: Index, rows: int, target: Callable[[Acc, Index], tuple[str, Index]]
    ) -> tuple[Stmt, ...]:
        """Return the nest that adds up ``rows`` rows from ``start`` on.

        ``axes`` renames the enclosing loops; ``target`` maps an accumulator and a column to the (buffer, index) of the
        sum.
        """
        result: list[Stmt] = []
        for first, count, size in self.widths:
            number = self.names.axis("b", count)
            block = block_index(first, (number, size))
            body = [
                *self.each(size, self.reset),
                *self.add(size, {**axes, self.columns: block}, start, rows),
                *self.each(size, lambda c, block=block: self.flush(c, block, target)),
            ]
            result += wrap([(number, "parallel")], tuple(body))
        return tuple(result)

    def each(self, size: int, make: Callable[[Index], list[Stmt]]) -> tuple[Stmt, ...]:
        """Return a loop over a block of columns."""
        column = self.names.axis("c", size)
        return wrap([(column, "parallel")], tuple(make(as_index(column))))

    def reset(self, column: Index) -> list[Stmt]:
        """Initialize the sums of a column to the identity."""
        return [
            Store(b.name, column, identity(a.combine, a.dtype)) for a, b in zip(self.accs, self.scratch, strict=True)
        ]

    def flush(self, column: Index, block: Index, target: Callable[[Acc, Index], tuple[str, Index]]) -> list[Stmt]:
        """Store the sums of a column of a block at their target."""
        result: list[Stmt] = []
        for acc, sums in zip(self.accs, self.scratch, strict=True):
            value = self.names.scalar("p")
            buffer, index = target(acc, block + column)
            result += [Load(value, sums.name, column, acc.dtype), Store(buffer, index, value)]
        return result

    def add(self, size: int, axes: dict[Axis, IndexLike], start: Index, rows: int) -> tuple[Stmt, ...]:
        """Return the loops over the rows, some of them at a time."""
        step, *inner = [self.names.axis("k", rows), *(self.names.axis("k", a.extent) for a in self.axes[1:])]
        mapping = {**axes, self.axes[0]: start + as_index(step), **dict(zip(self.axes[1:], inner, strict=True))}
        around, last = [step, *inner][:-1], [step, *inner][-1]
        base = start if not inner else as_index(0)
        result: list[Stmt] = []
        full, rest = last.extent // self.rows, last.extent % self.rows
        remainder = (rest, 1) if is_size(rest) else (1, rest)
        for first, count, together in ((0, full, self.rows), (full * self.rows, *remainder)):
            if not count or not together:
                continue
            number = self.names.axis("k", count)
            group = [base + block_index(first + r, (number, together)) for r in range(together)]
            body = (
                *self.ahead(group[0], together),
                *self.each(size, lambda c, group=group: self.add_rows(c, mapping, group)),
            )
            result += wrap([(number, "serial")], body)
        return wrap([(a, "serial") for a in around], tuple(result))

    def add_rows(self, column: Index, mapping: dict[Axis, IndexLike], group: list[Index]) -> list[Stmt]:
        """Add the elements of a group of rows to the sums of one column."""
        copier = BodyCopier(self.names, mapping)
        copier.axes[self.columns] = as_index(mapping[self.columns]) + column
        result: list[Stmt] = list(copier.body(tuple(s for s in self.before if not isinstance(s, Acc))))
        for acc, sums in zip(self.accs, self.scratch, strict=True):
            value = self.names.scalar("p")
            result.append(Load(value, sums.name, column, acc.dtype))
            result.append(Acc(copier.define(acc.name), acc.dtype, acc.combine, value))
        for row in group:
            copier.axes[self.axes[-1]] = row
            result += copier.body(self.body)
        for acc, sums in zip(self.accs, self.scratch, strict=True):
            value = self.names.scalar("p")
            result += [Read(value, copier.renamed[acc.name]), Store(sums.name, column, value)]
        return result
