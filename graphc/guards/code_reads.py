"""Functions that run during a trace: which ones, and which variables outside of them their code reads and assigns."""

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
from typing import Any, NamedTuple

import numpy as np

from graphc.base.interruptions import OUTSIDE
from graphc.guards.watch_words import word_at

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
_LIBRARIES = (_PACKAGE, os.path.dirname(os.path.abspath(np.__file__)) + os.sep, "<frozen")
_INSTALLED = ("site-packages", "dist-packages")


class Variable(NamedTuple):
    """A variable that code reads or assigns, and the attributes that it asks of it one after the other."""

    name: str
    is_global: bool
    attributes: tuple[str, ...]
    line: int


@lru_cache(4096)
def is_library(file: str) -> bool:
    """Whether code in a file is graphc's, NumPy's or the standard library's, which keeps no settings of the user."""
    if file.startswith(_LIBRARIES):
        return True
    real = os.path.realpath(file)
    return real.startswith(_STANDARD) and not any(part in real for part in _INSTALLED)


@lru_cache(4096)
def variables_of(code: CodeType) -> tuple[Variable, ...]:
    """The global and outer variables that code, not that of functions within it, reads or assigns."""
    found: dict[Variable, None] = {}
    name, is_global, chain, line = "", False, [], code.co_firstlineno
    for step in dis.get_instructions(code):
        line = (step.positions and step.positions.lineno) or line
        if name and step.opname in _ATTRIBUTE:
            chain.append(str(step.argval))
            continue
        if name:
            found[Variable(name, is_global, tuple(chain), line)] = None
        name, chain = "", []
        if step.opname in _GLOBAL or (step.opname in _OUTER and step.argval in code.co_freevars):
            name, is_global = str(step.argval), step.opname in _GLOBAL
    return tuple(found)


_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})
_OUTER = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "STORE_DEREF", "DELETE_DEREF"})


@lru_cache(4096)
def compares_identity(code: CodeType) -> bool:
    """Whether code asks if two objects are the same one, by ``is`` (other than with a constant) or by ``id``."""
    constant = False
    for step in dis.get_instructions(code):
        if step.opname == "IS_OP" and not constant:
            return True
        if step.opname in _GLOBAL and step.argval == "id":
            return True
        constant = step.opname == "LOAD_CONST"
    return False


def asks_type(code: CodeType) -> bool:
    """Whether code may ask for the class of an object by ``type``, which sees through what stands for a number."""
    return any(variable.name == "type" and variable.is_global for variable in variables_of(code))


@lru_cache(4096)
def stores_of(code: CodeType) -> dict[str, str]:
    """Names of the attributes that code, not that of functions within it, assigns, each with its line; an empty name
    where it names what can assign any."""
    found: dict[str, str] = {}
    line = code.co_firstlineno
    for step in dis.get_instructions(code):
        line = (step.positions and step.positions.lineno) or line
        if step.opname == "STORE_ATTR":
            found.setdefault(str(step.argval), f"{code.co_filename}:{line}")
        elif step.argval in _STORING and step.opname in _ATTRIBUTE | _GLOBAL | _OUTER:
            found.setdefault("", f"{code.co_filename}:{line}")
    return found


_STORING = frozenset({"setattr", "__setattr__", "__setstate__"})


def codes_within(code: CodeType) -> Iterator[CodeType]:
    """The code of functions that code makes."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant


# ---- which functions run


@contextmanager
def watching(see: Callable[[FrameType], None]) -> Iterator[None]:
    """Calls ``see`` with the frame of every Python function of the user that this thread enters; not of those that the
    interpreter puts in between, for a signal or for the garbage collector, nor of what these call."""
    before = sys.getprofile()
    pause, resume = getattr(before, "disable", None), getattr(before, "enable", None)
    chained = before if callable(before) else None

    apart = {OUTSIDE, *map(_code_of, gc.callbacks)}
    between: FrameType | None = None
    thread, collecting = threading.get_ident(), False

    def collects(phase: str, about: dict[str, int]) -> None:
        nonlocal collecting
        if threading.get_ident() == thread:
            collecting = phase == "start"

    def event(frame: FrameType, kind: Any, argument: Any) -> None:
        nonlocal between
        if between is not None:
            between = None if kind == "return" and frame is between else between
        elif kind == "call" and (collecting or frame.f_code in apart):
            between = frame  # Callbacks of weak references and finalizers run while garbage is collected.
        elif kind == "call" and not is_library(frame.f_code.co_filename) and _is_of_user(frame):
            see(frame)
        if chained is not None:
            chained(frame, kind, argument)

    if pause is not None:
        pause()
    gc.callbacks.append(collects)
    sys.setprofile(event)
    try:
        yield
    finally:
        sys.setprofile(chained)
        gc.callbacks.remove(collects)
        if resume is not None:
            resume()


def _code_of(callback: Any) -> CodeType | None:
    """The code of a function, method, or object that is called like one; None where it has none."""
    function = getattr(callback, "__func__", callback)
    return getattr(function, "__code__", None) or getattr(vars(type(callback)).get("__call__"), "__code__", None)


def _is_of_user(frame: FrameType) -> bool:
    """Whether a frame is that of a function, and none that a library has written while it runs."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED) and package not in _OWN


_OWN = frozenset({"graphc", "numpy", "networkx", "llvmlite", "collections", "dataclasses"})
"""Packages whose code runs while graphs are made, or that write functions."""


def functions_of(frame: FrameType) -> list[FunctionType]:
    """The function that runs in a frame; where that cannot be told, all that may be it."""
    place = _function_place()
    if place is not None:
        found = ctypes.cast(word_at(word_at(id(frame) + place[0]) + place[1]), ctypes.py_object).value
        return [found] if isinstance(found, FunctionType) else []
    known = [f for f in gc.get_referrers(frame.f_code) if isinstance(f, FunctionType) and f.__code__ is frame.f_code]
    return [f for f in known if f.__globals__ is frame.f_globals and _has_cells(f, frame)]


def _has_cells(function: FunctionType, frame: FrameType) -> bool:
    """Whether the outer variables of a function have the values that the frame sees."""
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
def _function_place() -> tuple[int, int] | None:
    """Offsets of the interpreter's frame in a frame object, and of the function in that; tried before trusted."""
    frame_at, words = 24, 6

    def probe(seen: list[FrameType]) -> bool:
        frame = sys._getframe()
        seen.append(frame)
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
