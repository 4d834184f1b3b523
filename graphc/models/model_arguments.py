"""Arguments of a loaded model that are nested as those of its export were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError


def opened(names: Sequence[str], args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by position and by name with tuples, lists and dictionaries taken apart: the parts of ``state`` are
    the inputs ``state.hidden`` or ``state.0``. ``names`` are those of all inputs, in order. None has no input.

    Raises ArgumentError where an argument is not nested as the inputs are named, or is given twice."""
    if not any(isinstance(value, (Mapping, list, tuple)) for value in (*args, *named.values())):
        return list(args), dict(named)
    found: dict[str, Any] = {}
    rest = list(names)
    for value in args:
        parts = _parts(value)
        taken, rest = rest[: len(parts)], rest[len(parts) :]
        found.update(_named(parts, taken))
    for name, value in named.items():
        parts = {f"{name}.{path}" if path else name: part for path, part in _parts(value).items()}
        if twice := found.keys() & parts.keys():
            raise ArgumentError(f"input {min(twice)!r} is given twice")
        found.update(parts)
    return [], found


def _parts(value: Any, path: str = "") -> dict[str, Any]:
    """What an argument holds, by the way to it."""
    if isinstance(value, (Mapping, list, tuple)):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        found: dict[str, Any] = {}
        for key, part in pairs:
            found |= _parts(part, f"{path}.{key}" if path else str(key))
        return found
    return {} if value is None and path else {path: value}


def _named(parts: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The parts of an argument by the names of inputs, which may have another order."""
    if not parts:
        return {}
    if list(parts) == [""] and names:
        return {names[0]: parts[""]}
    for path in parts:
        prefix = names[0].removesuffix(f".{path}") if names else ""
        found = {f"{prefix}.{p}": part for p, part in parts.items()}
        if sorted(found) == sorted(names):
            return found
    raise ArgumentError(
        f"an argument holds {', '.join(parts)}, the inputs are {', '.join(names) or 'no more'}",
        remedy="arguments nested as those of the export, or one array for each input by its name",
    )
