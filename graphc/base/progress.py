"""Reports of work while it runs: a line or a bar on a terminal, the counts of loops, and spans of time."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, TracebackType
from typing import Any, Self, TypeVar

from graphc.base import config
from graphc.base.lazy import deferred
from graphc.base.records import NamedTuple

set_profile = deferred("graphc.base.interruptions:set_profile")

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])
WIDTH = 100
"""Largest number of characters of a line."""
DEFAULT_COLUMNS = 80
"""Width of a terminal of unknown size."""
PERIOD = 0.1
"""Least seconds between two updates of a bar."""
BAR_WIDTH, LEAST_BAR = 24, 6
"""Characters of a bar, and at least so many in narrow terminals."""
_CLEAR = "\r\x1b[K"


def terminal_columns(stream: Any) -> int:
    """Return the width of a terminal: COLUMNS, or what the system says of ``stream``, or 80."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_COLUMNS
    except (AttributeError, OSError, ValueError):
        return DEFAULT_COLUMNS


class TerminalLine:
    """A line on stderr that each write replaces. It writes nothing unless stderr is a terminal and GRAPHC_PROGRESS is
    on, so files, pipes and notebooks get none.
    """

    def __init__(self) -> None:
        self.is_visible = config.read().progress and sys.stderr is not None and sys.stderr.isatty()

    @property
    def width(self) -> int:
        """Largest number of characters now; a terminal may wrap a line that fills it."""
        return min(WIDTH, terminal_columns(sys.stderr) - 1)

    def write(self, text: str) -> None:
        """Replace the line."""
        if not self.is_visible:
            return
        try:
            sys.stderr.write(_CLEAR + text[: self.width])
            sys.stderr.flush()
        except (OSError, ValueError):  # the terminal was closed
            self.is_visible = False

    def clear(self) -> None:
        """Erase the line."""
        self.write("")


class Progress:
    """Progress bar from 0 to ``total``, shown on stderr if that is a terminal and GRAPHC_PROGRESS is on."""

    def __init__(self, doing: str, total: float, unit: str = ""):
        self._doing, self._total, self._unit = doing, max(total, 1e-9), unit
        self._start = self._drawn_at = time.monotonic()
        self._terminal = TerminalLine()

    def line(self, done: float, note: str = "") -> str:
        """Return the text of the line when ``done`` of the total is reached."""
        share = min(max(done / self._total, 0.0), 1.0)
        count = f"{done:.0f}/{self._total:.0f} {self._unit}" if self._unit else f"{share:4.0%}"
        spent = time.monotonic() - self._start
        estimate = f", {spent / share - spent:.0f} s left" if share > 0.02 and spent > 1 else ""
        text = f"{count}{estimate} {note}".rstrip()
        width = max(LEAST_BAR, min(BAR_WIDTH, self._terminal.width - len(f"{self._doing} [] {text}")))
        return f"{self._doing} [{'#' * round(share * width):<{width}}] {text}"

    def tell(self, done: float, note: str = "") -> None:
        """Show ``done`` of the total, at most once in ``PERIOD`` seconds."""
        now = time.monotonic()
        if self._terminal.is_visible and now - self._drawn_at >= PERIOD:
            self._drawn_at = now
            self._terminal.write(self.line(done, note))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._terminal.clear()


_listener: ContextVar[Callable[[int, int], None] | None] = ContextVar("graphc_counts", default=None)


@contextmanager
def listening(tell: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``tell`` with the items done and the number of all items while loops of ``counted`` run in the block."""
    token = _listener.set(tell)
    try:
        yield
    finally:
        _listener.reset(token)


def counted(items: Collection[_T]) -> Iterator[_T]:
    """Yield the items. Tell the listener before each how many are done.

    Example:
        >>> from graphc.base.progress import counted, listening
        >>> with listening(lambda done, count: print(f"{done} of {count}")):
        ...     squares = [n * n for n in counted([3, 4])]
        0 of 2
        1 of 2
    """
    tell = _listener.get()
    for done, item in enumerate(items):
        if tell is not None:
            tell(done, len(items))
        yield item


# ---- spans of time

COMPILE, PASS, COMPILED, PROFILER = "compile", "pass", "compiled", "profiler"
"""Kinds of spans: a stage of a compilation, one of its passes, a call of compiled code, work of the profiler itself."""
OP, PYTHON, MODULE, KERNEL = "cpu_op", "python_function", "module", "kernel"
"""Kinds of spans, by torch.profiler's names but for the modules: an eager op, a call of a function or of a module, a
kernel of a program."""


class Span(NamedTuple):
    """Activity of one thread over a period."""

    kind: str
    name: str
    begin: float
    """Seconds of ``time.perf_counter``."""
    end: float
    nbytes: int = 0
    thread: int = 0
    """Native identifier of the thread, as the system's tools show it."""
    args: Mapping[str, Any] = {}
    """Further facts, for JSON."""


_spans: list[Span] | None = None


@contextmanager
def timeline() -> Iterator[list[Span]]:
    """Return a list that collects the spans of all threads of this process inside the block, each at its end."""
    global _spans
    before, _spans = _spans, []
    try:
        yield _spans
    finally:
        _spans = before


def note(kind: str, name: str, begin: float, nbytes: int = 0, **args: Any) -> None:
    """Record a span that ends now, if a timeline is active."""
    if _spans is not None:
        _spans.append(Span(kind, name, begin, time.perf_counter(), nbytes, threading.get_native_id(), args))


@contextmanager
def noted(kind: str, name: str, **args: Any) -> Iterator[None]:
    """Record the block as a span, if a timeline is active, also where it raises an error."""
    begin = time.perf_counter()
    try:
        yield
    finally:
        note(kind, name, begin, **args)


@contextmanager
def unwatched() -> Iterator[None]:
    """Run the block of a compiler without this thread's profile function while a timeline is active.

    Compilers make so many calls of Python functions that a profile function would multiply the time of their spans.
    """
    function = None if _spans is None else sys.getprofile()
    if function is None:
        yield
        return
    set_profile(None)
    try:
        yield
    finally:
        set_profile(function)


Describe = Callable[[Mapping[str, Any]], str]
SHOWN: dict[CodeType, tuple[str, Describe]] = {}
"""Functions of graphc whose calls profiles show: kind of the span, and its name from the call's local variables."""


def shown(kind: str, name: Describe) -> Callable[[_F], _F]:
    """Mark a function whose calls profiles show. The function itself is unchanged, so calls cost nothing more."""

    def mark(function: _F) -> _F:
        SHOWN[function.__code__] = kind, name
        return function

    return mark
