"""Nested checkpoints as flat tables: tensors by name, and a JSON text of the nesting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from graphc.base.errors import ArgumentError, ArtifactError
from graphc.tensors.tensor import Tensor

TREE = "graphc.tree"
"""Name of the nesting in a file."""
MAX_DEPTH = 64
_PLAIN = (str, int, float, bool, type(None))
KEYS = {"str": str, "int": int}
"""Classes of keys, by their names in outlines."""


def split(tree: Any) -> tuple[dict[str, Any], str]:
    """Return tensors (or arrays) by name, and the text from which ``join`` restores the tree.

    The text is empty for a dictionary of names and tensors. Dictionaries (with strings or ints as keys), lists, tuples,
    numbers, strings, bools and None may be nested. Raises ArgumentError with the path of any other value.
    """
    if isinstance(tree, Mapping) and all(isinstance(k, str) and _is_tensor(v) for k, v in tree.items()):
        return dict(tree), ""
    tensors, nesting = outline(tree)
    return tensors, json.dumps(nesting)


def outline(tree: Any) -> tuple[dict[str, Any], Any]:
    """Return tensors (or arrays) by name, and the nesting around them as JSON values; see ``split``."""
    tensors: dict[str, Any] = {}
    return tensors, _split(tree, (), tensors)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or (hasattr(value, "dtype") and hasattr(value, "__array__"))


def _split(node: Any, path: tuple[str, ...], tensors: dict[str, Any]) -> Any:
    location = "/".join(path)
    if len(path) > MAX_DEPTH:
        raise ArgumentError(f"the tree is nested more than {MAX_DEPTH} deep")
    if _is_tensor(node):
        name = location
        while name in tensors:
            name += "_"
        tensors[name] = node
        return {"tensor": name}
    if isinstance(node, Mapping):
        entries = []
        for key, value in node.items():
            if type(key) not in KEYS.values():
                raise ArgumentError(f"{location or 'the tree'} has a key of class {type(key).__name__}, not str or int")
            entries.append([type(key).__name__, str(key), _split(value, (*path, str(key)), tensors)])
        return {"dict": entries}
    if isinstance(node, list | tuple):
        children = [_split(child, (*path, str(i)), tensors) for i, child in enumerate(node)]
        return {"tuple" if isinstance(node, tuple) else "list": children}
    if type(node) in _PLAIN:
        return {"value": node}
    raise ArgumentError(
        f"{location or 'the tree'} is a {type(node).__name__}, which cannot be stored",
        remedy="store tensors, dictionaries, lists, tuples, numbers, strings, bools and None only",
    )


def join(tensors: Mapping[str, Any], text: str) -> Any:
    """Restore the tree of ``split``; raises ArtifactError if the text does not match the tensors."""
    if not text:
        return dict(tensors)
    try:
        nesting = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(error) from None
    return rebuilt(nesting, tensors)


def rebuilt(nesting: Any, tensors: Mapping[str, Any]) -> Any:
    """Restore the tree of an outline; raises ArtifactError if it does not match the tensors."""
    try:
        return _join(nesting, tensors, 0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> ArtifactError:
    return ArtifactError(f"the description of the tree is damaged: {type(error).__name__}: {error}")


def _join(node: Any, tensors: Mapping[str, Any], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    ((kind, content),) = node.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "value" and type(content) in _PLAIN:
        return content
    if kind == "dict":
        return {KEYS[cls](key): _join(child, tensors, depth + 1) for cls, key, child in content}
    children = [_join(child, tensors, depth + 1) for child in content]
    return {"list": children, "tuple": tuple(children)}[kind]
