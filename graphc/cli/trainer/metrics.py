"""Files of metrics, JSON lines or CSV, which a resumed training continues."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.files.container import replacing

SUFFIXES = (".jsonl", ".csv")
Line = Mapping[str, Any]


class MetricsFile:
    """File to which lines are appended, each with the ``step`` after which it was measured."""

    def __init__(self, path: str | os.PathLike[str], fields: Sequence[str], step: int = 0):
        """``fields`` are the columns of a CSV file. An existing file keeps its lines up to ``step``; a resumed training
        repeats the later steps.

        Raises ArgumentError for another suffix; OSError.
        """
        self.path = Path(path)
        self.fields = list(fields)
        if self.path.suffix not in SUFFIXES:
            raise ArgumentError(
                f"{str(path)!r} is not a .jsonl or .csv file", remedy="pass for example --metrics metrics.jsonl"
            )
        previous = self._lines_up_to(step) if step and self.path.exists() else []
        with replacing(self.path) as file:
            file.write("".join(self._head() + previous).encode())
        self._file = open(self.path, "a", encoding="utf-8", newline="")  # noqa: SIM115  # open until close()

    def _head(self) -> list[str]:
        return [_row(self.fields)] if self.path.suffix == ".csv" else []

    def _lines_up_to(self, step: int) -> list[str]:
        text = self.path.read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        if self.path.suffix == ".csv":
            column = self.fields.index("step")
            lines = lines[1:]
            return [line for line in lines if _step_in(next(csv.reader([line]), []), column) <= step]
        return [line for line in lines if _step_of(line) <= step]

    def write(self, line: Line) -> None:
        """Append a line. Raises OSError."""
        if self.path.suffix == ".csv":
            text = _row([line.get(name, "") for name in self.fields])
        else:
            text = json.dumps(line) + "\n"
        self._file.write(text)
        self._file.flush()

    def close(self) -> None:
        """Close the file; no more lines can be written."""
        self._file.close()


def _row(cells: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _step_of(line: str) -> float:
    """Return the step of a line of JSON; infinity for an invalid line."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def _step_in(cells: Sequence[str], column: int) -> float:
    text = cells[column] if column < len(cells) else ""
    return int(text) if text.isdigit() else float("inf")
