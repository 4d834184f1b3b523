"""The outermost call of a block: the first step that is called in it, with its arguments and its result."""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from graphc.base.location import is_of_package
from graphc.monitor.holders import globals_of

_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep


class Begun(NamedTuple):
    """A call that has begun."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    refers: list[tuple[str, Any]]
    """What its code refers to, by name."""


class OutermostCall:
    """Watches the calls that one frame makes until ``begins`` takes one; ``ends`` gets its result (None after an
    error). Python's profiling is used for it, and given back as soon as that call has ended."""

    def __init__(self, frame: FrameType, begins: Callable[[Begun], bool], ends: Callable[[Any], None]):
        self._frame, self._begins, self._ends = frame, begins, ends
        self._taken: FrameType | None = None
        self._before: Any = None
        self._runs = False

    def start(self) -> None:
        """Begins to watch."""
        self._before, self._runs = sys.getprofile(), True
        sys.setprofile(self._look)

    def stop(self) -> None:
        """Watches no longer; what watched before does again."""
        if self._runs:
            self._runs, self._taken = False, None
            sys.setprofile(self._before)

    def _look(self, frame: FrameType, event: str, result: Any) -> None:
        if event == "call" and self._taken is None and frame.f_back is self._frame and _may_be_step(frame):
            if self._begins(_begun(frame)):
                self._taken = frame
        elif event == "return" and frame is self._taken:
            self.stop()
            self._ends(result)


def _may_be_step(frame: FrameType) -> bool:
    code = frame.f_code
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return False
    if code.co_name == "__call__":
        return True
    if code.co_name.startswith("__") or (code.co_name.startswith("<") and code.co_name != "<lambda>"):
        return False
    return not is_of_package(code.co_filename) and not code.co_filename.startswith((_STANDARD, "<frozen"))


def _begun(frame: FrameType) -> Begun:
    code, values = frame.f_code, frame.f_locals
    count = code.co_argcount
    names = list(code.co_varnames[: count + code.co_kwonlyargcount])
    rest = code.co_varnames[len(names) :]
    args = [values[name] for name in names[:count]]
    kwargs = {name: values[name] for name in names[count:]}
    more = list(rest[: bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)])
    if code.co_flags & inspect.CO_VARARGS:
        args += values[more.pop(0)]
    if more:
        kwargs |= values[more.pop(0)]
    refers = []
    if not is_of_package(code.co_filename):
        refers += [(name, values[name]) for name in code.co_freevars if name in values]
        refers += globals_of(code, frame.f_globals)
    if names[:1] == ["self"] and count:
        owner = args.pop(0)
        held = _name_of(owner, frame.f_back)
        name = held if code.co_name == "__call__" else f"{held}.{code.co_name}"
        return Begun(name, tuple(args), kwargs, [(held, owner), *refers])
    return Begun(code.co_name, tuple(args), kwargs, refers)


def _name_of(value: Any, caller: FrameType | None) -> str:
    """The variable of the caller that holds a value."""
    for table in (caller.f_locals, caller.f_globals) if caller is not None else ():
        for name, found in table.items():
            if found is value:
                return name
    return type(value).__name__
