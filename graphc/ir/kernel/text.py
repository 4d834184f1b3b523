"""Printer of kernels and programs, in the text that ir.kernel.parse reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from graphc.ir.kernel.dims import dims_of_calls, dims_of_kernel, dims_of_program
from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.statements import (
    Acc,
    Barrier,
    Bound,
    Buffer,
    Call,
    Const,
    Guard,
    IndexLet,
    Kernel,
    Let,
    Load,
    Loop,
    Prefetch,
    Program,
    Read,
    Ref,
    Stmt,
    Storage,
    Store,
    Update,
)
from graphc.ir.literal import INLINE_LIMIT, digest, print_array, print_dim, print_name, print_scalar, print_type


def print_kernel(kernel: Kernel) -> str:
    """Print a kernel, one statement a line::

        kernel @k0(%x: f32[4096] in, %y: f32[64] out) {
          for i0 in 64 parallel {
            acc acc1: f32 = add f32(0.0)
            for i1 in 64 reduce {
              v1: f32 = load %x[64*i0 + i1]
              update acc1 with v1
            }
            v2 = read acc1
            store %y[i0] = v2
          }
        }

    Buffers are flat: the number in brackets counts elements. ``load ... if 0 <= i1 < 5 else f32(0.0)`` is a guarded
    load, ``[v3:0..9]`` in an index is the integer scalar v3 in the range 0..9, ``store %y[i0] add= v2`` combines. Named
    dimensions are declared before their use: ``dim time = 1..512 hint 128`` precedes the kernel, or its program, and
    the kernel contains ``for i0 in 2*time parallel``.
    """
    dims = [print_dim(d) for d in dims_of_kernel(kernel).values()]
    return "\n".join([*dims, *(line for line, _ in kernel_lines(kernel))]) + "\n"


def print_program(program: Program) -> str:
    """Print a program: storages, kernels, calls in order. Constants beyond 16 elements print as digests;
    ``collect_data(program)`` returns their data."""
    return "\n".join(line for line, _ in program_lines(program)) + "\n"


def collect_data(program: Program) -> dict[str, np.ndarray]:
    """Return the arrays that the program's text names only by digest."""
    arrays = [s.data for s in program.storages if s.data is not None and s.data.size > INLINE_LIMIT]
    return {digest(a): a for a in arrays}


def kernel_lines(kernel: Kernel) -> list[tuple[str, Stmt | None]]:
    """Return the lines of the text, each with the statement that starts there (None for heads and closing braces)."""
    arguments = ", ".join(map(print_buffer, kernel.buffers))
    origin = " from " + ", ".join(map(json.dumps, kernel.origin)) if kernel.origin else ""
    threads = f" threads {kernel.threads}" if kernel.threads else ""
    threads += f" host {kernel.host}" if kernel.host >= 0 else ""
    lines: list[tuple[str, Stmt | None]] = [
        (f"kernel {print_name('@', kernel.name)}({arguments}){threads}{origin} {{", None)
    ]
    stack: list[tuple[Stmt | None, int]] = [(s, 1) for s in reversed(kernel.body)]
    while stack:
        stmt, depth = stack.pop()
        lines.append(("  " * depth + ("}" if stmt is None else print_stmt(stmt)), stmt))
        if isinstance(stmt, Loop):
            stack.append((None, depth))
            stack.extend((s, depth + 1) for s in reversed(stmt.body))
    lines.append(("}", None))
    return lines


def program_lines(program: Program) -> list[tuple[str, Storage | Kernel | Call | None]]:
    """Return the lines of the text, each with the storage, kernel or call that starts there."""
    arena = f" arena {program.arena}" if program.arena != 0 else ""
    dims = {**dims_of_program(program), **dims_of_calls(program)}
    lines: list[tuple[str, Any]] = [(print_dim(d), None) for d in dims.values()]
    lines.append((f"program {print_name('@', program.name)}{arena} {{", None))
    lines.extend((f"  {print_storage(s)}", s) for s in program.storages)
    for kernel in program.kernels:
        body = [f"  {line}" for line, _ in kernel_lines(kernel)]
        lines.extend([("", None), (body[0], kernel), *((line, None) for line in body[1:])])
    if program.calls:
        lines.append(("", None))
    lines.extend(_call_lines(program.calls))
    lines.append(("}", None))
    return lines


def _call_lines(calls: Sequence[Call]) -> Iterator[tuple[str, Call | None]]:
    """Yield calls in order, repeated ones inside of their loops: ``repeat r0 in 64 {``, ``}``."""
    around: tuple[Axis, ...] = ()
    for call in (*calls, None):
        loops = call.loops if call is not None else ()
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(around, loops, strict=False)))
        for depth in range(len(around), same, -1):
            yield "  " * depth + "}", None
        for depth in range(same, len(loops)):
            flag = f" while {print_name('%', loops[depth].flag)}" if loops[depth].flag else ""
            yield "  " * (depth + 1) + f"repeat {loops[depth].name} in {loops[depth].extent}{flag} {{", None
        around = loops
        if call is not None:
            yield "  " * (len(around) + 1) + print_call(call), call


def print_buffer(buffer: Buffer) -> str:
    """Format ``%x: f32[4096] in``."""
    return f"{print_name('%', buffer.name)}: {print_type(buffer.dtype, (buffer.size,))} {buffer.role}"


def print_storage(storage: Storage) -> str:
    """Format one line: ``temp %t0: f32[32,128] at 512``, ``output %y: f32[4] alias %t0``, ``param %w: f32[4]
    "fc.weight"``."""
    words = [f"{storage.cls} {print_name('%', storage.name)}: {print_type(storage.dtype, storage.shape)}"]
    if storage.path:
        words.append(json.dumps(storage.path))
    if storage.alias:
        words.append(f"alias {print_name('%', storage.alias)}")
    if storage.offset != -1:
        words.append(f"at {storage.offset}")
    if storage.complex:
        words.append("complex")
    if storage.equals is not None:
        words.append(f"equals {storage.equals}")
    if storage.data is not None:
        words.append(f"= {print_array(storage.data)}")
    return " ".join(words)


def print_call(call: Call) -> str:
    """Format ``call @k0(%x, %t0)``. ``%x[512*r0]`` is the subview of %x that starts at that element; ``[0]`` is printed
    too if no other argument has an offset. ``with rows = 7`` binds a dimension of the kernel."""
    zero = "[0]" if call.offsets and all(offset == Index() for offset in call.offsets) else ""
    offsets = [f"[{call.offset(i)}]" if call.offset(i) != Index() else zero for i in range(len(call.args))]
    args = [print_name("%", a) + offset for a, offset in zip(call.args, offsets, strict=True)]
    sizes = ", ".join(f"{d} = {size}" for d, size in call.sizes)
    return f"call {print_name('@', call.kernel)}({', '.join(args)})" + (f" with {sizes}" if sizes else "")


def print_stmt(stmt: Stmt) -> str:
    """Format one statement; only the head of a loop."""
    return _PRINTERS[type(stmt)](stmt)


def _print_ref(ref: Ref) -> str:
    return print_scalar(ref.value, ref.dtype) if isinstance(ref, Const) else ref


def _print_let(stmt: Let) -> str:
    return f"{stmt.name}: {stmt.dtype} = {stmt.op}({', '.join(map(_print_ref, stmt.args))})"


def _print_load(stmt: Load) -> str:
    other = f" else {_print_ref(stmt.other)}" if stmt.other is not None else ""
    element = f"{print_name('%', stmt.buffer)}[{stmt.index}]"
    return f"{stmt.name}: {stmt.dtype} = load {element}{_print_guard(stmt.guard)}{other}"


def _print_store(stmt: Store) -> str:
    equals = f"{stmt.combine}=" if stmt.combine else "="
    element = f"{print_name('%', stmt.buffer)}[{stmt.index}]"
    return f"store {element} {equals} {_print_ref(stmt.value)}{_print_guard(stmt.guard)}"


def _print_guard(guard: Guard) -> str:
    return " if " + " and ".join(map(_print_bound, guard)) if guard else ""


def _print_bound(bound: Bound) -> str:
    return f"{bound.low} <= {bound.index} < {bound.high}"


def _print_acc(stmt: Acc) -> str:
    return f"acc {stmt.name}: {stmt.dtype} = {stmt.combine} {_print_ref(stmt.init)}"


_PRINTERS: dict[type, Callable[[Any], str]] = {
    Let: _print_let,
    IndexLet: lambda s: f"{s.name}: {s.dtype} = index {s.index}",
    Load: _print_load,
    Store: _print_store,
    Acc: _print_acc,
    Update: lambda s: f"update {s.acc} with {_print_ref(s.value)}",
    Read: lambda s: f"{s.name} = read {s.acc}{f' over {s.over}' if s.over else ''}",
    Barrier: lambda s: f"barrier {s.over}",
    Prefetch: lambda s: f"prefetch {print_name('%', s.buffer)}[{s.index}]",
    Loop: lambda s: f"for {s.axis.name} in {s.axis.extent} {s.kind} {f'until {s.until} ' if s.until else ''}{{",
}
