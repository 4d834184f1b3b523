"""Table of ATen operators: the function of graphc that computes each."""

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
"""Function that takes the arguments of the operator's schema, by position or by the schema's names."""

TABLE: dict[str, Rule] = {}
"""Rules by name with overload, as in ``aten.add.Tensor``."""
FAMILY: dict[str, str] = {}
"""Modules that register the operators, by the same names."""
_OTHERS = ("prims.", "quantized_decomposed.")
"""Namespaces beside ``aten``."""
_SPACES = (functions, free_functions, creation, functional, Tensor)


def rule(*targets: str) -> Callable[[Rule], Rule]:
    """Register the decorated function for operators of the namespace ``aten``.

    Targets are names such as ``mean``, short for ``mean.default``, or ``mean.dim``. Operators of other namespaces have
    their full name.
    """

    def enter(function: Rule) -> Rule:
        for target in targets:
            name = target if "." in target else f"{target}.default"
            name = name if name.startswith(_OTHERS) else f"aten.{name}"
            if name in TABLE:
                raise KeyError(f"{name} is already in the table")
            TABLE[name] = function
            FAMILY[name] = family
        return function

    family = _family()
    return enter


def _family() -> str:
    """Return the module that calls a registration function."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"] == __name__:
        frame = frame.f_back
    return str(frame.f_globals["__name__"])


def function_of(name: str) -> Rule:
    """Return the function of graphc with this name."""
    return next(getattr(space, name) for space in _SPACES if hasattr(space, name))


def same(names: str, overloads: str = "default") -> None:
    """Register functions of graphc that take the same arguments as the operators of their names."""
    for name in names.split():
        function = function_of(name)
        for overload in overloads.split():
            rule(f"{name}.{overload}")(function)


def find(target: str) -> Rule | None:
    """Return the function that computes an operator, or None.

    Derived operators need no rule of their own. One that writes to its first argument (``aten.add_.Tensor``) stores the
    result of the pure operator there. One that writes to another tensor (``aten.add.out``) does likewise. One that
    copies a view (``aten.permute_copy.default``) makes the view and copies it.
    """
    registered = TABLE.get(target)
    if registered is not None:
        return registered
    space, _, qualified = target.partition(".")
    name, _, overload = qualified.partition(".")
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
    result = view(*args, **kwargs)
    return result.clone() if isinstance(result, Tensor) else tuple([view_copy.clone() for view_copy in result])


def _into(pure: Rule, *args: Any, out: Any, **kwargs: Any) -> Any:
    return _stored(out, pure(*args, **kwargs))


def _stored(target: Tensor, result: Any) -> Tensor:
    if not isinstance(result, Tensor) or tuple(result.shape) != tuple(target.shape):
        raise UnsupportedError("graphc has no operators that change the shape of the tensor they write to")
    return target.copy_(result)
