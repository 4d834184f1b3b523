"""Nested checkpoints as flat tables: tensors by name, and a text that says how they are nested."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.tensors.tensor import Tensor

TREE = "graphc.tree"
"""Name under which a file says how a checkpoint is nested."""
MAX_DEPTH = 64
_PLAIN = (str, int, float, bool, type(None))
KEYS = {"str": str, "int": int}
"""The classes of keys, by the names that outlines have for them."""


def split(tree: Any) -> tuple[dict[str, Any], str]:
    """Tensors (or arrays) by name, and the text from which ``join`` makes the tree again.

    The text is empty for a dictionary of names and tensors. Dictionaries (with keys that are texts or ints), lists,
    tuples, numbers, texts, bools and None may be nested. Raises ArgumentError for anything else, naming its place.
    """
    if isinstance(tree, Mapping) and all(isinstance(k, str) and _is_tensor(v) for k, v in tree.items()):
        return dict(tree), ""
    tensors, part = outline(tree)
    return tensors, json.dumps(part)


def outline(tree: Any) -> tuple[dict[str, Any], Any]:
    """Tensors (or arrays) by name, and what is nested around them, as JSON has it; see ``split``."""
    tensors: dict[str, Any] = {}
    return tensors, _split(tree, (), tensors)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or (hasattr(value, "dtype") and hasattr(value, "__array__"))


def _split(part: Any, path: tuple[str, ...], tensors: dict[str, Any]) -> Any:
    place = "/".join(path)
    if len(path) > MAX_DEPTH:
        raise ArgumentError(f"the tree is nested more than {MAX_DEPTH} deep")
    if _is_tensor(part):
        name = place
        while name in tensors:
            name += "_"
        tensors[name] = part
        return {"tensor": name}
    if isinstance(part, Mapping):
        entries = []
        for key, value in part.items():
            if type(key) not in KEYS.values():
                raise ArgumentError(f"{place or 'the tree'} has a key of class {type(key).__name__}, no text or int")
            entries.append([type(key).__name__, str(key), _split(value, (*path, str(key)), tensors)])
        return {"dict": entries}
    if isinstance(part, list | tuple):
        children = [_split(child, (*path, str(i)), tensors) for i, child in enumerate(part)]
        return {"tuple" if isinstance(part, tuple) else "list": children}
    if type(part) in _PLAIN:
        return {"value": part}
    raise ArgumentError(
        f"{place or 'the tree'} is a {type(part).__name__}, which cannot be stored",
        remedy="tensors, dictionaries, lists, tuples, numbers, texts, bools and None",
    )


def join(tensors: Mapping[str, Any], text: str) -> Any:
    """The tree that ``split`` took apart; raises ArtifactError when the text does not fit the tensors."""
    if not text:
        return dict(tensors)
    try:
        part = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(error) from None
    return rebuilt(part, tensors)


def rebuilt(part: Any, tensors: Mapping[str, Any]) -> Any:
    """The tree of which there is an outline; raises ArtifactError when it does not fit the tensors."""
    try:
        return _join(part, tensors, 0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> ArtifactError:
    return ArtifactError(f"the description of the tree is damaged: {type(error).__name__}: {error}")


def _join(part: Any, tensors: Mapping[str, Any], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    ((kind, content),) = part.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "value" and type(content) in _PLAIN:
        return content
    if kind == "dict":
        return {KEYS[cls](key): _join(child, tensors, depth + 1) for cls, key, child in content}
    children = [_join(child, tensors, depth + 1) for child in content]
    return {"list": children, "tuple": tuple(children)}[kind]
