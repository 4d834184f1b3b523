"""LLVM text of a large module as the texts of several modules, which are built at once and linked together."""

from __future__ import annotations

import re

PART_LINES, MOST_PARTS = 1500, 8
"""Lines of a module for each of its parts, and how many parts there are at most. It depends on nothing else into which
parts a module falls, so that equal programs give equal bytes on all machines."""

_HEAD = re.compile(r"define internal (?P<kind>.+?) @(?P<name>[\w.]+)\((?P<parameters>.*)\)(?P<attributes>[^()]*) \{")
_NAME = re.compile(r" %[\w.]+")


def split_module(text: str) -> list[str]:
    """The texts of modules that hold the functions of a module together: the first one all functions that are seen
    from outside or that call others, which are declared there."""
    outside, functions = _functions(text)
    count = min(MOST_PARTS, text.count("\n") // PART_LINES)
    heads = {m["name"]: m for m in (_HEAD.match(f) for f in functions) if m is not None}
    leaves = [f for f in functions if _is_leaf(f, heads)]
    if count < 2 or len(leaves) < 2:
        return [text]
    moved = set(leaves)
    parts: list[list[str]] = [[] for _ in range(count)]
    sizes = [0] * count
    parts[0] = [f for f in functions if f not in moved]
    sizes[0] = sum(f.count("\n") for f in parts[0])
    for function in sorted(leaves, key=lambda f: -f.count("\n")):
        smallest = sizes.index(min(sizes))
        parts[smallest].append(function.replace("define internal ", "define hidden ", 1))
        sizes[smallest] += function.count("\n")
    here = {m["name"] for m in map(_head_of, parts[0]) if m is not None}
    declared = [_declaration(m) for name, m in heads.items() if name not in here]
    parts[0] = [*declared, *parts[0]]
    return ["\n".join([outside, *functions, ""]) for functions in parts if functions]


def _functions(text: str) -> tuple[str, list[str]]:
    """What stands outside of functions, and every function."""
    outside: list[str] = []
    functions: list[list[str]] = []
    inside = False
    for line in text.split("\n"):
        if line.startswith("define "):
            functions.append([])
            inside = True
        (functions[-1] if inside else outside).append(line)
        inside = inside and line != "}"
    return "\n".join(outside), ["\n".join(f) for f in functions]


def _head_of(function: str) -> re.Match[str] | None:
    return re.match(r"define (?:internal |hidden )?(?P<kind>.+?) @(?P<name>[\w.]+)\(", function)


def _is_leaf(function: str, heads: dict[str, re.Match[str]]) -> bool:
    """True for internal functions that mention no other one of the module."""
    head = _HEAD.match(function)
    if head is None:
        return False
    return not any(name in heads for name in re.findall(r"@([\w.]+)", function[head.end() :]))


def _declaration(head: re.Match[str]) -> str:
    parameters = _NAME.sub("", head["parameters"])
    return f"declare hidden {head['kind']} @{head['name']}({parameters}){head['attributes']}"
