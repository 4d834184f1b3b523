"""Where a node of the graph came from: the module path and the user's file and line."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep


@dataclass(frozen=True)
class Location:
    """The origin of a node; all fields may be empty."""

    module: str = ""
    """Dotted path of the module whose forward made the node, e.g. ``features.conv1``."""
    file: str = ""
    """Path of the user's source file, relative to the working directory where possible."""
    line: int = 0
    """Line in that file, counted from 1; 0 when unknown."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else ""
        return " ".join(part for part in (self.module, place) if part)

    def describe(self) -> str:
        """The ``from`` line of an error: module path, file:line and the source text."""
        text = linecache.getline(self.file, self.line).strip() if self.file else ""
        place = f"{self.file}:{self.line}" if self.file else ""
        head = ", ".join(part for part in (self.module, place) if part)
        return f"{head}: {text}" if text else head

    @property
    def portable(self) -> Location:
        """The same with a file that says the same on every machine, see ``portable_path``."""
        return replace(self, file=portable_path(self.file))


UNKNOWN = Location()


def raised_at(error: BaseException, module: str = "") -> Location:
    """The location of the innermost line of the user that ``error`` passed through, or that is running now."""
    found, step = None, error.__traceback__
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            found = step
        step = step.tb_next
    if found is None:
        return capture(module)
    return Location(module, _display_path(found.tb_frame.f_code.co_filename), found.tb_lineno)


def user_frame() -> FrameType | None:
    """The innermost frame outside of the graphc package, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def line_of_thread(thread: int) -> Location:
    """The innermost line outside of graphc and of Python's own library that a thread is at now; the thread is known by
    ``threading.get_ident()``."""
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code.co_filename.startswith((_PACKAGE, _LIBRARY, "<frozen ")):
        frame = frame.f_back
    return UNKNOWN if frame is None else Location("", _display_path(frame.f_code.co_filename), frame.f_lineno)


def is_of_package(file: str) -> bool:
    """Whether a source file is one of graphc."""
    return file.startswith(_PACKAGE)


def package_files() -> Iterator[str]:
    """The files of graphc, relative to the package, whose code runs now, innermost first, up to the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        yield frame.f_code.co_filename[len(_PACKAGE) :].replace(os.sep, "/")
        frame = frame.f_back


_relative: dict[str, str] = {}


def _display_path(path: str) -> str:
    known = _relative.get(path)
    if known is None:
        relative = os.path.relpath(path) if os.path.isabs(path) else path
        known = path if relative.startswith("..") else relative
        _relative[path] = known
    return known


def portable_path(file: str) -> str:
    """A source file as Python's module search finds it, ``package/module.py``, wherever the package lies and whatever
    the working directory is; its name alone where no folder of ``sys.path`` holds it."""
    path = os.path.abspath(file)
    folders = [folder for folder in map(os.path.abspath, sys.path) if path.startswith(folder.rstrip(os.sep) + os.sep)]
    # NOTE: the working directory and the script's own folder may both hold it; the folder nearest to the file wins.
    found = os.path.relpath(path, max(folders, key=len)) if folders else os.path.basename(file)
    return found.replace(os.sep, "/") if file else ""


_given: ContextVar[Location | None] = ContextVar("graphc_location", default=None)


@contextmanager
def at(location: Location) -> Iterator[None]:
    """Makes ``capture`` return ``location`` inside the block: code that applies what was written elsewhere."""
    token = _given.set(location)
    try:
        yield
    finally:
        _given.reset(token)


def capture(module: str = "") -> Location:
    """The location of the user's code that is running now, inside module path ``module``, or what ``at`` says."""
    given = _given.get()
    if given is not None:
        return given
    frame = user_frame()
    if frame is None:
        return Location(module)
    return Location(module, _display_path(frame.f_code.co_filename), frame.f_lineno)
