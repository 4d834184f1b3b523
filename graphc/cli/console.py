"""Output of commands: data on stdout, as text or JSON, and messages on stderr."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from graphc.base.errors import GraphcError
from graphc.base.lazy import deferred

if TYPE_CHECKING:
    from graphc.files.manifest import TensorSpec

is_size, json_text = deferred("graphc.base.sizes.size:is_size"), deferred("json:dumps")
fill, terminal_columns = deferred("textwrap:fill"), deferred("graphc.base.progress:terminal_columns")

OK = 0
INTERNAL = 1
"""Internal error of graphc."""
USAGE = 2
"""Wrong arguments, a missing file, an unknown target."""
COMPILE = 3
"""The model could not be traced or compiled."""
DAMAGED = 4
"""A file is damaged, foreign, or of another version."""
MISMATCH = 5
"""Inputs or weights do not fit the model."""
WRONG = 6
"""A check, an expected output or an assertion failed."""
INTERRUPTED = 130
PIPE = 141
"""The reader of stdout closed the pipe."""


class UsageError(GraphcError):
    """The arguments of a command are wrong."""


class UserCodeError(GraphcError):
    """The user's own code raised while it was imported, built or traced; the cause is the error it raised."""


class CompileFailure(GraphcError):
    """Tracing or compiling a model failed. The cause is the original error; the message is the same."""


def open_streams() -> None:
    """Replace closed standard streams by ``os.devnull``, and print each warning as one line on stderr."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open until the process ends
    warnings.showwarning = lambda message, *_, **__: say(f"{paint('warning:', '33', sys.stderr)} {message}")


def emit(text: str) -> None:
    """Print data to stdout, with a final newline."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def emit_json(value: Any) -> None:
    """Print a value to stdout as JSON."""
    emit(json_text(value, indent=2, allow_nan=True))


def say(text: str) -> None:
    """Print a message to stderr."""
    print(text, file=sys.stderr)


def complain(text: str) -> None:
    """Print an error to stderr."""
    say(f"{paint('error:', '31', sys.stderr)} {text}")


def paint(text: str, code: str, stream: TextIO) -> str:
    """Colour the text with an ANSI code if ``stream`` is a terminal and NO_COLOR is not set."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"


def columns() -> int | None:
    """Return the width of the terminal on stdout; None for files and pipes."""
    return terminal_columns(sys.stdout) if sys.stdout is not None and sys.stdout.isatty() else None


def wrap(text: str, width: int | None = None) -> str:
    """Break lines that are longer than the terminal between words, with an indent. Files and pipes get them whole."""
    width = width or columns()
    if width is None:
        return text
    return "\n".join(fill(line, width, subsequent_indent="  ") for line in text.split("\n"))


def table(rows: Sequence[Sequence[str]], uses: Sequence[str] = (), width: int | None = None) -> str:
    """Align the columns of the rows: the first to the left, columns of numbers to the right.

    A table that is wider than the terminal is fitted into it. With ``uses``, the first row is a heading, and a table of
    few rows is turned by 90 degrees. Else long cells are cut, and columns are left out: the last of ``uses`` first, and
    before these the headings that it does not name, from the right. ``width`` replaces the width of the terminal.
    """
    width = width or columns()
    if width is None or not rows or _width_of(rows) <= width:
        return _aligned(rows)
    turned = list(zip(*rows, strict=True))
    if uses and len(rows) <= MOST_TURNED and _width_of(turned) <= width:
        return _aligned(turned)
    return _fitted(rows, uses, width)


MOST_TURNED = 4
"""Largest number of rows, with the heading, of a table that is turned."""
_GAP = "  "


def _fitted(rows: Sequence[Sequence[str]], uses: Sequence[str], width: int) -> str:
    """Align a table with fewer columns and shorter cells, and name the columns that are left out."""
    head = list(rows[0])
    named = [head.index(name) for name in uses if name in head]
    order = [*named, *(i for i in range(len(head)) if i not in named)]
    rows = [[shorten(cell, width // 3) for cell in row] for row in rows]
    kept = len(order)
    while kept > 2 and _width_of(_chosen(rows, order[:kept])) > width:
        kept -= 1
    narrow = _chosen(rows, order[:kept])
    if _width_of(narrow) > width:
        narrow = [[shorten(cell, (width - len(_GAP) * (kept - 1)) // kept) for cell in row] for row in narrow]
    left_out = ", ".join(head[i] for i in sorted(order[kept:]) if head[i])
    note = fill(f"not shown for lack of width: {left_out}", width, subsequent_indent="  ")
    return "\n".join([_aligned(narrow), *([note] if left_out and uses else [])])


def _chosen(rows: Sequence[Sequence[str]], order: Sequence[int]) -> list[list[str]]:
    return [[row[i] for i in sorted(order)] for row in rows]


def shorten(text: str, width: int) -> str:
    """Cut a text to ``width`` characters, the last of which then is an ellipsis."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _width_of(rows: Sequence[Sequence[str]]) -> int:
    widths = _widths(rows)
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = _widths(rows)
    lines = []
    for row in rows:
        cells = [_cell(text, width, i) for i, (text, width) in enumerate(zip(row, widths, strict=True))]
        lines.append(_GAP.join(cells).rstrip())
    return "\n".join(lines)


def _cell(text: str, width: int, column: int) -> str:
    number = column > 0 and text[:1].isdigit()
    return text.rjust(width) if number else text.ljust(width)


def type_text(spec: TensorSpec) -> str:
    """Format a type: ``f32[1,10]``."""
    return f"{spec.dtype}[{','.join(map(str, spec.shape))}]"


def spec_json(spec: TensorSpec) -> dict[str, Any]:
    """Return name and type as the fields of ``fields.spec_fields``."""
    shape = [str(n) if is_size(n) else n for n in spec.shape]
    number = {} if spec.equals is None else {"equals": str(spec.equals)}
    return {"name": spec.name, "dtype": spec.dtype, "shape": shape, **number}


def with_sizes(title: str, sizes: Mapping[str, int]) -> str:
    """Return a title with the sizes of named dimensions: ``Net batch=8``."""
    return " ".join([title, *(f"{name}={size}" for name, size in sizes.items())])


def bytes_text(count: int) -> str:
    """Format a number of bytes: ``1.5 MiB``."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def seconds_text(seconds: float) -> str:
    """Format a time with three digits: ``12.3 us``."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        if seconds * scale >= 1 or unit == "ns":
            return f"{seconds * scale:.3g} {unit}"
    raise AssertionError
