"""Table of StableHLO and CHLO operations: the function of graphc that computes each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.base.records import dataclass

Rule = Callable[..., Any]
"""Function that takes a OperationCall and the operands as tensors, and returns a tensor or a tuple of tensors."""


@dataclass(frozen=True)
class Entry:
    """Rule of an operation."""

    rule: Rule
    pointwise: bool
    """Whether the operation computes each element from one element of each operand, so that a region for one element
    also computes whole tensors."""


TABLE: dict[str, Entry] = {}
"""Entries by name with dialect."""
TARGETS: dict[str, Rule] = {}
"""Rules of ``stablehlo.custom_call``, by target."""


def rule(*names: str, pointwise: bool = False) -> Callable[[Rule], Rule]:
    """Register the decorated function for operations. Names without a dialect are of ``stablehlo``."""

    def enter(function: Rule) -> Rule:
        for name in names:
            full = name if "." in name else f"stablehlo.{name}"
            if full in TABLE:
                raise KeyError(f"{full} is already in the table")
            TABLE[full] = Entry(function, pointwise)
        return function

    return enter


def target(*names: str) -> Callable[[Rule], Rule]:
    """Register the decorated function for custom calls of these targets."""

    def enter(function: Rule) -> Rule:
        TARGETS.update(dict.fromkeys(names, function))
        return function

    return enter


def same(names: str, function_of: Callable[[str], Callable[..., Any]]) -> None:
    """Register pointwise functions of tensors, by pairs ``operation=function``."""
    for pair in names.split():
        name, _, ours = pair.partition("=")
        function = function_of(ours)
        rule(name, pointwise=True)(_without_call(function))


def _without_call(function: Callable[..., Any]) -> Rule:
    return lambda call, *operands: function(*operands)
