"""Keys of Python values: values with equal keys are interchangeable for a traced program."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from graphc.base.sizes.size import Size, SizeNumber

_PLAIN = frozenset({bool, int, str, bytes, type(None), type(...), type(NotImplemented), range})
_SEQUENCES = frozenset({tuple, list, deque})
_SETS = frozenset({set, frozenset})
_DICTIONARIES = frozenset({dict, OrderedDict, defaultdict, Counter})
_SIZES = frozenset({Size, SizeNumber})
_IMMUTABLE = _PLAIN | _SIZES | {float, complex}
CONTAINERS = _SEQUENCES | _SETS | _DICTIONARIES
_NAMED = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType, Enum, np.dtype)
"""Classes of objects that are compared by identity."""
LARGEST = 100_000
"""Number of items (of an array: bytes) up to which contents are compared; larger containers by identity and length."""
DEEPEST = 16
"""Nesting depth of containers down to which contents are compared."""


class Same:
    """Key of a value compared by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def key_of(value: Any, depth: int = 0) -> Any:
    """Return the key of a value.

    Numbers give type and bits, so that 1, 1.0 and True differ, -0.0 and 0.0 differ, and NaN equals NaN. Containers give
    the keys of their items, objects that hash by value themselves, all others their identity.
    """
    kind = type(value)
    if kind in _PLAIN:
        return (kind, value)
    if kind is float:
        return (kind, value.hex())
    if kind is Size:
        return (kind, value.terms)  # terms include the ranges of dimensions, which the text lacks
    if kind is SizeNumber:
        return (kind, value.function, tuple([key_of(x, depth) for x in value.operands]))
    if kind is complex:
        return (kind, value.real.hex(), value.imag.hex())
    if kind in CONTAINERS or _is_named_tuple(kind):
        return _container_key(kind, value, depth + 1)
    return _object_key(kind, value)


def _container_key(kind: type[Any], value: Any, depth: int) -> Any:
    if len(value) > LARGEST or depth > DEEPEST:
        return (kind, len(value), Same(value))
    if kind in _SETS:
        return (kind, frozenset([key_of(v, depth) for v in value]))
    if kind in _DICTIONARIES:
        return (kind, tuple([(key_of(k, depth), key_of(v, depth)) for k, v in value.items()]))
    return (kind, tuple([key_of(v, depth) for v in value]))


def _object_key(kind: type[Any], value: Any) -> Any:
    if kind is slice:
        return (kind, *map(key_of, (value.start, value.stop, value.step)))
    if kind is partial:
        return (kind, *map(key_of, (value.func, value.args, value.keywords)))
    if kind is MethodType:
        return (kind, Same(value.__func__), Same(value.__self__))
    if isinstance(value, np.generic):
        return (kind, value.tobytes())
    if kind is bytearray:
        return (kind, bytes(value))
    if kind is np.ndarray:
        return (kind, value.dtype.str, value.shape, value.tobytes() if value.nbytes <= LARGEST else Same(value))
    return (kind, value) if _is_known_by_value(kind, value) else Same(value)


def _is_named_tuple(kind: type[Any]) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _is_known_by_value(kind: type[Any], value: Any) -> bool:
    """Return whether a value hashes by content rather than by identity, and therefore should not change."""
    if isinstance(value, _NAMED) or kind.__hash__ in (None, object.__hash__) or kind.__eq__ is object.__eq__:
        return False
    try:
        # NOTE: some classes compare element by element and hash by identity.
        return (value == value) is True and hash(value) != id(value) >> 4 and hash(value) != id(value)
    # NOTE: methods of users' classes may raise anything; their object is then compared by identity.
    except Exception:
        return False


def is_immutable(value: Any) -> bool:
    """Return whether a value is immutable and refers to no other objects."""
    kind = type(value)
    return kind in _IMMUTABLE or isinstance(value, (np.generic, Enum, np.dtype))


def is_named(value: Any) -> bool:
    """Return whether a value is a function, class, module or the like, or an object of graphc: those are compared by
    identity and checked where they are used."""
    return isinstance(value, _NAMED) or any(k.__module__.startswith("graphc.") for k in type(value).__mro__)


def is_open(value: Any) -> bool:
    """Return whether a number is a symbolic size, or computed from one."""
    return type(value) in _SIZES


def parts_of(value: Any) -> Iterator[Any]:
    """Yield the objects that a container, a partial application or a method refers to."""
    kind = type(value)
    if kind in _DICTIONARIES:
        yield from value.values()
    elif kind in CONTAINERS or _is_named_tuple(kind):
        yield from value
    elif kind is partial:
        yield from (value.func, value.args, value.keywords)
    elif kind is MethodType:
        yield from (value.__func__, value.__self__)


def unknown_part(key: Any) -> Any:
    """Return an object in a key that is unexpectedly compared by identity, being no function, class or the like; else
    None."""
    pending = [key]
    while pending:
        item = pending.pop()
        if isinstance(item, Same):
            if not is_named(item.value):
                return item.value
        elif isinstance(item, (tuple, frozenset)):
            pending.extend(item)
    return None
