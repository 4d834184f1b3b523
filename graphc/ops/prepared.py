"""References that precompute from their attributes before an array exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any


class Prepared:
    """A reference of one operand, defined by a function from attributes to a function of the array. Frequent callers
    with the same attributes keep the latter (``bound``)."""

    __slots__ = ("of",)

    def __init__(self, of: Callable[..., Callable[[Any], Any]]):
        self.of = of

    def __call__(self, x: Any, **attrs: Any) -> Any:
        return self.of(**attrs)(x)


def bound(reference: Callable[..., Any], attrs: Mapping[str, Any]) -> Callable[..., Any]:
    """Bind a reference to its attributes; return a function of arrays."""
    if reference.__class__ is Prepared:
        return reference.of(**attrs)  # type: ignore[attr-defined]
    return partial(reference, **attrs) if attrs else reference
