"""The call log of ``debug``: what was called in which order, as events, text, and lines of JSON."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from graphc.base.array_report import ArrayReport

CALL, MODULE, OP, GRADIENT, NOTE = "call", "module", "op", "gradient", "note"


class Event(NamedTuple):
    """One entry of a log."""

    kind: str
    """``call``: a module begins; ``module``: it ends; ``op``; ``gradient``: the gradient rule of an op; ``note``."""
    phase: str
    """``forward`` or ``backward``."""
    path: str
    """Of the module, or of the one that the op runs in; empty for the outermost one and where none is."""
    module: str
    """Its class."""
    op: str
    """The op's name; empty for modules. Of a note its text."""
    line: str
    """The user's file and line; of a gradient those of the op in the forward pass."""
    inputs: tuple[ArrayReport, ...]
    """Of gradients those of the outputs."""
    outputs: tuple[ArrayReport, ...]
    """Of gradients those of the inputs."""
    seconds: float
    """Without the time that logging takes."""
    depth: int = 0
    """In how many modules the call lies."""

    @property
    def place(self) -> str:
        """Path and class of the module."""
        return f"{self.path} ({self.module})" if self.path and self.module else self.path or self.module

    def __str__(self) -> str:
        if self.kind == NOTE:
            return f"# {self.op}"
        if self.kind == CALL:
            return f"{self.place}: {_shown(self.inputs)}" if self.inputs else f"{self.place}:"
        head = f"{self.phase} {self.place}:" if self.kind == MODULE else self.op
        if self.kind == GRADIENT:
            head = f"gradient of {head}{f' in {self.place}' if self.place else ''}:"
        return f"{head} {_shown(self.inputs)} -> {_shown(self.outputs)}  {_time(self.seconds)}  {self.line}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """As numbers and texts, for JSON."""
        found = {**self._asdict(), "microseconds": round(1e6 * self.seconds, 1)}
        del found["seconds"]
        return {**found, **{k: [r.to_dict() for r in getattr(self, k)] for k in ("inputs", "outputs")}}


def _shown(reports: Sequence[ArrayReport]) -> str:
    return ", ".join(map(str, reports)) or "()"


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} us" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"


class Text:
    """Writes events as lines: modules as headings with what happens in them below; one without anything is a line."""

    def __init__(self) -> None:
        self._heading: Event | None = None

    def lines(self, event: Event) -> list[str]:
        """The lines that an event adds."""
        before, self._heading = self._heading, None
        space = "  " * event.depth
        if event.kind == CALL:
            self._heading = event
            return self._headed(before)
        if event.kind == MODULE and event.phase == "forward":
            end = f"{_shown(event.outputs)}  {_time(event.seconds)}"
            if before is not None and (before.path, before.depth) == (event.path, event.depth):
                return [f"{space}{before} -> {end}"]
            return [*self._headed(before), f"{space}-> {event.place}: {end}"]
        return [*self._headed(before), f"{space}{event}"]

    def _headed(self, heading: Event | None) -> list[str]:
        return [] if heading is None else ["  " * heading.depth + str(heading)]

    def rest(self) -> list[str]:
        """A heading below which nothing has come yet."""
        before, self._heading = self._heading, None
        return self._headed(before)


class Filter(NamedTuple):
    """Which events a log keeps."""

    modules: tuple[str, ...] = ()
    """Patterns of paths and classes of modules; empty: all."""
    ops: tuple[str, ...] = ()
    """Patterns of names of ops; empty: all."""

    def keeps(self, event: Event) -> bool:
        """Whether an event is of interest."""
        if event.kind == NOTE:
            return True
        if self.modules and not matches(self.modules, event.path, event.module):
            return False
        return event.kind in (CALL, MODULE) or not self.ops or matches(self.ops, event.op)


def matches(patterns: Sequence[str], *names: str) -> bool:
    """Whether one of the names is like one of the patterns (``*`` and ``?`` stand for anything)."""
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


class CallLog:
    """The last events, and where they are written while they come."""

    def __init__(self, limit: int, wanted: Filter, write: Callable[[str], Any] | None, file: Any):
        """``write`` gets lines of text, ``file`` (open for text) lines of JSON."""
        self.entries: deque[Event] = deque(maxlen=limit)
        self.count = 0
        """How many there were."""
        self._wanted, self._write, self._file = wanted, write, file
        self._text = Text()

    def add(self, event: Event) -> None:
        """Takes an event in, and writes it."""
        if not self._wanted.keeps(event):
            return
        self.entries.append(event)
        self.count += 1
        if self._write is not None:
            for line in self._text.lines(event):
                self._write(line)
        if self._file is not None:
            self._file.write(json.dumps(event.to_dict()) + "\n")

    def flush(self) -> None:
        """Writes what is still held back."""
        if self._write is not None:
            for line in self._text.rest():
                self._write(line)
        if self._file is not None:
            self._file.flush()

    def text(self, last: int | None = None) -> str:
        """The last events (all that are kept) as lines."""
        text = Text()
        entries = list(self.entries)
        shown = entries if last is None else entries[max(0, len(entries) - last) :]
        found = [line for event in shown for line in text.lines(event)] + text.rest()
        missing = self.count - len(shown)
        return "\n".join([f"... {missing} events before", *found] if missing else found)

    def __iter__(self) -> Iterator[Event]:
        return (e for e in self.entries if e.kind not in (CALL, NOTE))
