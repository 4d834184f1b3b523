"""Regions of reductions and scatters that are one of a few known functions."""

from __future__ import annotations

from collections.abc import Mapping

from graphc.interop.stablehlo.graph import Block, Operation

_KINDS = frozenset({"add", "multiply", "maximum", "minimum", "and", "or"})


def kinds_of(block: Block) -> list[str] | None:
    """Return the function of each pair of arguments that a region applies: the name of a binary operation, ``first`` or
    ``second`` for an argument itself. None for other regions."""
    count = len(block.arguments) // 2
    makers: Mapping[str, Operation] = {name: op for op in block.operations for name in op.results}
    kinds: list[str] = []
    for i, name in enumerate(block.returned):
        pair = block.arguments[i::count][:2] if i < count else []
        operation = makers.get(name)
        if name in pair:
            kinds.append("second" if name == pair[1] else "first")
        elif operation is not None and {*operation.operands} == {*pair} and _short(operation) in _KINDS:
            kinds.append(_short(operation))
        else:
            return None
    return kinds if len(kinds) == count else None


def _short(operation: Operation) -> str:
    return operation.name.removeprefix("stablehlo.")
