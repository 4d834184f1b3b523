"""The table of ATen operators: which function of graphc computes each, one line an operator."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.nn import functional
from graphc.tensors import creation, free_functions, functions
from graphc.tensors.tensor import Tensor

Rule = Callable[..., Any]
"""Takes the arguments of the operator's schema, by position or by the schema's names."""

TABLE: dict[str, Rule] = {}
"""By name with overload, as in ``aten.add.Tensor``."""
FAMILY: dict[str, str] = {}
"""The module that enters an operator, by the same names."""
_SPACES = (functions, free_functions, creation, functional, Tensor)


def rule(*targets: str) -> Callable[[Rule], Rule]:
    """Enters the decorated function for operators of the namespace ``aten``: ``mean``, which means ``mean.default``, or
    ``mean.dim``; or, with its name in full, of ``prims``."""

    def enter(function: Rule) -> Rule:
        for target in targets:
            name = target if "." in target else f"{target}.default"
            name = name if name.startswith("prims.") else f"aten.{name}"
            if name in TABLE:
                raise KeyError(f"{name} is in the table already")
            TABLE[name] = function
            FAMILY[name] = family
        return function

    family = _family()
    return enter


def _family() -> str:
    """The module that enters something."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"] == __name__:
        frame = frame.f_back
    return str(frame.f_globals["__name__"])


def function_of(name: str) -> Rule:
    """The function of graphc that has this name."""
    return next(getattr(space, name) for space in _SPACES if hasattr(space, name))


def same(names: str, overloads: str = "default") -> None:
    """Enters functions of graphc that are called as the operators of their names are."""
    for name in names.split():
        function = function_of(name)
        for overload in overloads.split():
            rule(f"{name}.{overload}")(function)


def find(target: str) -> Rule | None:
    """The function that computes an operator, or None where there is none. An operator that writes to its first
    argument (``aten.add_.Tensor``) computes what the one without the underscore does, and stores it there; one that
    writes to another tensor (``aten.add.out``) likewise; one that copies a view (``aten.permute_copy.default``) makes
    the view, and copies it."""
    known = TABLE.get(target)
    if known is not None:
        return known
    space, _, rest = target.partition(".")
    name, _, overload = rest.partition(".")
    if space != "aten":
        return None
    if overload.endswith("out"):
        plain = [overload.removesuffix("_out")] if overload != "out" else ["default", "Tensor"]
        pure = next((TABLE[t] for o in plain if (t := f"aten.{name}.{o}") in TABLE), None)
        return None if pure is None else functools.partial(_into, pure)
    for suffix, form in (("_copy", _copied), ("_", _in_place)):
        pure = TABLE.get(f"aten.{name.removesuffix(suffix)}.{overload}") if name.endswith(suffix) else None
        if pure is not None:
            return functools.partial(form, pure)
    return None


def _in_place(pure: Rule, self: Any, *args: Any, **kwargs: Any) -> Any:
    return _stored(self, pure(self, *args, **kwargs))


def _copied(view: Rule, *args: Any, **kwargs: Any) -> Any:
    found = view(*args, **kwargs)
    return found.clone() if isinstance(found, Tensor) else tuple([part.clone() for part in found])


def _into(pure: Rule, *args: Any, out: Any, **kwargs: Any) -> Any:
    return _stored(out, pure(*args, **kwargs))


def _stored(place: Tensor, found: Any) -> Tensor:
    if not isinstance(found, Tensor) or tuple(found.shape) != tuple(place.shape):
        raise UnsupportedError("an operator that gives the tensor that it writes to another shape")
    return place.copy_(found)
