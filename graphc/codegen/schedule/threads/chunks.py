"""Which loops of a scheduled kernel are shared by threads, and which chunk of their iterations each thread runs.

The iterations of all shared loops lie in one row of grains, each iteration taking as many as it costs. Chunk ``p``
of ``n`` holds the iterations that start in the grains from ``total * p // n`` to ``total * (p + 1) // n``. This
contiguous chunk depends on nothing but the kernel and ``n``; what an iteration computes does not depend on ``n``.

Where extents are sizes known at run time, so are places and numbers of grains. What an iteration costs that is handed
out whole is a number, and which loops are opened is decided for the sizes that are expected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any

from graphc.base.size import always, hint, is_one
from graphc.codegen.machine.costs import ThreadCosts
from graphc.codegen.schedule.estimate.cost import StatementCounts
from graphc.ir.kernel.access import GATHERED, access
from graphc.ir.kernel.index import Axis, Dynamic, atoms, bounds
from graphc.ir.kernel.map import map_statements, substitute_axes
from graphc.ir.kernel.statements import Acc, Kernel, Load, Loop, Stmt, Store, Update, walk


@dataclass(frozen=True)
class Share:
    """Where the iterations of a loop lie among the grains of the iteration (or kernel) around."""

    offset: Any
    weight: Any
    """Grains of one iteration: a number, or a size where loops inside are shared that have one as their extent."""
    whole: bool
    """True when an iteration belongs to one chunk; False when loops inside are shared, and a chunk enters every
    iteration in which it has grains."""


@dataclass(frozen=True)
class Chunking:
    """A kernel and how its loops are shared. What stands outside of them stores nothing, and every thread runs it."""

    kernel: Kernel
    grains: Any
    shares: dict[Axis, Share]


@dataclass
class _Unit:
    """A statement with effects: a loop whose iterations are handed out, or one that is opened."""

    loop: Loop
    cost: int
    """Of one iteration."""
    inner: list[_Unit] = field(default_factory=list)
    """What an opened loop hands out."""
    offset: Any = 0
    weight: Any = 1

    @property
    def iterations(self) -> int:
        """How many there are expected to be."""
        return hint(self.loop.axis.extent)


def chunk_kernel(kernel: Kernel, counts: StatementCounts, costs: ThreadCosts) -> Chunking | None:
    """How threads share a kernel; None when it must be run by one."""
    planner = _Planner(kernel, counts, costs)
    units = planner.units(kernel.body, ())
    if units is None:
        return None
    total = sum(u.cost * u.iterations for u in units)
    planner.open(units, total)
    leaves = list(_leaves(units, 1))
    if sum(count for _, count in leaves) < 2:
        return None
    grains = _place(units, gcd(*(unit.cost for unit, _ in leaves)))
    shares = {u.loop.axis: Share(u.offset, u.weight, not u.inner) for u in _all(units)}
    loops = Counter(s.axis for s, _ in walk(kernel.body) if isinstance(s, Loop))
    if any(loops[axis] > 1 for axis in shares):  # another loop over the axis would be cut into the same chunks
        return None
    once = {id(u.loop.body[0]): u.loop for u in _all(units) if planner.is_wrapped(u.loop)}
    return Chunking(replace(kernel, body=_wrapped(kernel.body, once)), grains, shares)


def _all(units: list[_Unit]) -> Iterator[_Unit]:
    for unit in units:
        yield unit
        yield from _all(unit.inner)


def _leaves(units: list[_Unit], around: int) -> Iterator[tuple[_Unit, int]]:
    """Every loop whose iterations are handed out, with the number of its iterations in the kernel."""
    for unit in units:
        count = around * unit.iterations
        if unit.inner:
            yield from _leaves(unit.inner, count)
        else:
            yield unit, count


def _place(units: list[_Unit], grain: int) -> Any:
    """Sets offsets and weights; returns how many grains the units take."""
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
        """By id of a statement that one thread runs: the loop of one iteration that stands for it."""
        self.taken = {s.axis.name for s, _ in walk(kernel.body) if isinstance(s, Loop)}

    def units(self, body: tuple[Stmt, ...], around: tuple[Axis, ...]) -> list[_Unit] | None:
        """The statements of a body that have effects, as loops; None when one needs what another one does."""
        uses = [_Uses(stmt) for stmt in body]
        together = not all(_is_version(stmt) for stmt in body)
        if together and any(a.feeds(b) for i, a in enumerate(uses) for j, b in enumerate(uses) if i != j):
            return None
        if not all(use.closed for use in uses):
            return None
        found: list[_Unit] = []
        for stmt, use in zip(body, uses, strict=True):
            if not use.stored:
                continue
            loop = stmt if isinstance(stmt, Loop) and stmt.kind in ("parallel", "version") else self.wrap(stmt)
            if not all(_is_injective(s, (*around, loop.axis)) for s in use.combining):
                return None
            found.append(_Unit(loop, self.counts.body(loop.body) + 1))
        return found

    def wrap(self, stmt: Stmt) -> Loop:
        """The loop of one iteration around a statement that one thread runs."""
        known = self.wrapped.get(id(stmt))
        if known is None:
            number = len(self.wrapped)
            while f"once_{number}" in self.taken:
                number += 1
            self.taken.add(f"once_{number}")
            known = self.wrapped[id(stmt)] = Loop(Axis(f"once_{number}", 1), "parallel", (stmt,))
        return known

    def is_wrapped(self, loop: Loop) -> bool:
        """Whether a loop was made by ``wrap``."""
        return self.wrapped.get(id(loop.body[0])) is loop

    def open(self, units: list[_Unit], total: int, around: tuple[Axis, ...] = ()) -> None:
        """Opens loops whose iterations are too long to be shared evenly."""
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
    """The body with some statements (by id) inside loops of one iteration."""
    return map_statements(
        body,
        leaf=lambda stmt: (once.get(id(stmt), stmt),),
        enter=lambda loop: (once[id(loop)],) if id(loop) in once else None,
    )


class _Uses:
    """Buffers that a statement stores to and loads from."""

    def __init__(self, stmt: Stmt):
        self.stmt = stmt
        self.stored: set[str] = set()
        self.loaded: set[str] = set()
        self.combining: list[Store] = []
        """Stores that combine, into buffers that all threads see, and stores whose place depends on data: what is
        there before them counts."""
        self.closed = True
        """False when it stores and also updates an accumulator from outside."""
        declared: set[str] = set()
        updated: set[str] = set()
        for s, _ in walk((stmt,)):
            if isinstance(s, Store):
                self.stored.add(s.buffer)
                if s.combine or any(isinstance(a, Dynamic) for a in atoms(s.index)):
                    self.combining.append(s)
            elif isinstance(s, Load):
                self.loaded.add(s.buffer)
            elif isinstance(s, Acc):
                declared.add(s.name)
            elif isinstance(s, Update):
                updated.add(s.acc)
        self.closed = not self.stored or updated <= declared

    def feeds(self, other: _Uses) -> bool:
        """True when the other statement needs what this one stores, or is a store that may replace it. The loops that
        store to one buffer are parts of one loop."""
        combined = {s.buffer for s in other.combining}
        if self.stored & (other.loaded | combined):
            return True
        last = other.stmt
        return isinstance(last, Store) and last.buffer in self.stored and any(_may_meet(s, last) for s in self.stores())

    def stores(self) -> Iterator[Store]:
        """What it stores."""
        return (s for s, _ in walk((self.stmt,)) if isinstance(s, Store))


def _may_meet(a: Store, b: Store) -> bool:
    """Whether two stores may be to one place."""
    if a.buffer != b.buffer:
        return False
    low, high = bounds(a.index - b.index)
    return not (always("<=", 1, low) or always("<=", high, -1))


def _is_injective(store: Store, axes: tuple[Axis, ...]) -> bool:
    """True when iterations of the loops over ``axes`` (outermost first) that differ store to different places."""
    for position, axis in enumerate(axes):
        outer = axes[: position + 1]
        walks = [access(store.index, a, ()) for a in outer]
        low, high = bounds(substitute_axes(store.index, dict.fromkeys(outer, 0)))
        one = always("<=", axis.extent, 1)
        if not one and (GATHERED in walks or not _is_longer(walks[-1].stride, high - low)):
            return False
    return True


def _is_longer(stride: Any, span: Any) -> bool:
    """Whether a stride is larger than a span for all sizes, whatever its sign."""
    return always("<=", span + 1, stride) or always("<=", span + 1, -stride)
