"""Kernels that differ in sizes alone as one function, which takes the sizes as arguments.

This is for programs that run once: packing 50 weights of ResNet-50 needs 21 functions. Products and divisions by sizes
known at build time only are faster, by a few instructions per row.
"""

from __future__ import annotations

import re
from dataclasses import replace

from graphc.codegen.llvm.module import Function, Item, LlvmModule
from graphc.codegen.llvm.split import UNIT_LINES

MOST_SIZES = 40
"""Maximum number of sizes of a function."""
_SIZE = re.compile(
    r"((?:mul|udiv|add|icmp ult)(?: nuw| nsw)* i64 %[\w.]+, "  # strides, counts, offsets and ends of loops
    r"|@llvm\.smin\.i64\(i64 %[\w.]+, i64 "  # ends of chunks
    r"|ptr %[\w.]+, i64 (?=\d+[,)]))"  # strides that a called function takes
    r"(\d+)\b"
)
_STRUCTURE = ("0", "1")
"""Numbers that are no sizes: the first iteration, and the step to the next."""


def with_run_time_sizes(module: LlvmModule) -> LlvmModule:
    """Return the module with the sizes of its long local functions as arguments of shared functions. Each kernel keeps
    its name, as a function that passes its sizes on."""
    shared: dict[tuple, Function] = {}
    items: list[Item] = []
    for item in module.items:
        if isinstance(item, str) or not item.local or item.quick or item.body.count("\n") < UNIT_LINES:
            items.append(item)
            continue
        sized, sizes = _sized(item)
        if not 0 < len(sizes) <= MOST_SIZES:
            items.append(item)
            continue
        key = sized.parameters, sized.body
        if key not in shared:
            shared[key] = sized
            items.append(sized)
        items.append(_caller(item, shared[key].name, sizes))
    return LlvmModule(tuple(items))


def _sized(function: Function) -> tuple[Function, list[str]]:
    """Return a function with its sizes as additional parameters, and the sizes."""
    sizes: list[str] = []

    def register(match: re.Match[str]) -> str:
        if match[2] in _STRUCTURE:
            return match[0]
        sizes.append(match[2])
        return f"{match[1]}%size{len(sizes) - 1}"

    body = _SIZE.sub(register, function.body)
    parameters = (*function.parameters, *(("i64", f"%size{i}") for i in range(len(sizes))))
    return replace(function, name=f"{function.name}.sized", parameters=parameters, body=body), sizes


def _caller(function: Function, name: str, sizes: list[str]) -> Function:
    """Return the function as a call of the shared one."""
    arguments = [f"{kind.split()[0]} {register}" for kind, register in function.parameters]
    call = f"  call void @{name}({', '.join([*arguments, *(f'i64 {size}' for size in sizes)])})"
    return replace(function, body=f"entry:\n{call}\n  ret void", calls=True, quick=True)
