"""Routes: cached derivations of views, for functions that only rearrange dimensions."""

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
"""Number of cached calls; beyond it, the cache is cleared."""
_KNOWN: dict[Any, Any] = {}
"""By function, layout and arguments: the route, a tuple of routes, or None if no route leads to the result."""
_MISSING = object()
_ATOMS = frozenset((int, str, type(None)))
_F = TypeVar("_F", bound=Callable[..., Any])
Make = Callable[[np.ndarray], np.ndarray]


class Route:
    """The operations from a tensor to its view, with their effect on an array of a known layout."""

    __slots__ = ("combined", "detaches", "stages", "steps")

    def __init__(self, steps: Steps, make: Make | None = None):
        """Prepare the steps; ``make`` computes the final array directly."""
        self.steps = steps
        self.stages = tuple([(bound(op.reference, attrs), ((op, attrs),)) for op, attrs in steps if op.reference])
        """For each step, the function from its input array to a view of it, and the step itself."""
        self.combined = ((make or _composed([function for function, _ in self.stages]), steps),)
        """The same for all steps together."""
        self.detaches = any([op.detaches for op, _ in steps])
        """Whether the view has no gradient."""


def _composed(stages: Sequence[Make]) -> Make:
    if len(stages) == 1:
        return stages[0]

    def make(array: np.ndarray) -> np.ndarray:
        for stage in stages:
            array = stage(array)
        return array

    return make


def _cache_key(values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return a key for arguments: ints, None, names, and tuples or lists of these; None for other arguments. (1 equals
    True and 1.0, which must raise errors.)"""
    for value in values:
        if type(value) not in _ATOMS:
            break
    else:
        return values
    entries: list[Any] = []
    for value in values:
        if type(value) in _ATOMS:
            entries.append(value)
            continue
        inner = _cache_key(tuple(value)) if isinstance(value, (tuple, list)) else None
        if inner is None:
            return None
        entries.append((type(value), *inner))
    return tuple(entries)


def route_to(result: Any, x: Any, make: Make | None = None) -> Route | None:
    """Return the route from a tensor to its view; None if the result is not a view, or is ``x`` itself. ``make``
    computes the array of the view directly; it is used if its strides match (numpy's None has a stride of 0)."""
    if result.__class__ not in PLAIN or result is x or result._view is None or result.dtype is not x.dtype:
        return None
    view = x._view
    if result._view.owner is not (x if view is None else view.base):
        return None
    steps = result._view.steps[0 if view is None else len(view.steps) :]
    if make is not None and make(x._data).strides != result._data.strides:
        make = None
    return Route(steps, make) if steps else None


def remember(key: Any, route: Any) -> None:
    """Cache the route of a call; do nothing with GRAPHC_EAGER=reference."""
    if default().mode != "auto":
        return
    if len(_KNOWN) >= _MOST:
        _KNOWN.clear()
    _KNOWN[key] = route


known = _KNOWN.get
"""Look up the route of a call: a route, a tuple of routes, or None."""


forget = _KNOWN.clear
"""Clear the cache."""


def rearranging(function: _F) -> _F:
    """Decorate a method without side effects that returns a view of its tensor, or a tuple of views.

    The views must depend only on the tensor's shape and strides and on the arguments. The first call of each layout is
    cached; later calls follow its route. If something observes each operation (a trace, ``gc.debug``,
    GRAPHC_EAGER=reference, user-defined tensor classes), nothing is cached.
    """

    @functools.wraps(function)
    def called(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.__class__ not in PLAIN or active() is not None or (data := x._data).__class__ is not np.ndarray:
            return function(x, *args, **kwargs)
        entry = _cache_key((*args, *kwargs.items()) if kwargs else args)
        if entry is None:
            return function(x, *args, **kwargs)
        key = (function, data.shape, data.strides, len(args), entry)
        cached = _KNOWN.get(key, _MISSING)
        if cached.__class__ is Route:
            return default().view(x, cached)
        if cached is None:
            return function(x, *args, **kwargs)
        if cached is _MISSING:
            result = function(x, *args, **kwargs)
            remember(key, _routes_to(result, x))
            return result
        view = default().view
        return tuple([view(x, route) for route in cached])

    return called  # type: ignore[return-value]


def _routes_to(result: Any, x: Any) -> Any:
    if result.__class__ is not tuple:
        return route_to(result, x)
    views_routes = tuple([route_to(view, x) for view in result])
    return None if not views_routes or None in views_routes else views_routes
