"""Table of ONNX operators: the function of graphc that computes each, by version."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from graphc.base.records import dataclass

Rule = Callable[..., Any]
"""Function that takes inputs by position and attributes by name. Inputs are tensors, or None if left out. Inputs named
in ``host`` arrive as Python numbers, tuples of numbers, or arrays."""
MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class OperatorEntry:
    """Rule of an operator from one version of its domain on."""

    name: str
    domain: str
    since: int
    rule: Rule
    host: frozenset[int]
    """Indices of the inputs whose values the rule reads."""
    values: bool
    """Whether the rule takes Values and not tensors."""
    call: bool
    """Whether the rule takes the Call, as a parameter named ``call``."""
    inputs: tuple[str, ...]
    """Names of the parameters that inputs fill. Attributes may have these names, too."""
    moves: bool = False
    """Whether the result has elements of the first input, moved or selected by their order: quantized codes may take
    the place of the numbers."""


TABLE: dict[tuple[str, str], list[OperatorEntry]] = {}
"""Entries by domain and name, newest version first."""
HOST: dict[tuple[str, str], Rule] = {}
"""Functions of arrays, which compute sizes where all inputs are static."""
TEXT: dict[tuple[str, str], Callable[..., Rule]] = {}
"""Makers of functions of arrays from the attributes of an operator, for operators that look texts up."""


def op(
    *names: str, since: int = 1, domain: str = "", host: str = "", values: bool = False, moves: bool = False
) -> Callable[[Rule], Rule]:
    """Register the decorated function for operators of these names from version ``since`` of the domain on.

    ``host`` names the parameters whose values the rule reads. With ``values`` the rule takes and returns Values. A rule
    that ``moves`` returns elements of its first input.
    """

    def enter(rule: Rule) -> Rule:
        # NOTE: inspect.signature takes 40 us for each of a hundred rules that a small model loads.
        code = inspect.unwrap(rule).__code__
        positional = code.co_varnames[: code.co_argcount]
        host_indices = frozenset([positional.index(name) for name in host.split()])
        calls = "call" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        for name in names:
            entries = TABLE.setdefault((domain, name), [])
            if any(e.since == since for e in entries):
                raise KeyError(f"{name} of version {since} is already in the table")
            entries.append(OperatorEntry(name, domain, since, rule, host_indices, values, calls, positional, moves))
            entries.sort(key=lambda e: -e.since)
        return rule

    return enter


def same(names: str, function_of: Callable[[str], Rule]) -> None:
    """Register functions of graphc that compute exactly the operators of these names, of one or two tensors."""
    for pair in names.split():
        name, _, ours = pair.partition("=")
        op(name)(function_of(ours or name.lower()))


def host(*names: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Register the decorated function of arrays for operators of these names.

    Arrays of dtype object hold sizes of named dimensions.
    """

    def enter(rule: Rule) -> Rule:
        for name in names:
            HOST[domain, name] = rule
        return rule

    return enter


def text(*names: str, domain: str = "") -> Callable[[Callable[..., Rule]], Callable[..., Rule]]:
    """Register the decorated maker of a function of arrays for operators of these names."""

    def enter(make: Callable[..., Rule]) -> Callable[..., Rule]:
        TEXT.update({(domain, name): make for name in names})
        return make

    return enter


def find(domain: str, name: str, version: int) -> OperatorEntry | None:
    """Return the entry of an operator in a version of its domain, or None."""
    return next((e for e in TABLE.get((domain, name), ()) if e.since <= version), None)
