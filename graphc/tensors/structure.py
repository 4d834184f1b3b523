"""Nested tuples, lists and dictionaries of tensors: taken apart into leaves and a structure, and put together again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.foreign import is_foreign_tensor
from graphc.base.sizes.symbolic import KINDS, is_symbolic
from graphc.base.sizes.symbolic import value as value_of
from graphc.base.values import is_immutable, key_of, unknown_part
from graphc.tensors.creation import from_dlpack
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import expose, front


@dataclass(frozen=True)
class Leaf:
    """The place of a tensor."""


@dataclass(frozen=True)
class NumberLeaf(Leaf):
    """The place of a whole number that a trace takes for a size."""


class NumberTensor(Tensor):
    """A whole number among the arguments of a call, in the place of which a trace has a size of named dimensions."""

    number: int

    @classmethod
    def of(cls, number: Any) -> NumberTensor:
        """The tensor of a number; raises ArgumentError for one that is no i64."""
        whole = operator.index(number)
        if not -(1 << 63) <= whole < 1 << 63:
            raise ArgumentError(f"{whole} is the size of no dimension")
        tensor = cls._wrap(np.array(whole, np.int64))
        tensor.number = whole
        return tensor


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, of Python or NumPy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def shape_of(leaf: Tensor) -> tuple[int, ...]:
    """The shape of a tensor among the arguments of a call; of a number that gives a size, that alone."""
    return (leaf.number,) if type(leaf) is NumberTensor else leaf._data.shape


def given_for(leaf: Tensor) -> Any:
    """What a program takes for a tensor among the arguments of a call: its array, or the number that gives a size."""
    return leaf.number if type(leaf) is NumberTensor else leaf._data


class Static:
    """A value that is no tensor; two are equal when they are known by the same (see ``values.key_of``)."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any):
        self.value = value_of(value) if is_symbolic(value) else value
        self.key = key_of(self.value)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Static) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Static({self.value!r})"


class Open(Static):
    """The place of a number that each call gives."""

    __slots__ = ()

    def __init__(self, number: Any):
        self.value = number
        self.key = (Open, type(number))


@dataclass(frozen=True)
class Branch:
    """A tuple, list, dictionary, named tuple or dataclass."""

    kind: Any
    """The class of the container."""
    keys: tuple[Any, ...]
    """Keys of a dictionary, field names of a named tuple or dataclass, else empty."""
    children: tuple[Structure, ...]
    types: tuple[Any, ...] = ()
    """Classes of the keys where not all are texts: 1 equals True."""


Structure = Leaf | Static | Branch
LEAF, NUMBER_LEAF = Leaf(), NumberLeaf()


def flatten(tree: Any) -> tuple[list[Tensor], Structure]:
    """The tensors of ``tree`` in order, and its structure, which can be compared and hashed. Arrays, and tensors of
    other libraries, become tensors that share their memory."""
    leaves: list[Tensor] = []
    return leaves, _take(tree, leaves)


def _take(tree: Any, leaves: list[Tensor]) -> Structure:
    if isinstance(tree, np.ndarray):
        tree = front().constant(tree)
        expose(tree)
    if isinstance(tree, Tensor):
        leaves.append(tree)
        return NUMBER_LEAF if type(tree) is NumberTensor else LEAF
    if isinstance(tree, dict):
        types = tuple(map(type, tree))
        plain = types.count(str) == len(types)
        children = tuple(_take(v, leaves) for v in tree.values())
        return Branch(type(tree), tuple(tree), children, () if plain else types)
    if isinstance(tree, (tuple, list)):
        return Branch(type(tree), getattr(tree, "_fields", ()), tuple(_take(v, leaves) for v in tree))
    if _is_record(tree):
        found = _fields_of(tree)
        return Branch(type(tree), tuple(found), tuple(_take(v, leaves) for v in found.values()))
    if is_foreign_tensor(tree):
        leaves.append(from_dlpack(tree))
        return LEAF
    return Static(tree)


def _is_record(tree: Any) -> bool:
    """Whether a value is an object of a dataclass of the user."""
    kind = type(tree)
    return hasattr(kind, "__dataclass_fields__") and not kind.__module__.startswith("graphc.")


def _fields_of(record: Any) -> dict[str, Any]:
    found = dict(getattr(record, "__dict__", {}))
    for field in fields(record):
        if field.name not in found and hasattr(record, field.name):
            found[field.name] = getattr(record, field.name)
    return found


def check_static(structure: Structure | int) -> None:
    """Raises ArgumentError for an argument of a compiled function that has neither value nor name by which a later
    call could know it again."""
    open_ = [structure]
    while open_:
        part = open_.pop()
        if isinstance(part, Branch):
            open_.extend(part.children)
        elif isinstance(part, Static) and (found := unknown_part(part.key)) is not None:
            raise ArgumentError(
                f"an argument of a compiled function is or holds a {type(found).__name__}, of which a later call could "
                "not tell whether it has changed",
                remedy="tensors, numbers, texts, or tuples, dictionaries and dataclasses of them; objects that stay "
                "the same can be attributes or global variables, whose use is watched",
            )


def numbers(structure: Structure, path: str = "") -> list[tuple[str, Static]]:
    """Numbers other than bools, in order: the way to each, as ``0.1`` or ``1.scale``, and what is in its place."""
    if isinstance(structure, Static):
        return [(path, structure)] if type(structure.value) in KINDS else []
    if isinstance(structure, Leaf):
        return []
    keys = structure.keys or range(len(structure.children))
    pairs = zip(keys, structure.children, strict=True)
    return [n for k, child in pairs for n in numbers(child, f"{path}.{k}" if path else str(k))]


def holds_objects(structure: Structure) -> bool:
    """Whether anything in it is neither tensor nor number nor text: an object that may hold others."""
    if isinstance(structure, Static):
        return not is_immutable(structure.value)
    return isinstance(structure, Branch) and any(map(holds_objects, structure.children))


def with_numbers(structure: Structure, given: Iterator[Static]) -> Structure:
    """The structure with other ones in the places of ``numbers``."""
    if isinstance(structure, Static):
        return next(given) if type(structure.value) in KINDS else structure
    if isinstance(structure, Leaf):
        return structure
    children = tuple([with_numbers(child, given) for child in structure.children])
    return Branch(structure.kind, structure.keys, children, structure.types)


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
    if structure.kind is tuple:
        return tuple(children)
    if hasattr(structure.kind, "__dataclass_fields__"):
        record = object.__new__(structure.kind)
        for name, child in zip(structure.keys, children, strict=True):
            object.__setattr__(record, name, child)
        return record
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
