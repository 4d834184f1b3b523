"""The native entry of a program: one function that calls its kernels in order over one table of addresses."""

from __future__ import annotations

from graphc.codegen.llvm_emit import emit_kernel
from graphc.codegen.target import Target
from graphc.ir.kernel import Program, Storage

ENTRY = "graphc_entry"
"""Symbol of the entry: ``void graphc_entry(ptr table)``; the table holds the address of every bound storage, arena last."""
ALIGNMENT = 64
"""Bytes to which temporaries, scratch buffers and constants are aligned."""


def bound_storages(program: Program) -> list[Storage]:
    """Storages that a call binds, in the order of the table: arguments, outputs, constants."""
    return [s for s in program.storages if s.cls != "temp" and not s.alias]


def emit_program(program: Program, target: Target) -> str:
    """LLVM text of all kernels and the entry. The program must be scheduled and its memory planned."""
    declarations: dict[str, str] = {}
    functions = [emit_kernel(kernel, target, declarations) for kernel in program.kernels]
    entry = _emit_entry(program)
    head = f'target triple = "{target.triple}"\n'
    attributes = 'attributes #0 = { nounwind noinline "frame-pointer"="none" }\n'
    return "\n".join([head, *sorted(declarations.values()), "", *functions, entry, attributes])


def _emit_entry(program: Program) -> str:
    lines = [f"define void @{ENTRY}(ptr noalias nocapture readonly %table) #0 {{", "entry:"]
    bound = bound_storages(program)
    names = {s.name: f"%s{i}" for i, s in enumerate(bound)}
    used = {_resolve(program, a) for call in program.calls for a in call.args}
    for i, storage in enumerate(bound):
        if storage.name in used:
            lines.append(f"  %p{i} = getelementptr inbounds ptr, ptr %table, i64 {i}")
            lines.append(f"  %s{i} = load ptr, ptr %p{i}, align 8")
    lines.append(f"  %pa = getelementptr inbounds ptr, ptr %table, i64 {len(bound)}")
    lines.append("  %arena = load ptr, ptr %pa, align 8")
    for i, storage in enumerate(s for s in program.storages if s.cls == "temp" and not s.alias):
        names[storage.name] = f"%m{i}"
        lines.append(f"  %m{i} = getelementptr inbounds i8, ptr %arena, i64 {storage.offset}")
    scratch = program.arena - program.scratch
    for number, call in enumerate(program.calls):
        kernel = program.kernel(call.kernel)
        args = [f"ptr {names[_resolve(program, a)]}" for a in call.args]
        offset = scratch
        for k, buffer in enumerate(b for b in kernel.buffers if b.role == "scratch"):
            lines.append(f"  %x{number}.{k} = getelementptr inbounds i8, ptr %arena, i64 {offset}")
            args.append(f"ptr %x{number}.{k}")
            offset += aligned(buffer.size * buffer.dtype.itemsize)
        lines.append(f"  call void @{kernel.name}({', '.join(args)})")
    return "\n".join([*lines, "  ret void", "}", ""])


def _resolve(program: Program, name: str) -> str:
    """The storage that owns the memory of ``name``."""
    seen = program.storage(name)
    while seen.alias:
        seen = program.storage(seen.alias)
    return seen.name


def aligned(nbytes: int) -> int:
    """``nbytes`` rounded up to the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
