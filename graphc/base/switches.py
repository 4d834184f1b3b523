"""PyTorch's switches for numerical backends: each value is stored and returned, and most have no effect here.

graphc has one way to compute, which satisfies every accepted setting: products of f32 are computed in f32, as
``highest`` asks, which is more precise than ``medium``. Only deterministic algorithms have an effect: eager mode then
gives equal bits for equal calls from the first call on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from graphc.base.errors import ArgumentError, AttributeValueError, MemberError

__all__ = ["are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_float32_matmul_precision"]
__all__ += ["is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_deterministic_debug_mode"]
__all__ += ["set_float32_matmul_precision", "set_flush_denormal", "set_warn_always", "use_deterministic_algorithms"]
_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")
_set: dict[str, Any] = {"precision": "highest", "debug": 0, "warn_always": False}


class Switches(ModuleType):
    """Module of switches: a switch accepts values of its initial type; other names cannot be assigned.

    Raises MemberError and ArgumentError. Functions and submodules are passed once, at construction.
    """

    def __init__(self, name: str, doc: str, switches: dict[str, Any], **members: Any):
        super().__init__(name, doc)
        vars(self).update(members)
        vars(self)["_first"] = switches
        vars(self).update(switches)

    def __setattr__(self, name: str, value: Any) -> None:
        defaults = vars(self).get("_first", {})
        if name.startswith("__") or isinstance(value, ModuleType):  # set by the import system
            super().__setattr__(name, value)
        elif name not in defaults:
            remedy = f"set one of {', '.join(sorted(defaults))}" if defaults else "leave it out: no switch exists here"
            raise MemberError(f"{self.__name__} has no switch {name!r}", remedy=remedy)
        elif type(value) is not type(defaults[name]):
            kind = type(defaults[name]).__name__
            raise ArgumentError(
                f"{self.__name__}.{name} is of type {kind}, got {value!r}",
                remedy=f"assign for example {defaults[name]!r}",
            )
        else:
            vars(self)[name] = value

    @contextmanager
    def flags(self, **values: Any) -> Iterator[None]:
        """Set switches while the block runs."""
        before = {name: getattr(self, name) for name in values}
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield
        finally:
            vars(self).update(before)


def set_float32_matmul_precision(precision: str) -> None:
    """Set the minimum precision of f32 products: ``highest``, ``high`` or ``medium``.

    Stored only: products are computed in f32 in any case. Use ``compile(precision=...)`` for lower precision. Raises
    AttributeValueError for any other name.
    """
    if precision not in _PRECISIONS:
        raise AttributeValueError(
            f"there is no precision {precision!r} of products", remedy=f"use one of {', '.join(_PRECISIONS)}"
        )
    _set["precision"] = precision


def get_float32_matmul_precision() -> str:
    """Return the last value of ``set_float32_matmul_precision``; ``highest`` at first."""
    return _set["precision"]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Make equal calls give equal bits, even in processes at different stages of training.

    Compiled code does so in any case. Eager functions and optimizers are otherwise compiled after some calls, and
    native code differs from numpy in the last bits. In this mode they are compiled at their first call. Each new
    combination of shapes is then compiled at once unless the cache on disk has it.
    """
    set_deterministic_debug_mode((1 if warn_only else 2) if mode else 0)


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether ``use_deterministic_algorithms`` was last called with True."""
    return _set["debug"] > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether ``use_deterministic_algorithms`` was last called with ``warn_only``."""
    return _set["debug"] == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Call ``use_deterministic_algorithms`` by number or name: 0 ``default``, 1 ``warn``, 2 ``error``.

    Raises AttributeValueError for any other mode.
    """
    if debug_mode in _DEBUG_MODES:
        debug_mode = _DEBUG_MODES.index(str(debug_mode))
    if debug_mode not in (0, 1, 2):
        raise AttributeValueError(
            f"there is no debug mode {debug_mode!r}", remedy=f"use one of {', '.join(_DEBUG_MODES)}"
        )
    _set["debug"] = debug_mode


def get_deterministic_debug_mode() -> int:
    """Return the debug mode as a number."""
    return _set["debug"]


def set_warn_always(b: bool) -> None:
    """Store whether PyTorch repeats warnings; warnings of graphc follow Python's filters."""
    _set["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """Return the last value of ``set_warn_always``."""
    return _set["warn_always"]


def set_flush_denormal(mode: bool) -> bool:
    """Return False: denormal numbers stay. ``compile(flush_denormals=True)`` takes them for zeros."""
    return False
