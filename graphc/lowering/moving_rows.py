"""In-place updates of rows of a state: rows overwritten after they are read, or shifted along one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from graphc.base.records import dataclass
from graphc.base.sizes.size import bounds as size_bounds
from graphc.base.sizes.size import hint
from graphc.base.sizes.size_relations import at_most, quotient_and_rest
from graphc.ir.kernel.index import Axis, Index, as_index
from graphc.ir.kernel.statements import Kernel, Load, Loop, Stmt, Store, walk

NARROW = 16
"""Elements of a row below which a copy through a temporary is faster (a vector of f32)."""


def in_order_of_rows(kernel: Kernel, args: Sequence[str], storage: str) -> Kernel | None:
    """Return the kernel if it can update ``storage`` in place, row by row; None for other kernels.

    It can if it overwrites each row only after all its reads of the row, as when one loop sums a row and another one
    then changes it. Where iterations read later rows than they write (a window that shifts along), the loop over rows
    becomes serial.

        for i in 12 parallel { for j in 64 parallel { %s[64*i + j] = %s[64*i + j + 64] } }   ->   for i in 12 serial ...
    """
    buffer = kernel.buffers[args.index(storage)].name
    accesses = [(s, loops) for s, loops in walk(kernel.body) if isinstance(s, Load | Store) and s.buffer == buffer]
    *loads, (store, loops) = accesses
    if not isinstance(store, Store) or store.combine is not None:
        return None
    reads = [(load, enclosing) for load, enclosing in loads if isinstance(load, Load)]
    if len(reads) < len(loads):
        return None
    for depth, loop in enumerate(loops):
        rows = _Rows(store, loops, depth)
        ahead = [n for load, enclosing in reads if (n := rows.moved(load, enclosing)) is not None]
        if len(ahead) < len(reads) or not rows.are_disjoint(ahead, reads):
            continue
        if not any(at_most(1, n) for n in ahead):
            return kernel
        return replace(kernel, body=tuple(_in_order(s, loop) for s in kernel.body)) if rows.are_wide() else None
    return None


@dataclass(frozen=True)
class _Rows:
    """A store, its enclosing loops, and the depth of the loop over rows."""

    store: Store
    loops: tuple[Loop, ...]
    depth: int

    @property
    def axis(self) -> Axis:
        """Axis of the loop over rows."""
        return self.loops[self.depth].axis

    @property
    def stride(self) -> int:
        """Elements between neighbouring rows."""
        return self.store.index.coefficient(self.axis)

    def moved(self, load: Load, enclosing: tuple[Loop, ...]) -> int | None:
        """Return how many rows a load is ahead of the store; None where it may read an overwritten element."""
        outer = self.loops[: self.depth + 1]
        if not all(loop.kind == "parallel" for loop in outer) or not at_most(1, self.stride):
            return None
        if [x.axis for x in enclosing[: self.depth + 1]] != [x.axis for x in outer]:
            return None
        if any(load.index.coefficient(x.axis) != self.store.index.coefficient(x.axis) for x in outer):
            return None
        read, written = self.row(load.index, enclosing), self.row(self.store.index, self.loops)
        if read is None or written is None:
            return None
        count = read - written
        own = load.index == self.store.index and enclosing == self.loops[: len(enclosing)]
        inner = enclosing[self.depth + 1 : self.depth + 2]
        earlier = own or inner != self.loops[self.depth + 1 : self.depth + 2]
        return count if at_most(1, count) or (earlier and count == 0) else None

    def row(self, index: Index, loops: tuple[Loop, ...]) -> int | None:
        """Return the row of an index relative to the loop's iteration; None if inner loops leave that row."""
        outer, inner = {x.axis for x in loops[: self.depth + 1]}, loops[self.depth + 1 :]
        if any(not isinstance(a, Axis) or (a not in outer and not at_most(0, c)) for a, c in index.terms):
            return None
        row, first = quotient_and_rest(index.constant, self.stride)
        span = sum(index.coefficient(x.axis) * (x.axis.extent - 1) for x in inner)
        inside = at_most(0, first) and at_most(first + span + 1, self.stride)
        return row if inside else None

    def are_disjoint(self, ahead: Sequence[int], loads: Sequence[tuple[Load, tuple[Loop, ...]]]) -> bool:
        """Check whether iterations of the enclosing loops access disjoint rows."""
        first = quotient_and_rest(self.store.index.constant, self.stride)[0]
        ends = [self.axis.extent, *(self.end(load) + n for (load, _), n in zip(loads, ahead, strict=True))]
        enclosing = [(self.store.index.coefficient(x.axis), x.axis.extent) for x in reversed(self.loops[: self.depth])]
        outer = sorted(enclosing, key=lambda side: hint(side[0]))
        return at_most(0, first) and all(self._nested(outer, (end + first) * self.stride) for end in ends)

    def end(self, load: Load) -> int:
        """Return the end (exclusive) of the iterations in which a load is executed."""
        for bound in load.guard:
            shift = bound.index - as_index(self.axis)
            if shift.is_constant:
                return bound.high - shift.constant
        return self.axis.extent

    @staticmethod
    def _nested(outer: Sequence[tuple[int, int]], need: int) -> bool:
        for stride, extent in outer:
            if not at_most(need, stride):
                return False
            need = stride * extent
        return True

    def are_wide(self) -> bool:
        """Check whether a row has enough elements for lanes at every possible size."""
        return size_bounds(prod(x.axis.extent for x in self.loops[self.depth + 1 :]))[0] >= NARROW


def _in_order(stmt: Stmt, loop: Loop) -> Stmt:
    """Return the statement with one of its loops made serial."""
    if stmt == loop:
        return replace(loop, kind="serial")
    return replace(stmt, body=tuple(_in_order(s, loop) for s in stmt.body)) if isinstance(stmt, Loop) else stmt
