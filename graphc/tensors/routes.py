"""Routes: how functions that only rearrange dimensions lead from tensors of one layout to views, found out once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from graphc.ir.op import OpDef
from graphc.ops import dispatch
from graphc.ops.prepared import bound
from graphc.tensors.repeated import PLAIN

_MOST = 10_000
"""Calls that are remembered; beyond, all are forgotten."""
_KNOWN: dict[Any, Any] = {}
"""By function, layout and arguments the route, a tuple of them, or None where no route leads to the result."""
_MISSING = object()
_NUMBERS = frozenset((int, type(None)))
_F = TypeVar("_F", bound=Callable[..., Any])


class Route:
    """The operations that lead from a tensor to its view, and what they do to an array of the layout that is known."""

    __slots__ = ("detaches", "make", "steps")

    def __init__(
        self, steps: tuple[tuple[OpDef, dict[str, Any]], ...], make: Callable[[np.ndarray], np.ndarray] | None = None
    ):
        self.steps = steps
        self.make = _in_a_row(steps) if make is None else make
        """An array to the array of the view, which shares its memory."""
        self.detaches = any([op.detaches for op, _ in steps])
        """Whether no gradient flows through the view."""


def _in_a_row(steps: Sequence[tuple[OpDef, dict[str, Any]]]) -> Callable[[np.ndarray], np.ndarray]:
    """What the references of ops do one after the other."""
    parts: list[Any] = [bound(op.reference, attrs) for op, attrs in steps if op.reference is not None]
    if len(parts) == 1:
        return parts[0]

    def make(array: np.ndarray) -> np.ndarray:
        for part in parts:
            array = part(array)
        return array

    return make


def is_known(values: Sequence[Any]) -> bool:
    """Whether values are whole numbers, None, names, or tuples of such: then those that are equal are the same. (1 is
    equal to True and to 1.0, which other errors are raised for.)"""
    for value in values:
        kind = type(value)
        if kind in _NUMBERS or kind is str:
            continue
        if not isinstance(value, tuple) or not is_known(value):
            return False
    return True


def route_to(result: Any, x: Any, make: Callable[[np.ndarray], np.ndarray] | None = None) -> Route | None:
    """The route from a tensor to its view; None where the result is none, or is ``x`` itself."""
    if result.__class__ not in PLAIN or result is x or result._view is None or result.dtype is not x.dtype:
        return None
    view = x._view
    if result._view.owner is not (x if view is None else view.base):
        return None
    steps = result._view.steps[0 if view is None else len(view.steps) :]
    return Route(steps, make) if steps else None


def remember(key: Any, found: Any) -> None:
    """Notes what a call leads to; nothing with GRAPHC_EAGER=reference."""
    if dispatch.default().mode != "auto":
        return
    if len(_KNOWN) >= _MOST:
        _KNOWN.clear()
    _KNOWN[key] = found


known = _KNOWN.get
"""What a call leads to as far as is known: a route, a tuple of them, else None."""


forget = _KNOWN.clear
"""Takes back all that is remembered."""


def rearranging(function: _F) -> _F:
    """A method without effects that returns a view of its tensor, or a tuple of views, which depend on the tensor's
    shape and strides and on the arguments alone. Arguments are looked at once for each layout; later calls go where the
    first one led to. Where each operation is looked at (a trace, ``gc.debug``, GRAPHC_EAGER=reference, classes of
    tensors of the user), every call is as the first one."""

    @functools.wraps(function)
    def called(x: Any, *args: Any, **kwargs: Any) -> Any:
        data = x._data
        if (
            data.__class__ is not np.ndarray
            or x.__class__ not in PLAIN
            or dispatch.active() is not None
            or not is_known(args)
        ):
            return function(x, *args, **kwargs)
        key = (function, data.shape, data.strides, args)
        if kwargs:
            named = tuple(kwargs.items())
            if not is_known(named):
                return function(x, *args, **kwargs)
            key = (*key, named)
        found = _KNOWN.get(key, _MISSING)
        if found.__class__ is Route:
            return dispatch.default().view(x, found)
        if found is None:
            return function(x, *args, **kwargs)
        if found is _MISSING:
            result = function(x, *args, **kwargs)
            remember(key, _routes_to(result, x))
            return result
        view = dispatch.default().view
        return tuple([view(x, route) for route in found])

    return called  # type: ignore[return-value]


def _routes_to(result: Any, x: Any) -> Any:
    if result.__class__ is not tuple:
        return route_to(result, x)
    found = tuple([route_to(part, x) for part in result])
    return None if not found or None in found else found
