"""Switches with which PyTorch chooses among ways to compute that are one way here: what is set is kept and told again.

They are taken where what is there satisfies them: products of f32 are computed in f32, which is what ``highest`` asks
for and more than ``medium`` does. One does something: with deterministic algorithms eager mode gives equal calls equal
bits from the first one on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from graphc.base.errors import ArgumentError, AttributeValueError, MemberError

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_warn_always",
    "use_deterministic_algorithms",
]
_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")
_set: dict[str, Any] = {"precision": "highest", "debug": 0, "warn_always": False}


class Switches(ModuleType):
    """A module of switches: names and values at first. Another value of the same kind may be assigned, other names may
    not; raises MemberError, ArgumentError. Functions and parts of it are given once, with the module."""

    def __init__(self, name: str, doc: str, switches: dict[str, Any], **parts: Any):
        super().__init__(name, doc)
        vars(self).update(parts)
        vars(self)["_first"] = switches
        vars(self).update(switches)

    def __setattr__(self, name: str, value: Any) -> None:
        first = vars(self).get("_first", {})
        if name.startswith("__") or isinstance(value, ModuleType):  # what imports say of a module
            super().__setattr__(name, value)
        elif name not in first:
            remedy = f"one of {', '.join(sorted(first))}" if first else "nothing: it has no switch"
            raise MemberError(f"{self.__name__} has no switch {name!r}", remedy=remedy)
        elif type(value) is not type(first[name]):
            kind = type(first[name]).__name__
            raise ArgumentError(f"{self.__name__}.{name} is of type {kind}, got {value!r}", remedy=repr(first[name]))
        else:
            vars(self)[name] = value

    @contextmanager
    def flags(self, **values: Any) -> Iterator[None]:
        """Inside, switches have other values."""
        before = {name: getattr(self, name) for name in values}
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield
        finally:
            vars(self).update(before)


def set_float32_matmul_precision(precision: str) -> None:
    """How exact products of f32 must be at least: ``highest``, ``high`` or ``medium``. They are computed in f32 in any
    case; what computes with less is asked for by ``compile(precision=...)``. Raises AttributeValueError."""
    if precision not in _PRECISIONS:
        raise AttributeValueError(f"there is no precision {precision!r} of products", remedy=", ".join(_PRECISIONS))
    _set["precision"] = precision


def get_float32_matmul_precision() -> str:
    """What ``set_float32_matmul_precision`` was called with last; ``highest`` at first."""
    return _set["precision"]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Asks for equal bits in equal calls, also in a process that has just begun to train where another one has ended.

    Compiled code gives them in any case. Eager functions and optimizers, which otherwise become native code after some
    calls, whose last bits are others than those of numpy, are native code from the first call on. Each new combination
    of shapes is compiled at once then, however many there are, unless it is found on disk."""
    set_deterministic_debug_mode((1 if warn_only else 2) if mode else 0)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether ``use_deterministic_algorithms`` was called with True last."""
    return _set["debug"] > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it was called with ``warn_only``."""
    return _set["debug"] == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """``use_deterministic_algorithms`` by number or name: 0 ``default``, 1 ``warn``, 2 ``error``. Raises
    AttributeValueError."""
    if debug_mode in _DEBUG_MODES:
        debug_mode = _DEBUG_MODES.index(str(debug_mode))
    if debug_mode not in (0, 1, 2):
        raise AttributeValueError(f"there is no debug mode {debug_mode!r}", remedy=", ".join(_DEBUG_MODES))
    _set["debug"] = debug_mode


def get_deterministic_debug_mode() -> int:
    """The number of what was set."""
    return _set["debug"]


def set_warn_always(b: bool) -> None:
    """Whether PyTorch gives warnings as often as there is reason to; those of graphc follow Python's filters."""
    _set["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """What ``set_warn_always`` was called with last."""
    return _set["warn_always"]


def set_flush_denormal(mode: bool) -> bool:
    """Whether numbers below the smallest normal one can be made zeros: False, they are computed as they are."""
    return False
