"""GPU threads: loops whose iterations get a thread, a warp or a block each, and inner loops that these share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from graphc.base.sizes.size import bounds as size_bounds
from graphc.base.sizes.size import hint, is_size
from graphc.codegen.machine.cuda.costs import GpuCosts
from graphc.codegen.machine.cuda.facts import SHARED_BYTES
from graphc.codegen.schedule.gpu.barriers import put_barriers
from graphc.codegen.schedule.gpu.shared_loops import share_loops
from graphc.ir.kernel.access import UNIT, access
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.statements import WARP, Buffer, Kernel, Load, Loop, Stmt, Store, aligned, walk

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
