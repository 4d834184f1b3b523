"""What functions reach: their calls, the functions of the C library behind them, and what a proof does not allow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphc.base.errors import RealtimeError
from graphc.codegen.proof.flow import Flow
from graphc.codegen.proof.leaves import LEAVES

_REFUSED = {
    "system": "a system call or an instruction that the system keeps to itself",
    "lock": "an instruction that other threads see happen at once, as locks are made of",
}
_NAME = re.compile(r"[A-Za-z_.$][\w.$]*")


@dataclass(frozen=True)
class Reached:
    """What is reached from some functions."""

    functions: tuple[str, ...]
    """Of the code itself; each stands behind all that it calls."""
    outside: tuple[str, ...]
    """Functions of the C library, sorted."""
    paths: Mapping[str, tuple[str, ...]]
    """For each of both a chain of calls that leads there."""


def reach(flows: Mapping[str, Flow], roots: Sequence[str], undefined: frozenset[str]) -> Reached:
    """What ``roots`` reach. ``undefined``: the symbols that the code has from elsewhere. Raises RealtimeError, with the
    chain of calls that leads there, for all that is not known to be free of allocation, locks and system calls, for
    calls of what a register holds, and for functions that call themselves."""
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
            raise RealtimeError(f"@{name} calls itself, so that the stack it takes is not known", where=_chain(path))
    return Reached(tuple(order), tuple(sorted(outside)), {**paths, **outside})


def _chain(path: Sequence[str]) -> str:
    return " -> ".join(f"@{name}" for name in path)


def _allowed(name: str, path: tuple[str, ...]) -> str:
    if name not in LEAVES:
        raise RealtimeError(
            f"@{name} is reached, which is not known to be free of allocation, locks and system calls",
            where=_chain(path),
            remedy="a model without that operation; graphc explain says what each kernel computes",
        )
    return name


def _callees(flow: Flow, path: tuple[str, ...], undefined: frozenset[str]) -> list[str]:
    """The functions that a function calls, in order; raises RealtimeError for what it may not do."""
    found: list[str] = []
    for line, step in zip(flow.function.lines, flow.steps, strict=True):
        where = f"{_chain(path)}, line {line.number}: {line}"
        if step.kind in _REFUSED:
            raise RealtimeError(f"@{path[-1]} has {_REFUSED[step.kind]}", where=where)
        if step.kind in ("call", "tail"):
            if not step.target:
                raise RealtimeError(f"@{path[-1]} calls what a register holds, which may be anything", where=where)
            found.append(step.target)
            continue
        named = {n for operand in line.operands for n in _NAME.findall(operand)} & undefined
        if named:
            raise RealtimeError(f"@{path[-1]} reads @{min(named)}, which is not part of the code", where=where)
    return list(dict.fromkeys(found))
