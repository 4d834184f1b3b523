"""Splitting of a large LLVM module into several, which are built concurrently and linked together."""

from __future__ import annotations

from graphc.codegen.llvm.module import Function, LlvmModule

PART_LINES, MOST_PARTS = 1500, 8
"""Lines per part, and maximum number of parts. The split depends on nothing else, so that equal programs give equal
bytes on all machines."""


def split_module(module: LlvmModule) -> list[str]:
    """Return the texts of modules that together hold the functions of a module. The first one holds all functions that
    are visible from outside or call others, with declarations of the latter."""
    text = module.text
    count = min(MOST_PARTS, text.count("\n") // PART_LINES)
    leaves = [f for f in module.functions if f.local and not f.calls]
    if count < 2 or len(leaves) < 2:
        return [text]
    moved = {f.name for f in leaves}
    groups: list[list[str]] = [[] for _ in range(count)]
    groups[0] = [f.text for f in module.functions if f.name not in moved]
    sizes = [sum(_lines(f) for f in module.functions if f.name not in moved), *[0] * (count - 1)]
    here = set[str]()
    for function in sorted(leaves, key=lambda f: -_lines(f)):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(function.definition("hidden "))
        sizes[smallest] += _lines(function)
        here.update(() if smallest else (function.name,))
    groups[0] = [*(f.declaration for f in module.functions if f.name in moved - here), *groups[0]]
    return ["\n".join([module.outside, *functions, ""]) for functions in groups if functions]


def _lines(function: Function) -> int:
    return function.body.count("\n") + 2
