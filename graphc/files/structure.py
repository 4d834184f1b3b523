"""How a model file says that the outputs of a call are nested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.files.manifest import require

MAX_DEPTH = 64
"""Deepest nesting of the output structure."""
Structure = Any
"""How outputs are nested: an output's number, null, ``{"tuple": [...]}``, ``{"list": [...]}``,
``{"dict": [[key, ...], ...]}``."""


def check_structure(structure: Structure, outputs: int) -> None:
    """Raises ArtifactError unless ``structure`` is well formed and its leaves number existing outputs."""
    stack: list[tuple[Any, int]] = [(structure, 0)]
    while stack:
        item, depth = stack.pop()
        require(depth <= MAX_DEPTH, f"the output structure is nested deeper than {MAX_DEPTH}")
        if item is None:
            continue
        if isinstance(item, int) and not isinstance(item, bool):
            require(0 <= item < outputs, f"the output structure names output {item} of {outputs}")
            continue
        stack.extend((child, depth + 1) for _, child in _children(item))


def _children(item: Any) -> list[tuple[Any, Any]]:
    """(key, child) of each element of one container of a structure."""
    require(isinstance(item, dict) and len(item) == 1, f"the output structure has the unknown part {item!r}")
    kind, parts = next(iter(item.items()))
    require(kind in ("tuple", "list", "dict") and isinstance(parts, list | tuple), f"unknown structure {kind!r}")
    if kind != "dict":
        return list(enumerate(parts))
    pairs = [tuple(p) for p in parts if isinstance(p, list | tuple)]
    good = len(pairs) == len(parts) and all(len(p) == 2 and isinstance(p[0], str) for p in pairs)
    require(good, "a dict of the output structure is not made of [key, part] pairs")
    return pairs


def nest(structure: Structure, outputs: Sequence[Any]) -> Any:
    """The outputs of a call nested as the structure says."""
    if structure is None:
        return None
    if isinstance(structure, int):
        return outputs[structure]
    kind, parts = next(iter(structure.items()))
    if kind == "dict":
        return {key: nest(part, outputs) for key, part in parts}
    made = [nest(part, outputs) for part in parts]
    return tuple(made) if kind == "tuple" else made
