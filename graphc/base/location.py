"""Origins of graph nodes: the module path and the user's file and line."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import FrameType

from graphc.base.records import dataclass

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep


@dataclass(frozen=True)
class Location:
    """Origin of a node; all fields may be empty."""

    module: str = ""
    """Dotted path of the module whose forward made the node, e.g. ``features.conv1``."""
    file: str = ""
    """Path of the user's source file, relative to the working directory where possible."""
    line: int = 0
    """Line in that file, counted from 1; 0 when unknown."""

    def __str__(self) -> str:
        position = f"{self.file}:{self.line}" if self.file else ""
        return " ".join(text for text in (self.module, position) if text)

    def describe(self) -> str:
        """Return the ``from`` line of an error: module path, file:line and the source text."""
        text = linecache.getline(self.file, self.line).strip() if self.file else ""
        position = f"{self.file}:{self.line}" if self.file else ""
        head = ", ".join(item for item in (self.module, position) if item)
        return f"{head}: {text}" if text else head

    @property
    def portable(self) -> Location:
        """Copy with a machine-independent file name, see ``portable_path``."""
        return replace(self, file=portable_path(self.file))


UNKNOWN = Location()


def raised_at(error: BaseException, module: str = "") -> Location:
    """Return the location of the innermost user line that ``error`` passed through; else of the line that runs now."""
    innermost, entry = None, error.__traceback__
    while entry is not None:
        if not entry.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            innermost = entry
        entry = entry.tb_next
    if innermost is None:
        return capture(module)
    return Location(module, _display_path(innermost.tb_frame.f_code.co_filename), innermost.tb_lineno)


def user_frame() -> FrameType | None:
    """Return the innermost frame outside of the graphc package, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _of_package[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


class _OfPackage(dict[str, bool]):
    """Whether source files belong to graphc, by name. A lookup calls no function, which traces watch."""

    def __missing__(self, file: str) -> bool:
        self[file] = inside = file.startswith(_PACKAGE)
        return inside


_of_package = _OfPackage()


def line_of_thread(thread: int) -> Location:
    """Return the innermost line outside of graphc and the standard library in a running thread.

    ``thread`` is an identifier of ``threading.get_ident()``.
    """
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code.co_filename.startswith((_PACKAGE, _LIBRARY, "<frozen ")):
        frame = frame.f_back
    return UNKNOWN if frame is None else Location("", _display_path(frame.f_code.co_filename), frame.f_lineno)


def is_of_package(file: str) -> bool:
    """Return whether a source file belongs to graphc."""
    return file.startswith(_PACKAGE)


def package_files() -> Iterator[str]:
    """Yield the graphc files whose code runs now, relative to the package, innermost first, up to the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        yield frame.f_code.co_filename[len(_PACKAGE) :].replace(os.sep, "/")
        frame = frame.f_back


_relative: dict[str, str] = {}


def _display_path(path: str) -> str:
    shown = _relative.get(path)
    if shown is None:
        relative = os.path.relpath(path) if os.path.isabs(path) else path
        shown = path if relative.startswith("..") else relative
        _relative[path] = shown
    return shown


def portable_path(file: str) -> str:
    """Return a source file relative to the folder of ``sys.path`` that holds it, ``package/module.py``.

    The result depends neither on where the package is installed nor on the working directory. A file outside of
    ``sys.path`` gives its base name.
    """
    path = os.path.abspath(file)
    folders = [folder for folder in map(os.path.abspath, sys.path) if path.startswith(folder.rstrip(os.sep) + os.sep)]
    # NOTE: the working directory and the script's own folder may both hold it; the folder nearest to the file wins.
    name = os.path.relpath(path, max(folders, key=len)) if folders else os.path.basename(file)
    return name.replace(os.sep, "/") if file else ""


_override: ContextVar[Location | None] = ContextVar("graphc_location", default=None)


@contextmanager
def at(location: Location) -> Iterator[None]:
    """Make ``capture`` return ``location`` while the block runs, for code that applies ops written elsewhere."""
    token = _override.set(location)
    try:
        yield
    finally:
        _override.reset(token)


def capture(module: str = "") -> Location:
    """Return the location of the user's code that runs now, in module path ``module``, or the one that ``at`` sets."""
    override = _override.get()
    if override is not None:
        return override
    frame = user_frame()
    if frame is None:
        return Location(module)
    return Location(module, _display_path(frame.f_code.co_filename), frame.f_lineno)
