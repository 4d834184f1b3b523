"""The table of ONNX operators: which function of graphc computes each, from which version on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Rule = Callable[..., Any]
"""Takes inputs by position and attributes by name. Inputs are tensors, None where they are left out; those that the
rule names in ``host`` are Python's numbers, tuples of them, or arrays."""
MICROSOFT = "com.microsoft"


@dataclass(frozen=True, slots=True)
class Entry:
    """What computes an operator from a version of its domain on."""

    name: str
    domain: str
    since: int
    rule: Rule
    host: frozenset[int]
    """The numbers of the inputs whose values the rule asks for."""
    values: bool
    """Whether the rule takes Values and not tensors."""
    call: bool
    """Whether the rule asks for the Call, by a parameter of this name."""
    inputs: tuple[str, ...]
    """The names of the parameters that inputs fill; attributes may have these names, too."""


TABLE: dict[tuple[str, str], list[Entry]] = {}
"""By domain and name, the newest versions first."""
HOST: dict[tuple[str, str], Rule] = {}
"""Functions of arrays, which compute sizes where all inputs are known."""


def op(*names: str, since: int = 1, domain: str = "", host: str = "", values: bool = False) -> Callable[[Rule], Rule]:
    """Enters the decorated function for operators of these names from version ``since`` of the domain on. ``host``
    names the parameters whose values it asks for; with ``values`` it takes and gives Values."""

    def enter(rule: Rule) -> Rule:
        parameters = list(inspect.signature(rule).parameters.values())
        given = tuple([p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)])
        asked = frozenset([given.index(name) for name in host.split()])
        calls = any(p.name == "call" for p in parameters)
        for name in names:
            entries = TABLE.setdefault((domain, name), [])
            if any(e.since == since for e in entries):
                raise KeyError(f"{name} of version {since} is in the table already")
            entries.append(Entry(name, domain, since, rule, asked, values, calls, given))
            entries.sort(key=lambda e: -e.since)
        return rule

    return enter


def same(names: str, function_of: Callable[[str], Rule]) -> None:
    """Enters functions of graphc of one or two tensors that mean what the operators of these names do."""
    for pair in names.split():
        name, _, ours = pair.partition("=")
        op(name)(function_of(ours or name.lower()))


def host(*names: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Enters the decorated function of arrays for operators of these names. Arrays of dtype object hold sizes of named
    dimensions."""

    def enter(rule: Rule) -> Rule:
        for name in names:
            HOST[domain, name] = rule
        return rule

    return enter


def find(domain: str, name: str, version: int) -> Entry | None:
    """What computes an operator in a version of its domain; None where there is nothing."""
    return next((e for e in TABLE.get((domain, name), ()) if e.since <= version), None)
