"""Tables of numbers in CSV files."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import DType, dtype_of
from graphc.base.errors import ArgumentError, ArtifactError


class Table(NamedTuple):
    """Numbers in rows and columns."""

    columns: tuple[str, ...]
    """Names of the columns; their numbers as texts in a file without a header."""
    values: np.ndarray
    """[rows, columns]."""


def read_csv(
    path: str | os.PathLike[str],
    *,
    dtype: Any = "float32",
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    delimiter: str = ",",
    missing: float | None = None,
) -> Table:
    """The numbers of a CSV file (UTF-8), read as ``dtype``.

    ``header`` says whether the first line names the columns; None finds out (it does when an entry of it is no number).
    ``columns`` picks columns by name or number, ``missing`` is what empty entries become. Empty lines are skipped.
    Raises ArtifactError, naming line and column, for an entry that is no number of that type and for rows of different
    lengths; ArgumentError for a column that is not there; OSError.
    """
    place = os.fspath(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            rows = ((reader.line_num, row) for row in reader if row)
            return _read(rows, _Cells(place, dtype_of(dtype), missing), columns, header)
    except csv.Error as error:
        raise ArtifactError(f"{place}: it is no CSV file: {error}") from None
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{place}: it is no text in UTF-8: {error.reason} at byte {error.start}") from None


class _Cells:
    """Entries to numbers of one type, with errors that name the place."""

    def __init__(self, place: str, dtype: DType, missing: float | None):
        self.place = place
        self.dtype = dtype
        self.missing = missing
        whole = dtype.kind in "iu"
        self.limits = (int(np.iinfo(dtype.numpy).min), int(np.iinfo(dtype.numpy).max)) if whole else (0, 1)
        self.parse = float if dtype.is_floating_point else int

    def is_number(self, text: str) -> bool:
        """Whether the entry could stand in a row of numbers."""
        try:
            float(text or "0")
        except ValueError:
            return False
        return "_" not in text

    def number(self, text: str, line: int, column: str) -> float:
        """The entry as a number; raises ArtifactError."""
        text = text.strip()
        if not text and self.missing is not None:
            return self.missing
        try:
            if "_" in text:
                raise ValueError
            value = self.parse(text)
        except ValueError:
            what = f"{text!r} is no {self.dtype.long_name}" if text else "the entry is empty"
            remedy = None if text else "missing=0, or another number for empty entries"
            raise ArtifactError(f"{self.place}, line {line}, column {column}: {what}", remedy=remedy) from None
        if self.parse is int and not self.limits[0] <= value <= self.limits[1]:
            raise ArtifactError(
                f"{self.place}, line {line}, column {column}: {value} lies outside of {self.dtype.long_name}"
            )
        return value


def _read(
    rows: Iterator[tuple[int, list[str]]], cells: _Cells, chosen: Sequence[str | int] | None, header: bool | None
) -> Table:
    line, first = next(rows, (0, []))
    if not first:
        raise ArtifactError(f"{cells.place}: the file has no rows")
    named = header if header is not None else not all(cells.is_number(c.strip()) for c in first)
    names = [c.strip() for c in first] if named else [str(i) for i in range(len(first))]
    picked = range(len(names)) if chosen is None else [_column(c, names, cells.place) for c in chosen]
    values: list[list[float]] = []
    if not named:
        values.append([cells.number(first[i], line, names[i]) for i in picked])
    for line, row in rows:
        if len(row) != len(names):
            raise ArtifactError(f"{cells.place}, line {line}: {len(row)} entries, the first line has {len(names)}")
        values.append([cells.number(row[i], line, names[i]) for i in picked])
    array = np.array(values, cells.dtype.numpy).reshape(len(values), len(picked))
    return Table(tuple(names[i] for i in picked), array)


def _column(wanted: str | int, names: list[str], place: str) -> int:
    if isinstance(wanted, int) and -len(names) <= wanted < len(names):
        return wanted % len(names)
    if isinstance(wanted, int) or names.count(wanted) != 1:
        raise ArgumentError(f"{place}: there is no one column {wanted!r}", remedy=f"one of {', '.join(names)}")
    return names.index(wanted)
