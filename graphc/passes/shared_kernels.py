"""Kernels that differ only in where they begin to read become one, whose calls say where: many slices of one tensor."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from graphc.base.sizes.size_relations import at_most
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.ir.kernel.index import bounds
from graphc.ir.kernel.map import map_statements
from graphc.ir.kernel.statements import Call, Kernel, Load, Program, Stmt, walk

_Parts = dict[str, tuple[int, int]]
"""By the name of a buffer that is read: where the elements that are read begin and end."""


def share_kernels(program: Program, products: Collection[str], costs: FusionCosts = DEFAULT.fusion) -> Program:
    """Needs: a lowered program. Does: where more than ``kernels_apart`` kernels are the same but for the place at
    which they begin to read, one takes all their calls, with places; ``products`` read weights and constants as a
    whole, for these are packed ahead. Leaves: the same computation."""
    most = costs.kernels_apart
    if len(program.kernels) <= most:
        return program
    packed = {s.name for s in program.storages if s.cls in ("weight", "constant")}
    parts = {k.name: _parts(program, k, packed if k.name in products else set()) for k in program.kernels}
    forms = {k.name: _moved(k, parts[k.name]) for k in program.kernels}
    alike: dict[tuple, list[str]] = {}
    for name, kernel in forms.items():
        alike.setdefault((kernel.buffers, kernel.body, kernel.host), []).append(name)
    first = {name: names[0] for names in alike.values() if len(names) > most for name in names}
    kernels = tuple(
        forms[k.name] if k.name in first else k for k in program.kernels if first.get(k.name, k.name) == k.name
    )
    calls = (
        _with_offsets(program, c, first[c.kernel], parts[c.kernel]) if c.kernel in first else c for c in program.calls
    )
    return replace(program, kernels=kernels, calls=tuple(calls))


def _parts(program: Program, kernel: Kernel, whole: set[str]) -> _Parts:
    """The parts of buffers that a kernel reads, where it only reads them and under no condition; those of the storages
    ``whole`` are left out."""
    found: _Parts = {}
    sizes = {b.name: b.size for b in kernel.buffers}
    left = {b.name for b in kernel.buffers if b.role != "in"}
    for call in program.calls_of(kernel.name) if whole else ():
        left |= {b.name for b, a in zip(kernel.arguments, call.args, strict=True) if a in whole}
    for stmt, _ in walk(kernel.body):
        if not isinstance(stmt, Load) or stmt.buffer in left:
            continue
        low, high = bounds(stmt.index)
        joined = _joined(found.get(stmt.buffer), (low, high + 1))
        if stmt.guard or joined is None or not at_most(0, low) or not at_most(high + 1, sizes[stmt.buffer]):
            left.add(stmt.buffer)
        else:
            found[stmt.buffer] = joined
    return {name: part for name, part in found.items() if name not in left}


def _joined(a: tuple[int, int] | None, b: tuple[int, int]) -> tuple[int, int] | None:
    """The least part that holds two; None where sizes known at run time leave open which that is."""
    if a is None:
        return b
    first = a if at_most(a[0], b[0]) else b
    last = a if at_most(b[1], a[1]) else b
    other_first, other_last = b if first is a else a, b if last is a else a
    known = at_most(first[0], other_first[0]) and at_most(other_last[1], last[1])
    return (first[0], last[1]) if known else None


def _moved(kernel: Kernel, parts: _Parts) -> Kernel:
    """The kernel with buffers that are only the parts that it reads."""
    buffers = tuple(
        replace(b, size=parts[b.name][1] - parts[b.name][0]) if b.name in parts else b for b in kernel.buffers
    )
    return replace(kernel, buffers=buffers, body=map_statements(kernel.body, leaf=lambda s: (_moved_load(s, parts),)))


def _moved_load(stmt: Stmt, parts: _Parts) -> Stmt:
    if isinstance(stmt, Load) and stmt.buffer in parts:
        return replace(stmt, index=stmt.index - parts[stmt.buffer][0])
    return stmt


def _with_offsets(program: Program, call: Call, kernel: str, parts: _Parts) -> Call:
    """A call of the kernel that takes only the parts."""
    buffers = program.kernel(call.kernel).arguments
    offsets = (call.offset(i) + parts.get(b.name, (0, 0))[0] for i, b in enumerate(buffers))
    return replace(call, kernel=kernel, offsets=tuple(offsets))
