"""What a training measures, line by line in a file: JSON, or a table; a resumed training goes on where it was."""

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
    """A file to which lines are added, each with the ``step`` after which it was measured."""

    def __init__(self, path: str | os.PathLike[str], fields: Sequence[str], step: int = 0):
        """``fields`` are the columns of a table. Of a file that is there, lines up to ``step`` stay: those behind it
        are of a training that was stopped, whose steps are made again. Raises ArgumentError for another suffix;
        OSError."""
        self.path = Path(path)
        self.fields = list(fields)
        if self.path.suffix not in SUFFIXES:
            raise ArgumentError(f"{str(path)!r} is no .jsonl or .csv file", remedy="--metrics metrics.jsonl")
        kept = self._kept(step) if step and self.path.exists() else []
        with replacing(self.path) as file:
            file.write("".join(self._head() + kept).encode())
        self._file = open(self.path, "a", encoding="utf-8", newline="")  # noqa: SIM115  # open until close()

    def _head(self) -> list[str]:
        return [_row(self.fields)] if self.path.suffix == ".csv" else []

    def _kept(self, step: int) -> list[str]:
        text = self.path.read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        if self.path.suffix == ".csv":
            place = self.fields.index("step")
            lines = lines[1:]
            return [line for line in lines if _step_in(next(csv.reader([line]), []), place) <= step]
        return [line for line in lines if _step_of(line) <= step]

    def write(self, line: Line) -> None:
        """Adds a line. Raises OSError."""
        if self.path.suffix == ".csv":
            text = _row([line.get(name, "") for name in self.fields])
        else:
            text = json.dumps(line) + "\n"
        self._file.write(text)
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _row(cells: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _step_of(line: str) -> float:
    """The step of a line of JSON; behind all others for what is none."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def _step_in(cells: Sequence[str], place: int) -> float:
    text = cells[place] if place < len(cells) else ""
    return int(text) if text.isdigit() else float("inf")
