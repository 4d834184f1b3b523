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


def table(rows: Sequence[Sequence[str]]) -> str:
    """Align the columns of the rows: the first to the left, columns of numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    lines = []
    for row in rows:
        cells = [_cell(text, width, i) for i, (text, width) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
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
