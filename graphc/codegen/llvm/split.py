"""A large LLVM module as the texts of several modules, which are built at once and linked together."""

from __future__ import annotations

from graphc.codegen.llvm.module import Function, Module

PART_LINES, MOST_PARTS = 1500, 8
"""Lines of a module for each of its parts, and how many parts there are at most. It depends on nothing else into which
parts a module falls, so that equal programs give equal bytes on all machines."""


def split_module(module: Module) -> list[str]:
    """The texts of modules that hold the functions of a module together: the first one all functions that are seen
    from outside or that call others, which are declared there."""
    text = module.text
    count = min(MOST_PARTS, text.count("\n") // PART_LINES)
    leaves = [f for f in module.functions if f.local and not f.calls]
    if count < 2 or len(leaves) < 2:
        return [text]
    moved = {f.name for f in leaves}
    parts: list[list[str]] = [[] for _ in range(count)]
    parts[0] = [f.text for f in module.functions if f.name not in moved]
    sizes = [sum(_lines(f) for f in module.functions if f.name not in moved), *[0] * (count - 1)]
    here = set[str]()
    for function in sorted(leaves, key=lambda f: -_lines(f)):
        smallest = sizes.index(min(sizes))
        parts[smallest].append(function.definition("hidden "))
        sizes[smallest] += _lines(function)
        here.update(() if smallest else (function.name,))
    parts[0] = [*(f.declaration for f in module.functions if f.name in moved - here), *parts[0]]
    return ["\n".join([module.outside, *functions, ""]) for functions in parts if functions]


def _lines(function: Function) -> int:
    return function.body.count("\n") + 2
