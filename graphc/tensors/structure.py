"""Nested tuples, lists and dictionaries of tensors: flatten to leaves and a structure, and rebuild from these."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.foreign import is_foreign_tensor
from graphc.base.records import dataclass
from graphc.base.sizes.symbolic import KINDS, is_symbolic
from graphc.base.sizes.symbolic import value as value_of
from graphc.base.values import is_immutable, key_of, unknown_part
from graphc.tensors.creation import from_dlpack
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import expose, front


@dataclass(frozen=True)
class Leaf:
    """A tensor in a structure."""


@dataclass(frozen=True)
class NumberLeaf(Leaf):
    """An integer in a structure, which a trace treats as a size."""


class NumberTensor(Tensor):
    """An integer argument of a call, which a trace replaces by a size of named dimensions."""

    number: int

    @classmethod
    def of(cls, number: Any) -> NumberTensor:
        """Create the tensor of an int; raise ArgumentError outside of the i64 range."""
        integer = operator.index(number)
        if not -(1 << 63) <= integer < 1 << 63:
            raise ArgumentError(f"{integer} cannot be the size of a dimension")
        tensor = cls._wrap(np.array(integer, np.int64))
        tensor.number = integer
        return tensor


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer of Python or NumPy, other than a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def shape_of(leaf: Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor argument; for a number tensor, its number alone."""
    return (leaf.number,) if type(leaf) is NumberTensor else leaf._data.shape


def given_for(leaf: Tensor) -> Any:
    """Return the value a program receives for a tensor argument: its array, or the number of a number tensor."""
    return leaf.number if type(leaf) is NumberTensor else leaf._data


class Static:
    """A value other than a tensor; two are equal if their keys are (see ``values.key_of``)."""

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
    """A number in a structure that each call passes."""

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
    """Classes of the keys, unless all are strings: 1 equals True."""
    factory: Any = None
    """The ``default_factory`` of a ``defaultdict``."""

    def with_children(self, children: tuple[Structure, ...]) -> Branch:
        """Return the same container of other children."""
        return Branch(self.kind, self.keys, children, self.types, self.factory)


Structure = Leaf | Static | Branch
LEAF, NUMBER_LEAF = Leaf(), NumberLeaf()


def flatten(tree: Any) -> tuple[list[Tensor], Structure]:
    """Flatten ``tree`` to its tensors in order and its structure, which is comparable and hashable. Arrays and tensors
    of other libraries become tensors that share their memory."""
    leaves: list[Tensor] = []
    return leaves, _flatten_into(tree, leaves)


def _flatten_into(tree: Any, leaves: list[Tensor]) -> Structure:
    if isinstance(tree, np.ndarray):
        tree = front().constant(tree)
        expose(tree)
    if isinstance(tree, Tensor):
        leaves.append(tree)
        return NUMBER_LEAF if type(tree) is NumberTensor else LEAF
    if isinstance(tree, dict):
        types = tuple(map(type, tree))
        plain = types.count(str) == len(types)
        children = tuple(_flatten_into(v, leaves) for v in tree.values())
        factory = tree.default_factory if isinstance(tree, defaultdict) else None
        return Branch(type(tree), tuple(tree), children, () if plain else types, factory)
    if isinstance(tree, (tuple, list)):
        return Branch(type(tree), getattr(tree, "_fields", ()), tuple(_flatten_into(v, leaves) for v in tree))
    if is_record(tree):
        record_fields = fields_of(tree)
        return Branch(type(tree), tuple(record_fields), tuple(_flatten_into(v, leaves) for v in record_fields.values()))
    if is_foreign_tensor(tree):
        leaves.append(from_dlpack(tree))
        return LEAF
    return Static(tree)


def is_record(tree: Any) -> bool:
    """Return whether a value is an instance of a user's dataclass."""
    kind = type(tree)
    return hasattr(kind, "__dataclass_fields__") and not kind.__module__.startswith("graphc.")


def fields_of(record: Any) -> dict[str, Any]:
    """Return the attributes of a dataclass instance by name: first those of its ``__dict__``, then other fields."""
    values = dict(getattr(record, "__dict__", {}))
    for field in fields(record):
        if field.name not in values and hasattr(record, field.name):
            values[field.name] = getattr(record, field.name)
    return values


def check_static(structure: Structure | int) -> None:
    """Raise ArgumentError for an argument of a compiled function that later calls could not compare: it has neither
    value nor name."""
    pending = [structure]
    while pending:
        node = pending.pop()
        if isinstance(node, Branch):
            pending.extend(node.children)
        elif isinstance(node, Static) and (unknown := unknown_part(node.key)) is not None:
            raise ArgumentError(
                f"an argument of a compiled function is or holds a {type(unknown).__name__}, whose changes a later "
                f"call could not detect",
                remedy="pass tensors, numbers, strings, or tuples, dictionaries and dataclasses of them; keep other "
                "objects in attributes or global variables, whose use is watched",
            )


def numbers(structure: Structure, path: str = "") -> list[tuple[str, Static]]:
    """Return the numbers other than bools, in order: the path of each, such as ``0.1`` or ``1.scale``, and its node."""
    if isinstance(structure, Static):
        return [(path, structure)] if type(structure.value) in KINDS else []
    if isinstance(structure, Leaf):
        return []
    keys = structure.keys or range(len(structure.children))
    pairs = zip(keys, structure.children, strict=True)
    return [n for k, child in pairs for n in numbers(child, f"{path}.{k}" if path else str(k))]


def holds_objects(structure: Structure) -> bool:
    """Return whether anything in the structure is an object other than tensors, numbers and strings, so that it may
    hold others."""
    if isinstance(structure, Static):
        return not is_immutable(structure.value)
    return isinstance(structure, Branch) and any(map(holds_objects, structure.children))


def with_numbers(structure: Structure, replacements: Iterator[Static]) -> Structure:
    """Replace the nodes of ``numbers`` in a structure, in order."""
    if isinstance(structure, Static):
        return next(replacements) if type(structure.value) in KINDS else structure
    if isinstance(structure, Leaf):
        return structure
    children = tuple([with_numbers(child, replacements) for child in structure.children])
    return structure.with_children(children)


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """Rebuild a tree of this structure with the given leaves."""
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
        if issubclass(structure.kind, defaultdict):
            return structure.kind(structure.factory, items)
        return structure.kind(items) if structure.kind is not dict else dict(items)
    return structure.kind(*children) if structure.keys else structure.kind(children)


def replace(tree: Any, function: Callable[[Tensor], Any]) -> Any:
    """Apply ``function`` to every tensor of ``tree``."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])


def names(structure: Structure, prefix: str) -> list[str]:
    """Return a name for every leaf: ``prefix`` and the path of the leaf, e.g. ``x.0.mask``."""
    if isinstance(structure, Leaf):
        return [prefix]
    if isinstance(structure, Static):
        return []
    keys = structure.keys or range(len(structure.children))
    leaf_names = []
    for key, child in zip(keys, structure.children, strict=True):
        leaf_names += names(child, f"{prefix}.{key}" if prefix else str(key))
    return leaf_names
