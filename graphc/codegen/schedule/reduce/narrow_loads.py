"""Narrow loads: loops that only wait for LLC load less than a cache line at a time."""

from __future__ import annotations

from graphc.base.sizes.size import hint
from graphc.codegen.machine.target import Target
from graphc.ir.kernel.access import UNIT, access
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Acc, Kernel, Let, Load, Loop, Update, walk


def find_narrow_loads(kernel: Kernel, target: Target) -> frozenset[Axis]:
    """Return the axes of the innermost reduce loops that only wait for the last-level cache.

    Such a loop does few operations per contiguous element and is the first to read it, in a kernel that reads more than
    L2 holds and at most as much as LLC holds. Whole vectors of an unaligned array would cross two cache lines each.
    """
    read = sum(hint(b.size) * b.dtype.itemsize for b in kernel.arguments if b.role != "out")
    costs = target.costs.memory
    narrower = 0 < costs.narrow_load_bytes < target.vector_bytes
    if not narrower or not target.l2_bytes < read <= costs.non_temporal_bytes:
        return frozenset()
    heavy = {s.name for s, _ in walk(kernel.body) if isinstance(s, Acc) and _tests_for_nan(s)}
    cached = {b.name for b in kernel.buffers if b.role == "scratch"}
    narrow: set[Axis] = set()
    for stmt, _ in walk(kernel.body):
        if not isinstance(stmt, Loop) or any(isinstance(s, Loop) for s in stmt.body):
            continue
        read = {s.buffer for s in stmt.body if isinstance(s, Load) and access(s.index, stmt.axis) == UNIT}
        if read - cached and _is_light(stmt, len(read) * costs.narrow_load_operations, heavy):
            narrow.add(stmt.axis)
        cached |= read
    return frozenset(narrow)


def _tests_for_nan(acc: Acc) -> bool:
    """Check whether an update of an accumulator tests for NaN, which takes several operations."""
    return acc.dtype.kind == "f" and acc.combine in ("min", "max")


def _is_light(loop: Loop, most: int, heavy: set[str]) -> bool:
    """Check whether a loop is a reduction with fewer than ``most`` operations in each iteration."""
    work = 0
    for stmt in loop.body:
        if isinstance(stmt, Let):
            work += 1 + most * SCALAR_OPS[stmt.op].transcendental
        elif isinstance(stmt, Update):
            work += most * (stmt.acc in heavy)
        elif not isinstance(stmt, Load) or stmt.guard:
            return False
    return loop.kind == "reduce" and work < most
