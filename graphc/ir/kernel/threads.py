"""Verifier of kernels with threads: loop structure, synchronization, and absence of data races.

Threads of one block (or warp) see each other's writes after a barrier; threads of different blocks never do within a
kernel. So between two barriers, no element is written by one thread and accessed by another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from graphc.base.errors import VerifyError
from graphc.base.records import dataclass
from graphc.base.sizes.size_relations import at_most
from graphc.ir.kernel.index import Axis, Index, bounds
from graphc.ir.kernel.index_range import touches
from graphc.ir.kernel.map import chain_of, scalars_read, substitute_axes
from graphc.ir.kernel.statements import (
    ARGUMENT_ROLES,
    SHARED_KINDS,
    SPREAD_KINDS,
    WARP,
    Barrier,
    Kernel,
    Load,
    Loop,
    Read,
    Stmt,
    Store,
    Update,
    walk,
)

MOST_THREADS = 1024
"""Largest number of threads of a block. Documented: CUDA C++ programming guide, compute capabilities."""
_GROUPS = {"block": "thread", "warp": "lane"}
"""Groups of threads that can synchronize, and the loops whose iterations they share."""


def number_of(axes: Sequence[Axis]) -> tuple[Index, int]:
    """Return the linear number of an iteration of flattened loops, and the number of iterations."""
    number, step = Index(), 1
    for axis in reversed(axes):
        number, step = number + Index(((axis, step),)) if axis.extent != 1 else number, step * axis.extent
    return number, step


def verify_threads(kernel: Kernel) -> None:
    """Raise VerifyError where a kernel, with or without threads, breaks a rule:

    - blocks consist of full warps, at most 1024 threads; a ``grid``, ``block`` or ``warp`` loop encloses all else;
    - ``thread`` loops are inside blocks and ``lane`` loops inside warps; shared loops nest only perfectly;
    - outside of shared loops, a scalar is the same in all threads: an accumulator that a shared loop has updated is
      read over the group;
    - all threads of a group reach its barriers and sums: these are outside of shared loops. By the rule before, a loop
      around them that ends early ends at the same iteration in all threads. What ends it is not computed from elements
      that another block may write meanwhile: threads would load them before and after the write;
    - one thread each owns the elements of private buffers; no two threads combine into an element at once;
    - between barriers, no thread accesses an element written by another one.
    """
    _Threads(kernel).run()


class _Use(NamedTuple):
    """Elements of a buffer that a group has accessed."""

    own: bool
    """Whether each iteration accesses only the element of its own number."""
    low: Any
    high: Any


@dataclass
class _Uses:
    """Accesses of a group since its last synchronization, by buffer."""

    read: dict[str, list[_Use]] = field(default_factory=dict)
    written: dict[str, list[_Use]] = field(default_factory=dict)

    def add(self, other: _Uses) -> None:
        """Add the accesses of another path to the same statement."""
        for table, more in ((self.read, other.read), (self.written, other.written)):
            for name, uses in more.items():
                table[name] = [*table.get(name, []), *uses]

    def copy(self) -> _Uses:
        """Return a record of the same accesses that further ones do not change."""
        return _Uses({n: [*u] for n, u in self.read.items()}, {n: [*u] for n, u in self.written.items()})


class _Threads:
    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.roles = {b.name: b.role for b in kernel.buffers}
        self.group = ""

    def require(self, good: bool, message: str) -> None:
        if not good:
            raise VerifyError(message)

    def run(self) -> None:
        body, threads = self.kernel.body, self.kernel.threads
        if not threads:
            self.no_threads()
            return
        self.require(threads % WARP == 0 and threads <= MOST_THREADS, f"a block has {threads} threads")
        first = body[0] if len(body) == 1 else None
        self.spread: list[Axis] = []
        self.group = "block"
        if isinstance(first, Loop) and first.kind in SPREAD_KINDS:
            loops, body = chain_of(first)
            self.spread = [loop.axis for loop in loops]
            self.group = "" if first.kind == "grid" else first.kind
        shared = [s for s, _ in walk(body) if isinstance(s, Loop) and s.kind in SHARED_KINDS]
        self.partial = {s.acc for s, _ in walk(tuple(shared)) if isinstance(s, Update)}
        for stmt, loops in walk(body):
            self.statement(stmt, loops)
        if self.group:
            self.sections(body, _Uses(), {})
            self.early_ends(body)

    def no_threads(self) -> None:
        for stmt, _ in walk(self.kernel.body):
            kind = stmt.kind if isinstance(stmt, Loop) else ""
            bad = kind in (*SPREAD_KINDS, *SHARED_KINDS) or isinstance(stmt, Barrier)
            self.require(not bad and not (isinstance(stmt, Read) and stmt.over), "the kernel has no threads")
        own = [b.name for b in self.kernel.buffers if b.role in ("shared", "private")]
        self.require(not own, f"%{', %'.join(own)}: the kernel has no threads")

    # ---- single statements

    def statement(self, stmt: Stmt, loops: tuple[Loop, ...]) -> None:
        around = [loop for loop in loops if loop.kind in SHARED_KINDS]
        if isinstance(stmt, Loop):
            self.loop(stmt, loops, around)
        elif isinstance(stmt, Barrier) or (isinstance(stmt, Read) and stmt.over):
            what = "a barrier" if isinstance(stmt, Barrier) else f"the sum {stmt.acc}"
            self.require(stmt.over == self.group, f"{what} over a {stmt.over} is not inside a {stmt.over}")
            self.require(not around, f"not all threads of the {stmt.over} come to {what}")
        elif isinstance(stmt, Read) and not around:
            differs = stmt.acc in self.partial
            self.require(not differs, f"{stmt.name} differs between threads: read {stmt.acc} over the {self.group}")
        elif isinstance(stmt, Store) and stmt.combine and self.roles[stmt.buffer] != "private":
            for axis in (*self.spread, *(loop.axis for loop in around)):
                alone = axis.extent == 1 or touches(stmt.index, stmt.guard, axis)
                self.require(alone, f"several threads, of axis {axis}, add to one element of %{stmt.buffer}")
        if isinstance(stmt, Load | Store) and self.roles[stmt.buffer] == "private":
            self.private(stmt, around)

    def loop(self, stmt: Loop, loops: tuple[Loop, ...], around: list[Loop]) -> None:
        self.require(stmt.kind not in SPREAD_KINDS, f"{stmt.kind} axis {stmt.axis} does not enclose everything else")
        if stmt.kind in SHARED_KINDS:
            fits = self.group in _GROUPS and _GROUPS[self.group] == stmt.kind
            self.require(
                fits, f"{stmt.kind} axis {stmt.axis} is not inside a {'block' if stmt.kind == 'thread' else 'warp'}"
            )
            chained = (
                all(x.kind == stmt.kind and len(x.body) == 1 for x in loops[loops.index(around[0]) :])
                if around
                else True
            )
            self.require(chained, f"{stmt.kind} axis {stmt.axis} is inside a loop that is shared already")

    def private(self, stmt: Load | Store, around: list[Loop]) -> None:
        """Check that the element is the one with the iteration's own number, or belongs to its thread."""
        buffer = self.kernel.buffer(stmt.buffer)
        self.require(bool(around), f"%{buffer.name} belongs to single threads, but all threads run this")
        threads = WARP if self.group == "warp" else self.kernel.threads
        number, count = number_of([loop.axis for loop in around])
        if stmt.index == number:
            return
        each = -(-buffer.size // threads)
        others = [(atom, factor) for atom, factor in stmt.index.terms if (atom, factor) != (around[0].axis, each)]
        own = len(around) == 1 and len(others) < len(stmt.index.terms) and count <= threads
        self.require(own, f"%{buffer.name}[{stmt.index}] does not belong to a single thread")

    # ---- loops that end early

    def early_ends(self, body: tuple[Stmt, ...]) -> None:
        """Check that no other block (or warp) writes what ends a loop around barriers."""
        stmts = [*walk(body)]
        ends = {s.until for s, _ in stmts if isinstance(s, Loop) and s.until and _synchronizes(s)}
        stores: dict[str, list[Store]] = {}
        for stmt, _ in stmts if ends else ():
            if isinstance(stmt, Store) and self.roles[stmt.buffer] in ARGUMENT_ROLES:
                stores.setdefault(stmt.buffer, []).append(stmt)
        spread = [axis for axis in self.spread if axis.extent != 1]
        for load in _loads_behind(ends, stmts):
            own = all(touches(load.index, load.guard, axis) for axis in spread)
            same = all(own and store.index == load.index for store in stores.get(load.buffer, ()))
            what = f"{load.name} decides how often the threads of a {self.group} come to a barrier"
            written = f"another {self.group} may write %{load.buffer}[{load.index}] meanwhile"
            self.require(same or not spread, f"{what}, but {written}")

    # ---- accesses between barriers

    def sections(self, body: tuple[Stmt, ...], uses: _Uses, at: Mapping[Axis, int]) -> None:
        """Check the sections between barriers. ``at`` gives the iteration of each loop that all threads run alike: the
        first or the second."""
        for stmt in body:
            if isinstance(stmt, Barrier) or (isinstance(stmt, Read) and stmt.over == "block"):
                uses.read.clear()
                uses.written.clear()
            elif isinstance(stmt, Loop) and stmt.kind not in SHARED_KINDS:
                skipped = uses.copy() if stmt.may_be_skipped else _Uses()
                for turn in range(1 if stmt.axis.extent == 1 else 2):
                    self.sections(stmt.body, uses, {**at, stmt.axis: turn})
                uses.add(skipped)
            else:
                self.section(stmt, uses, at)

    def section(self, stmt: Stmt, uses: _Uses, at: Mapping[Axis, int]) -> None:
        """Check a statement that all threads run before the next one: each its own iterations, or all the same."""
        loops = chain_of(stmt)[0] if isinstance(stmt, Loop) else []
        number, _ = number_of([loop.axis for loop in loops])
        now = _Uses()
        for inner, _ in walk((stmt,)):
            if isinstance(inner, Load | Store) and self.roles[inner.buffer] not in ("private", "in"):
                low, high = bounds(substitute_axes(inner.index, at))
                table = now.written if isinstance(inner, Store) else now.read
                use = _Use(bool(loops) and inner.index == number, low, high)
                table.setdefault(inner.buffer, []).append(use)
        for name, new in now.written.items():
            self.require_disjoint(name, new, [*uses.written.get(name, []), *uses.read.get(name, [])])
        for name, new in now.read.items():
            self.require_disjoint(name, new, uses.written.get(name, []))
        for table, new_uses in ((uses.read, now.read), (uses.written, now.written)):
            for name, new in new_uses.items():
                table.setdefault(name, []).extend(new)

    def require_disjoint(self, name: str, new: Sequence[_Use], before: Sequence[_Use]) -> None:
        touched = any(_may_overlap(a, b) and not (a.own and b.own) for a in new for b in before)
        self.require(not touched, f"other threads access %{name} without a barrier over the {self.group} in between")


def _synchronizes(loop: Loop) -> bool:
    return any(isinstance(s, Barrier) or (isinstance(s, Read) and s.over) for s, _ in walk(loop.body))


def _loads_behind(names: set[str], stmts: Sequence[tuple[Stmt, tuple[Loop, ...]]]) -> list[Load]:
    """Return the loads from which scalars are computed. A sum over a group is the same in all of its threads, whatever
    they load, and needs none."""
    loads: dict[str, Load] = {}
    needed, size = set(names), 0
    while len(needed) > size:
        size = len(needed)
        for stmt, loops in stmts:
            name = stmt.acc if isinstance(stmt, Update) else getattr(stmt, "name", "")
            if name not in needed or (isinstance(stmt, Read) and stmt.over):
                continue
            needed |= scalars_read(stmt) | ({stmt.acc} if isinstance(stmt, Read) else set())
            if isinstance(stmt, Update):
                needed |= {loop.until for loop in loops if loop.until}
            if isinstance(stmt, Load):
                loads[stmt.name] = stmt
    return [*loads.values()]


def _may_overlap(a: _Use, b: _Use) -> bool:
    return not (at_most(a.high + 1, b.low) or at_most(b.high + 1, a.low))
