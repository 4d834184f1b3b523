"""Nested tuples, lists and dictionaries: their leaves, and the same nest of other values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values of a nest in order, without None."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif value is not None:
        yield value


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return a nest with ``function`` applied to its values; tuples and lists become plain ones."""
    if isinstance(value, list):
        return [mapped(item, function) for item in value]
    if isinstance(value, tuple):
        return tuple([mapped(item, function) for item in value])
    if isinstance(value, dict):
        return {key: mapped(item, function) for key, item in value.items()}
    return function(value)
