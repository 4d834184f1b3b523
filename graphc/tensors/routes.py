"""Routes: how functions that only rearrange dimensions lead from tensors of one layout to views, found out once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from graphc.ops.dispatch import active, default
from graphc.ops.prepared import bound
from graphc.tensors.repeated import PLAIN
from graphc.tensors.tensor_base import Steps

_MOST = 10_000
"""Calls that are remembered; beyond, all are forgotten."""
_KNOWN: dict[Any, Any] = {}
"""By function, layout and arguments the route, a tuple of them, or None where no route leads to the result."""
_MISSING = object()
_ATOMS = frozenset((int, str, type(None)))
_F = TypeVar("_F", bound=Callable[..., Any])
Make = Callable[[np.ndarray], np.ndarray]


class Route:
    """The operations that lead from a tensor to its view, and what they do to an array of the layout that is known."""

    __slots__ = ("detaches", "parts", "steps", "whole")

    def __init__(self, steps: Steps, make: Make | None = None):
        """``make`` gives at once the array that all steps lead to."""
        self.steps = steps
        self.parts = tuple([(bound(op.reference, attrs), ((op, attrs),)) for op, attrs in steps if op.reference])
        """For each step what makes its array of that before, which shares its memory, and the step itself."""
        self.whole = ((make or _in_a_row([made for made, _ in self.parts]), steps),)
        """The same for all steps together."""
        self.detaches = any([op.detaches for op, _ in steps])
        """Whether no gradient flows through the view."""


def _in_a_row(parts: Sequence[Make]) -> Make:
    if len(parts) == 1:
        return parts[0]

    def make(array: np.ndarray) -> np.ndarray:
        for part in parts:
            array = part(array)
        return array

    return make


def _known_by(values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What arguments are known by: whole numbers, None, names, and tuples or lists of such; None for others. (1 is
    equal to True and to 1.0, for which errors are raised.)"""
    for value in values:
        if type(value) not in _ATOMS:
            break
    else:
        return values
    found: list[Any] = []
    for value in values:
        if type(value) in _ATOMS:
            found.append(value)
            continue
        inner = _known_by(tuple(value)) if isinstance(value, (tuple, list)) else None
        if inner is None:
            return None
        found.append((type(value), *inner))
    return tuple(found)


def route_to(result: Any, x: Any, make: Make | None = None) -> Route | None:
    """The route from a tensor to its view; None where the result is none, or is ``x`` itself. ``make``, one way to the
    array of the view, is taken where its strides are those that the steps lead to (numpy's None has a stride of 0)."""
    if result.__class__ not in PLAIN or result is x or result._view is None or result.dtype is not x.dtype:
        return None
    view = x._view
    if result._view.owner is not (x if view is None else view.base):
        return None
    steps = result._view.steps[0 if view is None else len(view.steps) :]
    if make is not None and make(x._data).strides != result._data.strides:
        make = None
    return Route(steps, make) if steps else None


def remember(key: Any, found: Any) -> None:
    """Notes what a call leads to; nothing with GRAPHC_EAGER=reference."""
    if default().mode != "auto":
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
        if x.__class__ not in PLAIN or active() is not None or (data := x._data).__class__ is not np.ndarray:
            return function(x, *args, **kwargs)
        given = _known_by((*args, *kwargs.items()) if kwargs else args)
        if given is None:
            return function(x, *args, **kwargs)
        key = (function, data.shape, data.strides, len(args), given)
        found = _KNOWN.get(key, _MISSING)
        if found.__class__ is Route:
            return default().view(x, found)
        if found is None:
            return function(x, *args, **kwargs)
        if found is _MISSING:
            result = function(x, *args, **kwargs)
            remember(key, _routes_to(result, x))
            return result
        view = default().view
        return tuple([view(x, route) for route in found])

    return called  # type: ignore[return-value]


def _routes_to(result: Any, x: Any) -> Any:
    if result.__class__ is not tuple:
        return route_to(result, x)
    found = tuple([route_to(part, x) for part in result])
    return None if not found or None in found else found
