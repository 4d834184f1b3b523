"""GPU threads: loops whose iterations get a thread, a warp or a block each, and inner loops that these share."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from math import prod

from graphc.base.sizes.size import bounds as size_bounds
from graphc.base.sizes.size import hint, is_size
from graphc.codegen.machine.cuda.costs import GpuCosts
from graphc.codegen.machine.cuda.facts import SHARED_BYTES
from graphc.ir.kernel.access import UNIT, access
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.index_range import touches
from graphc.ir.kernel.map import Names, map_parts, map_statements
from graphc.ir.kernel.statements import (
    WARP,
    Acc,
    Barrier,
    Buffer,
    Kernel,
    Load,
    Loop,
    Read,
    Stmt,
    Store,
    Update,
    aligned,
    walk,
)

GROUPS = {"thread": "block", "lane": "warp"}


def share_loops(body: tuple[Stmt, ...], kind: str) -> tuple[Stmt, ...]:
    """Turn the outermost loops that can be shared into loops of that ``kind``.

    Reads of an accumulator become sums over the group if its threads have updated the accumulator.
    """
    return _Group(kind, Names("t")).body(body)


class _Group:
    """Rewriter for one kind of group; each thread has only a partial sum in the accumulators ``partial``."""

    def __init__(self, kind: str, names: Names):
        self.kind = kind
        self.names = names
        self.partial: set[str] = set()

    def body(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        statements: list[Stmt] = []
        for stmt in body:
            statements += self.stmt(stmt)
        return tuple(statements)

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, Read) and stmt.acc in self.partial:
            return [replace(stmt, over=GROUPS[self.kind])]
        if not isinstance(stmt, Loop):
            return [stmt]
        if stmt.kind == "serial" or not _can_share(stmt):
            return [replace(stmt, body=self.body(stmt.body))]
        before, loop = self._reads_before(stmt)
        self.partial |= _updated(loop)
        return [*before, _shared(loop, self.kind)]

    def _reads_before(self, loop: Loop) -> tuple[list[Stmt], Loop]:
        """Move reads of partial sums out of a shared loop, to a point that every thread reaches."""
        before: list[Stmt] = []
        renamed: dict[str, str] = {}

        def leaf(stmt: Stmt) -> Sequence[Stmt]:
            if isinstance(stmt, Read) and stmt.acc in self.partial:
                name = self.names.scalar(stmt.name)
                before.append(Read(name, stmt.acc, GROUPS[self.kind]))
                renamed[stmt.name] = name
                return ()
            return (map_parts(stmt, ref=lambda r: renamed.get(r, r) if isinstance(r, str) else r),)

        if not any(isinstance(s, Read) and s.acc in self.partial for s, _ in walk(loop.body)):
            return [], loop
        return before, replace(loop, body=map_statements(loop.body, leaf=leaf))


def _updated(loop: Loop) -> set[str]:
    """Return the accumulators updated by a loop and declared outside it."""
    own = {s.name for s, _ in walk(loop.body) if isinstance(s, Acc)}
    return {s.acc for s, _ in walk(loop.body) if isinstance(s, Update)} - own


def _shared(loop: Loop, kind: str) -> Loop:
    """Make a loop, and loops perfectly nested in it, shared as far as possible."""
    inner = loop.body[0] if len(loop.body) == 1 else None
    if isinstance(inner, Loop) and inner.kind in ("parallel", "reduce") and _can_share(inner):
        return replace(loop, kind=kind, body=(_shared(inner, kind),))
    return replace(loop, kind=kind)


def _can_share(loop: Loop) -> bool:
    """Check whether iterations may run concurrently: no two of them store to the same element."""
    if loop.kind not in ("parallel", "reduce") or loop.until:
        return False
    stores = [s for s, _ in walk(loop.body) if isinstance(s, Store)]
    return loop.kind == "parallel" or all(touches(s.index, s.guard, loop.axis) for s in stores)


def put_barriers(body: tuple[Stmt, ...], over: str, private: Set[str] = frozenset()) -> tuple[Stmt, ...]:
    """Insert barriers into the statements of a group of threads.

    A barrier goes before each statement that reads or writes a buffer written by other threads since the last barrier,
    or writes one read by them. The buffers ``private`` need none.
    """
    return _Barriers(over, private).body(body)


class _Barriers:
    """Inserter of barriers; ``read`` and ``written`` are the buffers accessed since the last barrier."""

    def __init__(self, over: str, private: Set[str]):
        self.over = over
        self.private = private
        self.read: set[str] = set()
        self.written: set[str] = set()

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        statements: list[Stmt] = []
        for stmt in body:
            statements += self.stmt(stmt)
        return tuple(statements)

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, Read) and stmt.over == "block":
            self._clear()
            return [stmt]
        if isinstance(stmt, Loop) and stmt.kind not in ("thread", "lane"):
            return self._uniform(stmt)
        read, written = self._uses(stmt)
        conflict = bool(written & (self.read | self.written) or read & self.written)
        if conflict:
            self._clear()
        self.read |= read
        self.written |= written
        return [Barrier(self.over), stmt] if conflict else [stmt]

    def _uniform(self, loop: Loop) -> list[Stmt]:
        """Insert barriers into a loop that all threads run alike: also between each iteration and the next one.

        Accesses before a loop that may have no iteration still count after it, as its barriers may be skipped.
        """
        read, written = self._uses(loop)
        before: list[Stmt] = []
        if (read | written) & self.written or written & self.read:
            before = [Barrier(self.over)]
            self._clear()
        skipped = (set(self.read), set(self.written)) if loop.may_be_skipped else (set(), set())
        inside = self.body(loop.body)
        if written:
            inside = (*inside, Barrier(self.over))
            self._clear()
        self.read |= read | skipped[0]
        self.written |= skipped[1]
        return [*before, replace(loop, body=inside)]

    def _uses(self, stmt: Stmt) -> tuple[set[str], set[str]]:
        inside = [s for s, _ in walk((stmt,))]
        read = {s.buffer for s in inside if isinstance(s, Load)}
        read |= {s.buffer for s in inside if isinstance(s, Store) and s.combine}
        return read - self.private, {s.buffer for s in inside if isinstance(s, Store)} - self.private

    def _clear(self) -> None:
        self.read, self.written = set(), set()


PARTIAL_SUMS = 1024
"""Bytes of shared memory for sums over a block: 8 bytes per warp, for at most four types."""


def give_threads(kernel: Kernel, costs: GpuCosts) -> tuple[Kernel, str]:
    """Distribute a lowered kernel over threads; return it with the reason for the choice.

    Each thread runs an iteration of the outer parallel loops if their bodies are not worth sharing. Otherwise a warp or
    a block of threads runs one together.
    """
    band, inside = outer_band(kernel.body)
    if band and _is_single(kernel, band, inside, costs):
        return _spread(kernel, band, "grid", inside, costs), "a thread for each iteration of its outer loops"
    longest = _longest(inside)
    if band and longest <= costs.warp_row and _fits(kernel, costs.threads // WARP):
        kind, why = "warp", f"a warp for each iteration of its outer loops: rows of {longest}"
    else:
        kind, why = "block", f"a block for each iteration of its outer loops: rows of {longest}"
    if not band:
        why = "one block: no outer loop whose iterations are independent"
    shared = put_barriers(share_loops(inside, "lane" if kind == "warp" else "thread"), kind, _private(kernel, inside))
    threaded = _spread(kernel, band, kind, shared, costs)
    return _placed(threaded, inside, costs), why


def outer_band(body: tuple[Stmt, ...]) -> tuple[list[Loop], tuple[Stmt, ...]]:
    """Return the perfectly nested outer parallel loops, and the body inside them."""
    loops: list[Loop] = []
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "parallel":
        loops.append(body[0])
        body = body[0].body
    return loops, body


def has_single_threads(kernel: Kernel, costs: GpuCosts) -> bool:
    """Check whether one thread runs each iteration of the outer parallel loops."""
    band, inside = outer_band(kernel.body)
    return _is_single(kernel, band, inside, costs)


def _spread(kernel: Kernel, band: Sequence[Loop], kind: str, body: tuple[Stmt, ...], costs: GpuCosts) -> Kernel:
    for loop in reversed(band):
        body = (replace(loop, kind=kind, body=body),)
    return replace(kernel, body=body, threads=costs.threads)


def _is_single(kernel: Kernel, band: Sequence[Loop], inside: tuple[Stmt, ...], costs: GpuCosts) -> bool:
    """Check whether one thread should run each iteration of the band."""
    if len(kernel.arguments) != len(kernel.buffers):
        return False
    loops = [s for s, _ in walk(inside) if isinstance(s, Loop)]
    if any(loop.kind == "parallel" for loop in loops):
        return False
    sums = [loop for loop in loops if loop.kind == "reduce"]
    if not sums or any(loop.kind == "serial" for loop in loops):
        return True
    if hint(prod(loop.axis.extent for loop in sums)) < costs.short_sum:
        return True
    loads = [s for s, _ in walk(inside) if isinstance(s, Load)]
    last = sums[-1].axis
    along = [s for s in loads if access(s.index, last) == UNIT]
    return not along or any(access(s.index, band[-1].axis) == UNIT for s in loads)


def _longest(inside: tuple[Stmt, ...]) -> int:
    """Return the largest number of iterations of a loop nest for threads to share."""
    return max(
        (
            hint(prod([s.axis.extent, *(x.axis.extent for x in loops)]))
            for s, loops in walk(inside)
            if isinstance(s, Loop)
        ),
        default=1,
    )


def _upper_bound(size: int) -> int:
    return size_bounds(size)[1] if is_size(size) else int(size)


def _fits(kernel: Kernel, copies: int) -> bool:
    """Check whether ``copies`` of a kernel's scratch rows fit into half of shared memory, leaving room for another
    block."""
    own = [b for b in kernel.buffers if b.role == "scratch"]
    return sum(aligned(_upper_bound(b.size) * b.dtype.itemsize) for b in own) * copies <= SHARED_BYTES // 2


def _private(kernel: Kernel, inside: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the scratch rows whose element ``i`` is only accessed in iteration ``i``, hence by one thread."""
    private = set()
    for buffer in kernel.buffers:
        if buffer.role == "scratch" and not is_size(buffer.size):
            uses = [(s, loops) for s, loops in walk(inside) if isinstance(s, Load | Store) and s.buffer == buffer.name]
            if all(_is_own_element(s, loops, buffer) for s, loops in uses):
                private.add(buffer.name)
    return frozenset(private)


def _is_own_element(stmt: Load | Store, loops: Sequence[Loop], buffer: Buffer) -> bool:
    """Check whether a statement in a perfect nest accesses the element with the row-major number of its iteration."""
    if not loops or any(x.kind not in ("parallel", "reduce") for x in loops):
        return False
    if any(len(outer.body) != 1 for outer in loops[:-1]) or any(isinstance(s, Loop) for s in loops[-1].body):
        return False
    number, step = Index(), 1
    for loop in reversed(loops):
        number, step = number + Index(((loop.axis, step),)), step * loop.axis.extent
    return stmt.index == number and step == buffer.size


def _placed(kernel: Kernel, inside: tuple[Stmt, ...], costs: GpuCosts) -> Kernel:
    """Place scratch rows in registers if they are private and short, else in shared memory while there is room.

    Other rows stay scratch (see spill).
    """
    warps = any(isinstance(s, Loop) and s.kind == "warp" for s in kernel.body)
    together, copies = (WARP, costs.threads // WARP) if warps else (costs.threads, 1)
    private, used = _private(kernel, inside), PARTIAL_SUMS
    buffers = []
    for b in kernel.buffers:
        role = b.role
        if role == "scratch":
            few = b.name in private and -(-b.size // together) <= costs.private_rounds
            nbytes = aligned(_upper_bound(b.size) * b.dtype.itemsize) * copies
            role = "private" if few else "shared" if used + nbytes <= SHARED_BYTES else role
            used += nbytes if role == "shared" else 0
        buffers.append(b if role == b.role else replace(b, role=role))
    return replace(kernel, buffers=tuple(buffers))
