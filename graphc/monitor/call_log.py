"""Call log of ``debug``: the calls in order, as events, text, and lines of JSON."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from graphc.tensors.array_report import ArrayReport

CALL, MODULE, OP, GRADIENT, NOTE = "call", "module", "op", "gradient", "note"


class LogEntry(NamedTuple):
    """Entry of a log."""

    kind: str
    """``call`` (a module starts), ``module`` (it ends), ``op``, ``gradient`` (the gradient rule of an op) or
    ``note``."""
    phase: str
    """``forward`` or ``backward``."""
    path: str
    """Path of the module, or of the module that the op runs in; empty for the outermost module and outside of any."""
    module: str
    """Class of that module."""
    op: str
    """Name of the op, or text of the note; empty for modules."""
    line: str
    """The user's file and line; for a gradient, the line of the op in the forward pass."""
    inputs: tuple[ArrayReport, ...]
    """Operands; for a gradient, the gradients of the op's outputs."""
    outputs: tuple[ArrayReport, ...]
    """Results; for a gradient, the gradients of the op's inputs."""
    seconds: float
    """Duration without the time spent on logging."""
    depth: int = 0
    """Number of modules around the call."""

    @property
    def place(self) -> str:
        """Path and class of the module, such as ``block.1 (ReLU)``."""
        return f"{self.path} ({self.module})" if self.path and self.module else self.path or self.module

    def __str__(self) -> str:
        if self.kind == NOTE:
            return f"# {self.op}"
        if self.kind == CALL:
            return f"{self.place}: {_format_reports(self.inputs)}" if self.inputs else f"{self.place}:"
        head = f"{self.phase} {self.place}:" if self.kind == MODULE else self.op
        if self.kind == GRADIENT:
            head = f"gradient of {head}{f' in {self.place}' if self.place else ''}:"
        values = f"{_format_reports(self.inputs)} -> {_format_reports(self.outputs)}"
        return f"{head} {values}  {_format_time(self.seconds)}  {self.line}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as numbers and strings, for JSON."""
        fields = {**self._asdict(), "microseconds": round(1e6 * self.seconds, 1)}
        del fields["seconds"]
        return {**fields, **{k: [r.to_dict() for r in getattr(self, k)] for k in ("inputs", "outputs")}}


def _format_reports(reports: Sequence[ArrayReport]) -> str:
    return ", ".join(map(str, reports)) or "()"


def _format_time(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} us" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"


class LogText:
    """Formatter of events as lines: a module is a heading above its events, or a single line without any."""

    def __init__(self) -> None:
        self._heading: LogEntry | None = None

    def lines(self, event: LogEntry) -> list[str]:
        """Return the lines added by an event."""
        before, self._heading = self._heading, None
        space = "  " * event.depth
        if event.kind == CALL:
            self._heading = event
            return self._headed(before)
        if event.kind == MODULE and event.phase == "forward":
            end = f"{_format_reports(event.outputs)}  {_format_time(event.seconds)}"
            if before is not None and (before.path, before.depth) == (event.path, event.depth):
                return [f"{space}{before} -> {end}"]
            return [*self._headed(before), f"{space}-> {event.place}: {end}"]
        return [*self._headed(before), f"{space}{event}"]

    def _headed(self, heading: LogEntry | None) -> list[str]:
        return [] if heading is None else ["  " * heading.depth + str(heading)]

    def rest(self) -> list[str]:
        """Return the last heading if no event has followed it yet."""
        before, self._heading = self._heading, None
        return self._headed(before)


class Filter(NamedTuple):
    """Choice of the events to keep in a log."""

    modules: tuple[str, ...] = ()
    """Patterns of paths and classes of modules; empty keeps all."""
    ops: tuple[str, ...] = ()
    """Patterns of names of ops; empty keeps all."""

    def keeps(self, event: LogEntry) -> bool:
        """Check whether the log keeps an event."""
        if event.kind == NOTE:
            return True
        if self.modules and not matches(self.modules, event.path, event.module):
            return False
        return event.kind in (CALL, MODULE) or not self.ops or matches(self.ops, event.op)


def matches(patterns: Sequence[str], *names: str) -> bool:
    """Check whether one of the names matches one of the patterns, which may have wildcards ``*`` and ``?``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


class CallLog:
    """The last events, written to a stream and a file as they come."""

    def __init__(self, limit: int, filter: Filter, write: Callable[[str], Any] | None, file: Any):
        """Keep the last ``limit`` events; ``write`` gets lines of text, the text file ``file`` lines of JSON."""
        self.entries: deque[LogEntry] = deque(maxlen=limit)
        self.count = 0
        """Number of events so far."""
        self._filter, self._write, self._file = filter, write, file
        self._text = LogText()

    def add(self, event: LogEntry) -> None:
        """Add an event and write it, unless the filter drops it."""
        if not self._filter.keeps(event):
            return
        self.entries.append(event)
        self.count += 1
        if self._write is not None:
            for line in self._text.lines(event):
                self._write(line)
        if self._file is not None:
            self._file.write(json.dumps(event.to_dict()) + "\n")

    def flush(self) -> None:
        """Write the pending heading, and flush the file."""
        if self._write is not None:
            for line in self._text.rest():
                self._write(line)
        if self._file is not None:
            self._file.flush()

    def text(self, last: int | None = None) -> str:
        """Format the last ``last`` events (default: all kept ones) as lines."""
        text = LogText()
        entries = list(self.entries)
        shown = entries if last is None else entries[max(0, len(entries) - last) :]
        lines = [line for event in shown for line in text.lines(event)] + text.rest()
        missing = self.count - len(shown)
        return "\n".join([f"... {missing} events before", *lines] if missing else lines)

    def __iter__(self) -> Iterator[LogEntry]:
        return (e for e in self.entries if e.kind not in (CALL, NOTE))
