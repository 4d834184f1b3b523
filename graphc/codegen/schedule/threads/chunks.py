"""Chunks: the loops of a scheduled kernel that threads share, and the iterations that each thread runs.

All shared loops form one sequence of grains, in which each iteration takes as many grains as it costs. Chunk ``p`` of
``n`` has the iterations that start in the grains from ``total * p // n`` to ``total * (p + 1) // n``. This contiguous
chunk depends on the kernel and ``n`` alone; the result of an iteration does not depend on ``n``.

Where extents are sizes known only at run time, so are offsets and counts of grains. The cost of an undivided iteration
is always a number, and expected sizes decide which loops are opened (their iterations divided).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace
from math import gcd
from typing import Any

from graphc.base.records import dataclass
from graphc.base.sizes.size import always, hint, is_one
from graphc.codegen.machine.costs import ThreadCosts
from graphc.codegen.schedule.estimate.cost import StatementCounts
from graphc.ir.kernel.access import GATHERED, access
from graphc.ir.kernel.index import Axis, Dynamic, Index, atoms, bounds
from graphc.ir.kernel.map import map_statements, substitute_axes
from graphc.ir.kernel.statements import Acc, Kernel, Load, Loop, Stmt, Store, Update, walk


@dataclass(frozen=True)
class Share:
    """Position of a loop's iterations among the grains of the enclosing iteration (or kernel)."""

    offset: Any
    weight: Any
    """Grains of one iteration: a number, or a size where inner shared loops have extents known only at run time."""
    whole: bool
    """True if an iteration belongs to one chunk. False if inner loops are shared: a chunk then enters every iteration
    in which it has grains."""


@dataclass(frozen=True)
class Chunking:
    """A kernel and its shared loops. Statements outside of these store nothing, and every thread runs them."""

    kernel: Kernel
    grains: Any
    shares: dict[Axis, Share]


@dataclass
class _Unit:
    """A statement with effects: a loop whose iterations are distributed, or an opened loop."""

    loop: Loop
    cost: int
    """Cost of one iteration."""
    inner: list[_Unit] = field(default_factory=list)
    """Units inside an opened loop, which are distributed instead of its iterations."""
    offset: Any = 0
    weight: Any = 1

    @property
    def iterations(self) -> int:
        """Expected number of iterations."""
        return hint(self.loop.axis.extent)


def chunk_kernel(kernel: Kernel, counts: StatementCounts, costs: ThreadCosts, least: float = 0.0) -> Chunking | None:
    """Distribute a kernel's loops over threads.

    Returns None when one thread must run it, or when less than the fraction ``least`` of its work can be shared.
    """
    planner = _Planner(kernel, counts, costs)
    units = planner.units(kernel.body, ())
    if units is None:
        return None
    total = sum(u.cost * u.iterations for u in units)
    if total < least * counts.body(kernel.body):
        return None
    planner.open(units, total)
    leaves = list(_leaves(units, 1))
    if sum(count for _, count in leaves) < 2:
        return None
    grains = _place(units, gcd(*(unit.cost for unit, _ in leaves)))
    shares = {u.loop.axis: Share(u.offset, u.weight, not u.inner) for u in _all(units)}
    loops = Counter(s.axis for s, _ in walk(kernel.body) if isinstance(s, Loop))
    if any(loops[axis] > 1 for axis in shares):  # chunks would cut another loop over the same axis, too
        return None
    once = {id(u.loop.body[0]): u.loop for u in _all(units) if planner.is_wrapped(u.loop)}
    return Chunking(replace(kernel, body=_wrapped(kernel.body, once)), grains, shares)


def _all(units: list[_Unit]) -> Iterator[_Unit]:
    for unit in units:
        yield unit
        yield from _all(unit.inner)


def _leaves(units: list[_Unit], around: int) -> Iterator[tuple[_Unit, int]]:
    """Yield every loop whose iterations are distributed, with the number of its iterations in the kernel."""
    for unit in units:
        count = around * unit.iterations
        if unit.inner:
            yield from _leaves(unit.inner, count)
        else:
            yield unit, count


def _place(units: list[_Unit], grain: int) -> Any:
    """Set offsets and weights; return the number of grains of all units."""
    position: Any = 0
    for unit in units:
        unit.offset = position
        unit.weight = _place(unit.inner, grain) if unit.inner else unit.cost // grain
        position += unit.weight * unit.loop.axis.extent
    return position


class _Planner:
    def __init__(self, kernel: Kernel, counts: StatementCounts, costs: ThreadCosts):
        self.kernel = kernel
        self.counts = counts
        self.costs = costs
        self.wrapped: dict[int, Loop] = {}
        """The loops of one iteration around statements that one thread runs, by the id of the statement."""
        self.scratch = {b.name for b in kernel.buffers if b.role == "scratch"}
        self.axis_names = {s.axis.name for s, _ in walk(kernel.body) if isinstance(s, Loop)}

    def units(self, body: tuple[Stmt, ...], around: tuple[Axis, ...]) -> list[_Unit] | None:
        """Return the statements of a body with effects, as loops; None when one depends on another one."""
        uses = [_Uses(stmt, self.scratch) for stmt in body]
        together = not all(_is_version(stmt) for stmt in body)
        if together and any(a.feeds(b) for i, a in enumerate(uses) for j, b in enumerate(uses) if i != j):
            return None
        if not all(use.closed for use in uses):
            return None
        units: list[_Unit] = []
        for stmt, use in zip(body, uses, strict=True):
            if not use.stores:
                continue
            loop = stmt if isinstance(stmt, Loop) and stmt.kind in ("parallel", "version") else self.wrap(stmt)
            if not all(_is_injective(s, (*around, loop.axis)) for s in use.combining):
                return None
            units.append(_Unit(loop, self.counts.body(loop.body) + 1))
        return units

    def wrap(self, stmt: Stmt) -> Loop:
        """Return a loop of one iteration around a statement that one thread runs."""
        loop = self.wrapped.get(id(stmt))
        if loop is None:
            number = len(self.wrapped)
            while f"once_{number}" in self.axis_names:
                number += 1
            self.axis_names.add(f"once_{number}")
            loop = self.wrapped[id(stmt)] = Loop(Axis(f"once_{number}", 1), "parallel", (stmt,))
        return loop

    def is_wrapped(self, loop: Loop) -> bool:
        """Check whether ``wrap`` made a loop."""
        return self.wrapped.get(id(loop.body[0])) is loop

    def open(self, units: list[_Unit], total: int, around: tuple[Axis, ...] = ()) -> None:
        """Open loops whose iterations are too long for an even distribution."""
        for unit in units:
            version = _is_version(unit.loop)
            if (unit.cost * self.costs.grains <= total and not version) or self.is_wrapped(unit.loop):
                continue
            axes = (*around, unit.loop.axis)
            inner = self.units(unit.loop.body, axes)
            if not inner or all(is_one(u.loop.axis.extent) for u in inner):
                continue
            if unit.cost - sum(u.cost * u.iterations for u in inner) > unit.cost * self.costs.repeated:
                continue
            unit.inner = inner
            self.open(inner, sum(u.cost * u.iterations for u in inner) if version else total, axes)


def _is_version(stmt: Stmt) -> bool:
    return isinstance(stmt, Loop) and stmt.kind == "version"


def _wrapped(body: tuple[Stmt, ...], once: dict[int, Loop]) -> tuple[Stmt, ...]:
    """Return the body with some statements (by id) inside loops of one iteration."""
    return map_statements(
        body,
        leaf=lambda stmt: (once.get(id(stmt), stmt),),
        enter=lambda loop: (once[id(loop)],) if id(loop) in once else None,
    )


class _Uses:
    """Stores and loads of a statement."""

    def __init__(self, stmt: Stmt, scratch: Collection[str]):
        """Collect the accesses; ``scratch`` are the buffers of which each thread has a copy."""
        self.stmt = stmt
        self.scratch = scratch
        self.stores: dict[str, list[Store]] = {}
        self.loads: dict[str, list[Load]] = {}
        self.filled: dict[str, int] = {}
        """Per buffer: the number of stores before the first load."""
        self.combining: list[Store] = []
        """Stores that depend on earlier content of the buffer: they combine, or their position depends on data."""
        self.closed = True
        """False if it stores and also updates an accumulator from outside."""
        self.axes: set[Axis] = set()
        declared: set[str] = set()
        updated: set[str] = set()
        for s, _ in walk((stmt,)):
            if isinstance(s, Store):
                self.stores.setdefault(s.buffer, []).append(s)
                if s.combine or any(isinstance(a, Dynamic) for a in atoms(s.index)):
                    self.combining.append(s)
            elif isinstance(s, Load):
                self.filled.setdefault(s.buffer, len(self.stores.get(s.buffer, ())))
                self.loads.setdefault(s.buffer, []).append(s)
            elif isinstance(s, Acc):
                declared.add(s.name)
            elif isinstance(s, Update):
                updated.add(s.acc)
            elif isinstance(s, Loop):
                self.axes.add(s.axis)
        self.closed = not self.stores or updated <= declared

    def feeds(self, other: _Uses) -> bool:
        """Check whether the other statement may load what this one stores, or may overwrite it.

        Loops that store to the same buffer count as pieces of one loop, whose stores do not overlap.
        """
        if any(s.buffer in self.stores for s in other.combining):
            return True
        if any(self._may_alias(other, other.loads[name]) for name in self.stores.keys() & other.loads.keys()):
            return True
        return isinstance(other.stmt, Store) and self._may_alias(other, [other.stmt])

    def _may_alias(self, other: _Uses, accesses: Sequence[Load | Store]) -> bool:
        """Check whether accesses of one buffer may be at an element to which this statement stores."""
        name = accesses[0].buffer
        if name in self.scratch and isinstance(accesses[0], Load) and other.fills(name):
            return False
        # NOTE: a common axis does not mean the same iteration in both statements.
        stored = self.stores.get(name, ())
        return bool(stored) and (
            bool(self.axes & other.axes) or any(not _never_equal(s.index, f.index) for s in stored for f in accesses)
        )

    def fills(self, name: str) -> bool:
        """Check whether it stores to all loaded elements of a buffer before the first load."""
        before = self.stores.get(name, ())[: self.filled[name]]
        first = [bounds(s.index) for s in before if not s.guard and _is_dense(s.index)]
        read = [bounds(load.index) for load in self.loads[name]]
        return bool(first) and all(
            any(always("<=", low, start) and always("<=", stop, high) for low, high in first) for start, stop in read
        )


def _is_dense(index: Index) -> bool:
    """Check whether an index takes every value between its smallest and its largest."""
    reach = 0
    for atom, stride in sorted(index.terms, key=lambda term: term[1] if type(term[1]) is int else 0):
        if type(stride) is not int or not isinstance(atom, Axis) or not 0 < stride <= reach + 1:
            return False
        reach += stride * (hint(atom.extent) - 1)
    return True


def _never_equal(a: Index, b: Index) -> bool:
    """Check whether two indices never are equal: they differ, or their quotients or remainders by a stride do.

    An example are disjoint ranges of rows, or of columns.
    """
    strides = {abs(c) for _, c in (*a.terms, *b.terms) if type(c) is int and abs(c) > 1}
    return _differs(a, b) or any(_differs(a // s, b // s) or _differs(a % s, b % s) for s in strides)


def _differs(a: Index, b: Index) -> bool:
    low, high = bounds(a - b)
    return always("<=", 1, low) or always("<=", high, -1)


def _is_injective(store: Store, axes: tuple[Axis, ...]) -> bool:
    """Check whether different iterations of the loops over ``axes`` (outermost first) store to different elements."""
    for position, axis in enumerate(axes):
        outer = axes[: position + 1]
        walks = [access(store.index, a, ()) for a in outer]
        low, high = bounds(substitute_axes(store.index, dict.fromkeys(outer, 0)))
        one = always("<=", axis.extent, 1)
        if not one and (GATHERED in walks or not _is_longer(walks[-1].stride, high - low)):
            return False
    return True


def _is_longer(stride: Any, span: Any) -> bool:
    """Check whether a stride, of either sign, is larger than a span for all sizes."""
    return always("<=", span + 1, stride) or always("<=", span + 1, -stride)
