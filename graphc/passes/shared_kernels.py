"""Kernel sharing: merge kernels that differ only in the offset of their reads, as for many slices of one tensor."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from graphc.base.sizes.size_relations import at_most
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.ir.kernel.index import bounds
from graphc.ir.kernel.map import map_statements
from graphc.ir.kernel.statements import Call, Kernel, Load, Program, Stmt, walk

_Ranges = dict[str, tuple[int, int]]
"""Half-open range of the elements that a kernel reads, by the name of the buffer."""


def share_kernels(program: Program, products: Collection[str], costs: FusionCosts = DEFAULT.fusion) -> Program:
    """Merge kernels that differ only in the offset at which they begin to read.

    Needs: a lowered program. Does: where more than ``kernels_apart`` kernels are equal up to this offset, one of them
    takes all their calls, with offsets. Kernels in ``products`` read entire weights and constants, since these are
    packed ahead of the calls. Leaves: the same computation.
    """
    most = costs.kernels_apart
    if len(program.kernels) <= most:
        return program
    packed = {s.name for s in program.storages if s.cls in ("weight", "constant")}
    ranges = {k.name: _ranges_read(program, k, packed if k.name in products else set()) for k in program.kernels}
    forms = {k.name: _moved(k, ranges[k.name]) for k in program.kernels}
    alike: dict[tuple, list[str]] = {}
    for name, kernel in forms.items():
        alike.setdefault((kernel.buffers, kernel.body, kernel.host), []).append(name)
    first = {name: names[0] for names in alike.values() if len(names) > most for name in names}
    kernels = tuple(
        forms[k.name] if k.name in first else k for k in program.kernels if first.get(k.name, k.name) == k.name
    )
    calls = (
        _with_offsets(program, c, first[c.kernel], ranges[c.kernel]) if c.kernel in first else c for c in program.calls
    )
    return replace(program, kernels=kernels, calls=tuple(calls))


def _ranges_read(program: Program, kernel: Kernel, packed: set[str]) -> _Ranges:
    """Return the ranges of buffers which a kernel only reads, and reads unconditionally; storages in ``packed`` are
    excluded."""
    ranges: _Ranges = {}
    sizes = {b.name: b.size for b in kernel.buffers}
    excluded = {b.name for b in kernel.buffers if b.role != "in"}
    for call in program.calls_of(kernel.name) if packed else ():
        excluded |= {b.name for b, a in zip(kernel.arguments, call.args, strict=True) if a in packed}
    for stmt, _ in walk(kernel.body):
        if not isinstance(stmt, Load) or stmt.buffer in excluded:
            continue
        low, high = bounds(stmt.index)
        joined = _joined(ranges.get(stmt.buffer), (low, high + 1))
        if stmt.guard or joined is None or not at_most(0, low) or not at_most(high + 1, sizes[stmt.buffer]):
            excluded.add(stmt.buffer)
        else:
            ranges[stmt.buffer] = joined
    return {name: range_read for name, range_read in ranges.items() if name not in excluded}


def _joined(a: tuple[int, int] | None, b: tuple[int, int]) -> tuple[int, int] | None:
    """Return the smallest range that contains both; None where sizes known only at run time leave it undecided."""
    if a is None:
        return b
    first = a if at_most(a[0], b[0]) else b
    last = a if at_most(b[1], a[1]) else b
    other_first, other_last = b if first is a else a, b if last is a else a
    decided = at_most(first[0], other_first[0]) and at_most(other_last[1], last[1])
    return (first[0], last[1]) if decided else None


def _moved(kernel: Kernel, ranges: _Ranges) -> Kernel:
    """Return the kernel with its buffers reduced to the ranges read."""
    buffers = tuple(
        replace(b, size=ranges[b.name][1] - ranges[b.name][0]) if b.name in ranges else b for b in kernel.buffers
    )
    return replace(kernel, buffers=buffers, body=map_statements(kernel.body, leaf=lambda s: (_moved_load(s, ranges),)))


def _moved_load(stmt: Stmt, ranges: _Ranges) -> Stmt:
    if isinstance(stmt, Load) and stmt.buffer in ranges:
        return replace(stmt, index=stmt.index - ranges[stmt.buffer][0])
    return stmt


def _with_offsets(program: Program, call: Call, kernel: str, ranges: _Ranges) -> Call:
    """Return a call of ``kernel`` that passes only the ranges."""
    buffers = program.kernel(call.kernel).arguments
    offsets = (call.offset(i) + ranges.get(b.name, (0, 0))[0] for i, b in enumerate(buffers))
    return replace(call, kernel=kernel, offsets=tuple(offsets))
