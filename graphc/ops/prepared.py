"""References that do what follows from attributes alone before there is an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any


class Prepared:
    """A reference of one operand by way of a function of its attributes, which gives a function of the array. Who calls
    it often with the same attributes keeps that one (``bound``)."""

    __slots__ = ("of",)

    def __init__(self, of: Callable[..., Callable[[Any], Any]]):
        self.of = of

    def __call__(self, x: Any, **attrs: Any) -> Any:
        return self.of(**attrs)(x)


def bound(reference: Callable[..., Any], attrs: Mapping[str, Any]) -> Callable[..., Any]:
    """A reference with its attributes: a function of arrays."""
    if reference.__class__ is Prepared:
        return reference.of(**attrs)  # type: ignore[attr-defined]
    return partial(reference, **attrs) if attrs else reference
