"""Call graph of machine code: reached functions, C library functions among them, and forbidden instructions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphc.base.errors import RealtimeError
from graphc.codegen.proof.flow import Flow
from graphc.codegen.proof.leaves import LEAVES

_REFUSED = {
    "system": "a system call or a privileged instruction",
    "lock": "an atomic instruction, as locks use",
}
_NAME = re.compile(r"[A-Za-z_.$][\w.$]*")


@dataclass(frozen=True)
class Reached:
    """Functions reached from some roots."""

    functions: tuple[str, ...]
    """Functions of the code itself, callees first."""
    outside: tuple[str, ...]
    """Functions of the C library, sorted."""
    paths: Mapping[str, tuple[str, ...]]
    """A chain of calls to each of both."""


def reach(flows: Mapping[str, Flow], roots: Sequence[str], undefined: frozenset[str]) -> Reached:
    """Return the functions reached from ``roots``. ``undefined``: the code's external symbols. Raises RealtimeError
    with the chain of calls for anything not known to be free of allocation, locks and system calls, for indirect calls,
    and for recursion."""
    order: list[str] = []
    outside: dict[str, tuple[str, ...]] = {}
    paths: dict[str, tuple[str, ...]] = {}
    stack: list[tuple[str, tuple[str, ...], bool]] = [(root, (root,), False) for root in reversed(roots)]
    while stack:
        name, path, done = stack.pop()
        if done:
            order.append(name)
        elif name not in flows:
            outside.setdefault(_allowed(name, path), path)
        elif name not in paths:
            paths[name] = path
            stack.append((name, path, True))
            stack += [(callee, (*path, callee), False) for callee in _callees(flows[name], path, undefined)]
        elif name not in order:
            raise RealtimeError(f"@{name} calls itself, so its stack size is unknown", where=_chain(path))
    return Reached(tuple(order), tuple(sorted(outside)), {**paths, **outside})


def _chain(path: Sequence[str]) -> str:
    return " -> ".join(f"@{name}" for name in path)


def _allowed(name: str, path: tuple[str, ...]) -> str:
    if name not in LEAVES:
        raise RealtimeError(
            f"the code reaches @{name}, which is not known to be free of allocation, locks and system calls",
            where=_chain(path),
            remedy="remove that operation from the model; graphc explain shows what each kernel computes",
        )
    return name


def _callees(flow: Flow, path: tuple[str, ...], undefined: frozenset[str]) -> list[str]:
    """Return the callees of a function, in order; raises RealtimeError for forbidden instructions."""
    callees: list[str] = []
    for line, step in zip(flow.function.lines, flow.steps, strict=True):
        where = f"{_chain(path)}, line {line.number}: {line}"
        if step.kind in _REFUSED:
            raise RealtimeError(f"@{path[-1]} has {_REFUSED[step.kind]}", where=where)
        if step.kind in ("call", "tail"):
            if not step.target:
                raise RealtimeError(f"@{path[-1]} makes an indirect call, whose target is unknown", where=where)
            callees.append(step.target)
            continue
        named = {n for operand in line.operands for n in _NAME.findall(operand)} & undefined
        if named:
            raise RealtimeError(f"@{path[-1]} reads @{min(named)}, which is not part of the code", where=where)
    return list(dict.fromkeys(callees))
