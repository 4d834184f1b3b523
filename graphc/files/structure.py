"""Nesting of a call's outputs, as model files store it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.files.manifest import require

MAX_DEPTH = 64
"""Deepest nesting of outputs."""
Structure = Any
"""Nesting of outputs: an output's index, null, ``{"tuple": [...]}``, ``{"list": [...]}``, ``{"dict": [[key, ...],
...]}``."""


def check_structure(structure: Structure, outputs: int) -> None:
    """Raise ArtifactError unless ``structure`` is well formed and its leaves are indices of outputs."""
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
    """Return (key, child) of each element of a container of a structure."""
    require(isinstance(item, dict) and len(item) == 1, f"the output structure has the unknown part {item!r}")
    kind, children = next(iter(item.items()))
    require(kind in ("tuple", "list", "dict") and isinstance(children, list | tuple), f"unknown structure {kind!r}")
    if kind != "dict":
        return list(enumerate(children))
    pairs = [tuple(p) for p in children if isinstance(p, list | tuple)]
    good = len(pairs) == len(children) and all(len(p) == 2 and isinstance(p[0], str) for p in pairs)
    require(good, "a dict of the output structure is not made of [key, part] pairs")
    return pairs


def nest(structure: Structure, outputs: Sequence[Any]) -> Any:
    """Return the outputs of a call nested as the structure says."""
    if structure is None:
        return None
    if isinstance(structure, int):
        return outputs[structure]
    kind, children = next(iter(structure.items()))
    if kind == "dict":
        return {key: nest(child, outputs) for key, child in children}
    items = [nest(child, outputs) for child in children]
    return tuple(items) if kind == "tuple" else items
