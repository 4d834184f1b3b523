"""Nested arguments of a loaded model, matched to its inputs by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError


def opened(names: Sequence[str], args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Flatten nested arguments of a call.

    Entries of an argument ``state`` are inputs like ``state.hidden`` or ``state.0``. ``names`` are the names of all
    inputs, in order. None has no input. Return arguments by position and by name. Raise ArgumentError where an
    argument's nesting does not fit the inputs, or an input is given twice.
    """
    if not any(isinstance(value, (Mapping, list, tuple)) for value in (*args, *named.values())):
        return list(args), dict(named)
    inputs: dict[str, Any] = {}
    rest = list(names)
    for value in args:
        leaves = _parts(value)
        own_names, rest = rest[: len(leaves)], rest[len(leaves) :]
        inputs.update(_named(leaves, own_names))
    for name, value in named.items():
        leaves = {f"{name}.{path}" if path else name: leaf for path, leaf in _parts(value).items()}
        if twice := inputs.keys() & leaves.keys():
            raise ArgumentError(f"input {min(twice)!r} is given twice")
        inputs.update(leaves)
    return [], inputs


def _parts(value: Any, path: str = "") -> dict[str, Any]:
    """Return the leaves of an argument by their path."""
    if isinstance(value, (Mapping, list, tuple)):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        leaves: dict[str, Any] = {}
        for key, child in pairs:
            leaves |= _parts(child, f"{path}.{key}" if path else str(key))
        return leaves
    return {} if value is None and path else {path: value}


def _named(leaves: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the leaves of an argument by the names of inputs, which may be in another order."""
    if not leaves:
        return {}
    if list(leaves) == [""] and names:
        return {names[0]: leaves[""]}
    for path in leaves:
        prefix = names[0].removesuffix(f".{path}") if names else ""
        renamed = {f"{prefix}.{p}": leaf for p, leaf in leaves.items()}
        if sorted(renamed) == sorted(names):
            return renamed
    raise ArgumentError(
        f"an argument holds {', '.join(leaves)}, the inputs are {', '.join(names) or 'no more'}",
        remedy="nest the arguments as in the export, or pass one array for each input by name",
    )
