"""Narrow loads: loops that do nothing but wait for LLC read it in pieces of less than a line."""

from __future__ import annotations

from graphc.base.sizes.size import hint
from graphc.codegen.machine.target import Target
from graphc.ir.kernel.access import UNIT, access
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import Acc, Kernel, Let, Load, Loop, Update, walk


def find_narrow_loads(kernel: Kernel, target: Target) -> frozenset[Axis]:
    """The axes of innermost loops that only sum up (or the like) what they read side by side, few operations for each
    value, and that are the first ones to read it, in a kernel that reads more than stays in L2 and no more than may
    lie in LLC. Whole vectors would cross two cache lines each where an array does not start at one."""
    read = sum(hint(b.size) * b.dtype.itemsize for b in kernel.arguments if b.role != "out")
    costs = target.costs.memory
    narrower = 0 < costs.narrow_load_bytes < target.vector_bytes
    if not narrower or not target.l2_bytes < read <= costs.non_temporal_bytes:
        return frozenset()
    heavy = {s.name for s, _ in walk(kernel.body) if isinstance(s, Acc) and _tests_for_nan(s)}
    cached = {b.name for b in kernel.buffers if b.role == "scratch"}
    found: set[Axis] = set()
    for stmt, _ in walk(kernel.body):
        if not isinstance(stmt, Loop) or any(isinstance(s, Loop) for s in stmt.body):
            continue
        read = {s.buffer for s in stmt.body if isinstance(s, Load) and access(s.index, stmt.axis) == UNIT}
        if read - cached and _is_light(stmt, len(read) * costs.narrow_load_operations, heavy):
            found.add(stmt.axis)
        cached |= read
    return frozenset(found)


def _tests_for_nan(acc: Acc) -> bool:
    """Whether an accumulator takes several operations to update."""
    return acc.dtype.kind == "f" and acc.combine in ("min", "max")


def _is_light(loop: Loop, most: int, heavy: set[str]) -> bool:
    """Whether a loop does fewer than ``most`` operations in each iteration."""
    work = 0
    for stmt in loop.body:
        if isinstance(stmt, Let):
            work += 1 + most * SCALAR_OPS[stmt.op].transcendental
        elif isinstance(stmt, Update):
            work += most * (stmt.acc in heavy)
        elif not isinstance(stmt, Load) or stmt.guard:
            return False
    return loop.kind == "reduce" and work < most
