"""Spilling of scratch rows too long for shared memory into temporaries of the program, one per block or warp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.map import map_statements
from graphc.ir.kernel.statements import (
    ARGUMENT_ROLES,
    SPREAD_KINDS,
    Buffer,
    Call,
    Kernel,
    Load,
    Loop,
    Program,
    Stmt,
    Storage,
    Store,
)


def spill_rows(program: Program) -> Program:
    """Turn the scratch buffers of kernels into temporaries that calls pass as arguments."""
    spilled = {k.name: [b for b in k.buffers if b.role == "scratch"] for k in program.kernels}
    if not any(spilled.values()):
        return program
    rows = {k.name: _spread(k) for k in program.kernels}
    storages, calls = list(program.storages), []
    used = {s.name for s in storages}
    for call in program.calls:
        added = []
        for buffer in spilled[call.kernel]:
            name = _fresh(f"{call.kernel}.{buffer.name}", used)
            size = call.size(buffer.size * prod(axis.extent for axis in rows[call.kernel]))
            storages.append(Storage(name, buffer.dtype, (size,), "temp"))
            added.append(name)
        calls.append(_with(call, added) if added else call)
    kernels = tuple(_spilled(k, spilled[k.name], rows[k.name]) for k in program.kernels)
    return replace(program, storages=tuple(storages), kernels=kernels, calls=tuple(calls))


def _fresh(name: str, used: set[str]) -> str:
    unused, number = name, 0
    while unused in used:
        number += 1
        unused = f"{name}.{number}"
    used.add(unused)
    return unused


def _with(call: Call, added: Sequence[str]) -> Call:
    offsets = (*call.offsets, *(Index() for _ in added)) if call.offsets else ()
    return replace(call, args=(*call.args, *added), offsets=offsets)


def _spread(kernel: Kernel) -> list[Axis]:
    """Return the axes of the loops whose iterations need separate rows."""
    axes: list[Axis] = []
    body = kernel.body
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind in SPREAD_KINDS:
        axes.append(body[0].axis)
        body = body[0].body
    return axes


def _spilled(kernel: Kernel, rows: Sequence[Buffer], spread: Sequence[Axis]) -> Kernel:
    if not rows:
        return kernel
    number, step = Index(), 1
    for axis in reversed(spread):
        number, step = number + Index(((axis, step),)) if axis.extent != 1 else number, step * axis.extent
    names = {b.name: b for b in rows}

    def leaf(stmt: Stmt) -> Sequence[Stmt]:
        if isinstance(stmt, Load | Store) and stmt.buffer in names:
            return (replace(stmt, index=stmt.index + number * names[stmt.buffer].size),)
        return (stmt,)

    out = [replace(b, role="out", size=b.size * step) for b in rows]
    own = [b for b in kernel.buffers if b.role not in ARGUMENT_ROLES and b.name not in names]
    buffers = (*kernel.arguments, *out, *own)
    return replace(kernel, buffers=buffers, body=map_statements(kernel.body, leaf=leaf))
