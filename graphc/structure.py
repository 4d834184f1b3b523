"""Nested tuples, lists and dictionaries of tensors: taken apart into leaves and a structure, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphc.errors import ArgumentError
from graphc.tensor import Tensor
from graphc.tensor_base import expose, front


@dataclass(frozen=True)
class Leaf:
    """The place of a tensor."""


@dataclass(frozen=True)
class Static:
    """A value that is no tensor; two are equal when their types and values are (or when they are one object)."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static):
            return NotImplemented
        if self.value is other.value:
            return True
        if type(self.value) is not type(other.value):
            return False
        try:
            return bool(self.value == other.value)
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        try:
            return hash((type(self.value), self.value))
        except TypeError:
            return id(type(self.value))


@dataclass(frozen=True)
class Branch:
    """A tuple, list, dictionary or named tuple."""

    kind: Any
    """The class of the container."""
    keys: tuple[Any, ...]
    """Keys of a dictionary, field names of a named tuple, else empty."""
    children: tuple[Structure, ...]


Structure = Leaf | Static | Branch
LEAF = Leaf()


def flatten(tree: Any) -> tuple[list[Tensor], Structure]:
    """The tensors of ``tree`` in order, and its structure, which can be compared and hashed. Arrays become tensors."""
    leaves: list[Tensor] = []
    return leaves, _take(tree, leaves)


def _take(tree: Any, leaves: list[Tensor]) -> Structure:
    if isinstance(tree, np.ndarray):
        tree = front().constant(tree)
        expose(tree)
    if isinstance(tree, Tensor):
        leaves.append(tree)
        return LEAF
    if isinstance(tree, dict):
        return Branch(type(tree), tuple(tree), tuple(_take(v, leaves) for v in tree.values()))
    if isinstance(tree, (tuple, list)):
        return Branch(type(tree), getattr(tree, "_fields", ()), tuple(_take(v, leaves) for v in tree))
    return Static(tree)


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """The tree of that structure with these leaves."""
    rest = iter(leaves)
    tree = _put(structure, rest)
    if next(rest, _NOTHING) is not _NOTHING:
        raise ArgumentError(f"more leaves than the structure holds: {len(leaves)}")
    return tree


_NOTHING = object()


def _put(structure: Structure, leaves: Iterator[Any]) -> Any:
    if isinstance(structure, Leaf):
        return next(leaves)
    if isinstance(structure, Static):
        return structure.value
    children = [_put(child, leaves) for child in structure.children]
    if issubclass(structure.kind, dict):
        items = zip(structure.keys, children, strict=True)
        return structure.kind(items) if structure.kind is not dict else dict(items)
    return structure.kind(*children) if structure.keys else structure.kind(children)


def replace(tree: Any, function: Callable[[Tensor], Any]) -> Any:
    """``tree`` with ``function`` applied to every tensor."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])


def names(structure: Structure, prefix: str) -> list[str]:
    """A name for every leaf: ``prefix`` and the way to it, e.g. ``x.0.mask``."""
    if isinstance(structure, Leaf):
        return [prefix]
    if isinstance(structure, Static):
        return []
    keys = structure.keys or range(len(structure.children))
    found = []
    for key, child in zip(keys, structure.children, strict=True):
        found += names(child, f"{prefix}.{key}" if prefix else str(key))
    return found
