"""Find the outermost call of a block: the first step called in it, with its arguments and its result."""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

from graphc.base.interruptions import set_profile
from graphc.base.location import is_of_package
from graphc.monitor.holders import globals_of

_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep


class StepCall(NamedTuple):
    """A step's call, seen when it starts."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    refers: list[tuple[str, Any]]
    """Names and values that the code of the step refers to."""


class OutermostCall:
    """Watch the calls that one frame makes until ``on_call`` accepts one; ``on_return`` gets its result (None after an
    error).

    It uses ``sys.setprofile`` and restores the previous profile function as soon as that call ends.
    """

    def __init__(self, frame: FrameType, on_call: Callable[[StepCall], bool], on_return: Callable[[Any], None]):
        self._frame, self._on_call, self._on_return = frame, on_call, on_return
        self._step_frame: FrameType | None = None
        self._previous_profile: Any = None
        self._is_watching = False

    def start(self) -> None:
        """Start to watch calls."""
        self._previous_profile, self._is_watching = sys.getprofile(), True
        set_profile(self._profile)

    def stop(self) -> None:
        """Stop watching, and restore the previous profile function."""
        if self._is_watching:
            self._is_watching, self._step_frame = False, None
            set_profile(self._previous_profile)

    def _profile(self, frame: FrameType, event: str, result: Any) -> None:
        if event == "call" and self._step_frame is None and frame.f_back is self._frame and _may_be_step(frame):
            if self._on_call(_step_call(frame)):
                self._step_frame = frame
        elif event == "return" and frame is self._step_frame:
            self.stop()
            self._on_return(result)


def _may_be_step(frame: FrameType) -> bool:
    code = frame.f_code
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return False
    if code.co_name == "__call__":
        return True
    if code.co_name.startswith("__") or (code.co_name.startswith("<") and code.co_name != "<lambda>"):
        return False
    return not is_of_package(code.co_filename) and not code.co_filename.startswith((_STANDARD, "<frozen"))


def _step_call(frame: FrameType) -> StepCall:
    # NOTE: `names` are the positional parameters followed by the keyword-only ones.
    names, varargs, varkw, values = inspect.getargvalues(frame)
    code, count = frame.f_code, frame.f_code.co_argcount
    args = [values[name] for name in names[:count]]
    kwargs = {name: values[name] for name in names[count:]}
    if varargs:
        args += values[varargs]
    if varkw:
        kwargs |= values[varkw]
    refers = []
    if not is_of_package(code.co_filename):
        refers += [(name, values[name]) for name in code.co_freevars if name in values]
        refers += globals_of(code, frame.f_globals)
    if names[:1] == ["self"] and count:
        owner = args.pop(0)
        owner_name = _name_of(owner, frame.f_back)
        name = owner_name if code.co_name == "__call__" else f"{owner_name}.{code.co_name}"
        return StepCall(name, tuple(args), kwargs, [(owner_name, owner), *refers])
    return StepCall(code.co_name, tuple(args), kwargs, refers)


def _name_of(value: Any, caller: FrameType | None) -> str:
    """Return the caller's variable that holds the value, or the name of its class."""
    for table in (caller.f_locals, caller.f_globals) if caller is not None else ():
        for name, candidate in table.items():
            if candidate is value:
                return name
    return type(value).__name__
