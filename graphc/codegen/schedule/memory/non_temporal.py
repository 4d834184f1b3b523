"""Non-temporal stores: for large results that no kernel reads again, or that no cache holds."""

from __future__ import annotations

from graphc.base.sizes.size import hint
from graphc.codegen.machine.target import Target
from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.statements import Buffer, Kernel, Load, Program, Store, walk


def non_temporal_buffers(program: Program, target: Target) -> dict[str, frozenset[str]]:
    """Return, by kernel, the buffers whose stores may be non-temporal in every call.

    They hold large outputs, written once and line by line, that no kernel reads (or any results larger than all
    caches). The kernel must access at least ``non_temporal_bytes``: less would stay in the caches.
    """
    costs = target.costs.memory
    least = costs.non_temporal_bytes
    kernels = [k for k in program.kernels if least and _bytes(*k.arguments) >= least]
    non_temporal: dict[str, frozenset[str]] = {}
    uncached = _unread_outputs(program) | _vast(program, target) if kernels else set()
    for kernel in kernels:
        calls = [c for c in program.calls if c.kernel == kernel.name]
        buffers = frozenset(
            b.name
            for i, b in enumerate(kernel.arguments)
            if all(not c.loops and not c.offsets and c.args[i] in uncached for c in calls)
            and _bytes(b) * costs.non_temporal_part >= least
            and _is_written_once(kernel, b.name, target)
        )
        if buffers and sum(1 for _ in walk(kernel.body)) <= costs.non_temporal_statements:
            non_temporal[kernel.name] = buffers
    return non_temporal


def _bytes(*buffers: Buffer) -> int:
    return sum(hint(b.size) * b.dtype.itemsize for b in buffers)


def _unread_outputs(program: Program) -> set[str]:
    """Return the outputs with separate memory that no kernel reads."""
    arguments = {k.name: k.arguments for k in program.kernels}
    read = {a for c in program.calls for a, b in zip(c.args, arguments[c.kernel], strict=True) if b.role != "out"}
    shared = {s.alias for s in program.storages if s.alias}
    return {s.name for s in program.storages if s.cls == "output" and not s.alias} - read - shared


def _vast(program: Program, target: Target) -> set[str]:
    """Return the storages so large that none of their bytes are in a cache after they are written."""
    shared = {s.alias for s in program.storages if s.alias}
    least = target.costs.memory.vast * target.costs.memory.non_temporal_bytes
    large = [s for s in program.storages if hint(s.nbytes) >= least and not s.alias]
    return {s.name for s in large if s.cls in ("output", "temp")} - shared


def _is_written_once(kernel: Kernel, buffer: str, target: Target) -> bool:
    """Check whether the kernel only stores to the buffer, and stores whole cache lines of it."""
    lines = 0
    for stmt, loops in walk(kernel.body):
        if isinstance(stmt, Load) and stmt.buffer == buffer:
            return False
        if isinstance(stmt, Store) and stmt.buffer == buffer:
            if stmt.combine or stmt.guard:
                return False
            vector = next((loop.axis for loop in loops if loop.kind == "vector"), None)
            lines += vector is not None and is_line(stmt.index, vector, kernel.buffer(buffer).dtype.itemsize, target)
    return lines > 0


def is_line(index: Index, vector: Axis, itemsize: int, target: Target) -> bool:
    """Check whether a vector of contiguous elements is a cache line, if the buffer starts at one."""
    lanes = target.vector_bytes // itemsize
    full = target.vector_bytes == target.line_bytes and vector.extent == lanes and index.coefficient(vector) == 1
    return full and all(c % lanes == 0 for a, c in index.terms if a != vector) and index.constant % lanes == 0
