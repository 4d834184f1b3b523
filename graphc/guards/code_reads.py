"""Functions that run during a trace: their identities, and the outside variables that their code reads and assigns."""

from __future__ import annotations

import ctypes
import dis
import gc
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

import numpy as np

from graphc.base.interruptions import OUTSIDE, set_profile
from graphc.base.records import NamedTuple
from graphc.guards.watch_words import word_at

_T = TypeVar("_T")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
_LIBRARIES = (_PACKAGE, os.path.dirname(os.path.abspath(np.__file__)) + os.sep, "<frozen")
_INSTALLED = ("site-packages", "dist-packages")


class Variable(NamedTuple):
    """A variable that code reads or assigns, with the chain of attributes it looks up on it."""

    name: str
    is_global: bool
    attributes: tuple[str, ...]
    line: int


@lru_cache(4096)
def is_library(file: str) -> bool:
    """Return whether a file belongs to graphc, NumPy or the standard library, which hold no settings of the user."""
    if file.startswith(_LIBRARIES):
        return True
    real = os.path.realpath(file)
    return real.startswith(_STANDARD) and not any(folder in real for folder in _INSTALLED)


@lru_cache(4096)
def variables_of(code: CodeType) -> tuple[Variable, ...]:
    """Return the global and closure variables that code itself, without nested functions, reads or assigns."""
    variables: dict[Variable, None] = {}
    name, is_global, chain, line = "", False, [], code.co_firstlineno
    for step in dis.get_instructions(code):
        line = (step.positions and step.positions.lineno) or line
        if name and step.opname in _ATTRIBUTE:
            chain.append(str(step.argval))
            continue
        if name:
            variables[Variable(name, is_global, tuple(chain), line)] = None
        name, chain = "", []
        if step.opname in _GLOBAL or (step.opname in _OUTER and step.argval in code.co_freevars):
            name, is_global = str(step.argval), step.opname in _GLOBAL
    return tuple(variables)


_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})
_OUTER = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "STORE_DEREF", "DELETE_DEREF"})


@lru_cache(4096)
def compares_identity(code: CodeType) -> bool:
    """Return whether code compares objects by ``is`` (other than with a constant) or calls ``id``."""
    constant = False
    for step in dis.get_instructions(code):
        if step.opname == "IS_OP" and not constant:
            return True
        if step.opname in _GLOBAL and step.argval == "id":
            return True
        constant = step.opname == "LOAD_CONST"
    return False


def asks_type(code: CodeType) -> bool:
    """Return whether code may call ``type`` on an object, which distinguishes a symbolic number from a plain one."""
    return any(variable.name == "type" and variable.is_global for variable in variables_of(code))


@lru_cache(4096)
def stores_of(code: CodeType) -> dict[str, str]:
    """Return the names of the attributes that code itself, without nested functions, assigns, each with its line. An
    empty name means that it may assign any attribute."""
    lines: dict[str, str] = {}
    line = code.co_firstlineno
    for step in dis.get_instructions(code):
        line = (step.positions and step.positions.lineno) or line
        if step.opname == "STORE_ATTR":
            lines.setdefault(str(step.argval), f"{code.co_filename}:{line}")
        elif step.argval in _STORING and step.opname in _ATTRIBUTE | _GLOBAL | _OUTER:
            lines.setdefault("", f"{code.co_filename}:{line}")
    return lines


_STORING = frozenset({"setattr", "__setattr__", "__setstate__"})


def codes_within(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of nested functions."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant


# ---- functions that run


@contextmanager
def watching(see: Callable[[FrameType], None]) -> Iterator[None]:
    """Call ``see`` with the frame of every user function that this thread enters, except functions the interpreter
    calls for a signal or the garbage collector, and their callees."""
    before = sys.getprofile()
    pause, resume = getattr(before, "disable", None), getattr(before, "enable", None)
    chained = before if callable(before) else None

    # Compared by identity: the hash of code visits all of its constants and names, and every call needs one.
    codes = [OUTSIDE, *map(_code_of, gc.callbacks)]
    excluded = {id(code) for code in codes}
    interrupting: FrameType | None = None
    thread, collecting = threading.get_ident(), False

    def collects(phase: str, about: dict[str, int]) -> None:
        nonlocal collecting
        if threading.get_ident() == thread:
            collecting = phase == "start"

    def event(frame: FrameType, kind: Any, argument: Any) -> None:
        nonlocal interrupting
        if interrupting is not None:
            interrupting = None if kind == "return" and frame is interrupting else interrupting
        elif kind == "call" and (collecting or id(frame.f_code) in excluded):
            interrupting = frame  # Weak-reference callbacks and finalizers run during garbage collection.
        elif kind == "call" and not is_library(frame.f_code.co_filename) and _is_of_user(frame):
            see(frame)
        if chained is not None:
            chained(frame, kind, argument)

    event.is_pausable = chained is None  # type: ignore[attr-defined]
    if pause is not None:
        pause()
    gc.callbacks.append(collects)
    set_profile(event)
    try:
        yield
    finally:
        set_profile(chained)
        gc.callbacks.remove(collects)
        if resume is not None:
            resume()


def unwatched(function: Callable[..., _T], *arguments: Any) -> _T:
    """Call a function of the library that runs no code of a user, without the cost of watching its calls.

    NOTE: a profile function takes two thirds of the time of a trace.
    """
    event = sys.getprofile()
    if not getattr(event, "is_pausable", False):
        return function(*arguments)
    set_profile(None)
    try:
        return function(*arguments)
    finally:
        set_profile(event)


def _code_of(callback: Any) -> CodeType | None:
    """Return the code of a function, a method or a callable object; None if it has none."""
    function = getattr(callback, "__func__", callback)
    return getattr(function, "__code__", None) or getattr(vars(type(callback)).get("__call__"), "__code__", None)


def _is_of_user(frame: FrameType) -> bool:
    """Return whether a frame runs a function of the user, rather than class or module code, or a generated function."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED) and package not in _OWN


_OWN = frozenset({"graphc", "numpy", "networkx", "llvmlite", "collections", "dataclasses"})
"""Packages whose code runs while graphs are built, or that generate functions."""


def functions_of(frame: FrameType) -> list[FunctionType]:
    """Return the function that runs in a frame, or all candidates if it cannot be determined."""
    offsets = _function_offsets()
    if offsets is not None:
        function = ctypes.cast(word_at(word_at(id(frame) + offsets[0]) + offsets[1]), ctypes.py_object).value
        return [function] if isinstance(function, FunctionType) else []
    candidates = [
        f for f in gc.get_referrers(frame.f_code) if isinstance(f, FunctionType) and f.__code__ is frame.f_code
    ]
    return [f for f in candidates if f.__globals__ is frame.f_globals and _has_cells(f, frame)]


def _has_cells(function: FunctionType, frame: FrameType) -> bool:
    """Return whether the closure variables of a function have the values the frame sees."""
    local = frame.f_locals
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            if cell.cell_contents is not local.get(name):
                return False
        except ValueError:
            if name in local:
                return False
    return True


@cache
def _function_offsets() -> tuple[int, int] | None:
    """Return the offsets of the interpreter frame in a frame object and of the function in that, verified by a
    probe."""
    frame_at, words = 24, 6

    def probe(frames_seen: list[FrameType]) -> bool:
        frame = sys._getframe()
        frames_seen.append(frame)
        inner = word_at(id(frame) + frame_at)
        return False if inner % 8 or inner < 1 << 16 else any(word_at(inner + 8 * i) == id(probe) for i in range(words))

    if sys.implementation.name != "cpython" or "t" in sys.abiflags:
        return None
    frames: list[FrameType] = []
    if not probe(frames):
        return None
    inner = word_at(id(frames[0]) + frame_at)
    at = [8 * i for i in range(words) if word_at(inner + 8 * i) == id(probe)]
    return (frame_at, at[0]) if len(at) == 1 else None
