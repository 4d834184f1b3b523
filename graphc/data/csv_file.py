"""Numeric tables in CSV files."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import DType, dtype_of
from graphc.base.errors import ArgumentError, ArtifactError

__all__ = ["Table", "read_csv"]


class Table(NamedTuple):
    """Numbers in rows and columns."""

    columns: tuple[str, ...]
    """Names of the columns; in a file without a header their indices as strings."""
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
    """Read the numbers of a CSV file (UTF-8) as ``dtype``.

    ``header``: whether the first line names the columns; None: it does if one of its entries is not a number.
    ``columns`` selects columns by name or index; ``missing`` replaces empty entries. Empty lines are skipped. Raises
    ArtifactError with line and column for an invalid entry, and for rows of different lengths; ArgumentError for an
    unknown column; OSError.
    """
    name = os.fspath(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            rows = ((reader.line_num, row) for row in reader if row)
            return _read(rows, _Cells(name, dtype_of(dtype), missing), columns, header)
    except csv.Error as error:
        raise ArtifactError(f"{name}: not a CSV file: {error}") from None
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{name}: not UTF-8 text: {error.reason} at byte {error.start}") from None


class _Cells:
    """Parser of entries as numbers of one type, with errors that name line and column."""

    def __init__(self, name: str, dtype: DType, missing: float | None):
        self.name = name
        self.dtype = dtype
        self.missing = missing
        is_integer = dtype.kind in "iu"
        self.limits = (int(np.iinfo(dtype.numpy).min), int(np.iinfo(dtype.numpy).max)) if is_integer else (0, 1)
        self.parse = float if dtype.is_floating_point else int

    def is_number(self, text: str) -> bool:
        """Return whether the entry is a number, or empty."""
        try:
            float(text or "0")
        except ValueError:
            return False
        return "_" not in text

    def number(self, text: str, line: int, column: str) -> float:
        """Return the entry as a number; raises ArtifactError."""
        text = text.strip()
        if not text and self.missing is not None:
            return self.missing
        try:
            if "_" in text:
                raise ValueError
            value = self.parse(text)
        except ValueError:
            what = f"{text!r} is not a {self.dtype.long_name}" if text else "the entry is empty"
            remedy = None if text else "pass missing=0, or another number for empty entries"
            raise ArtifactError(f"{self.name}, line {line}, column {column}: {what}", remedy=remedy) from None
        if self.parse is int and not self.limits[0] <= value <= self.limits[1]:
            raise ArtifactError(
                f"{self.name}, line {line}, column {column}: {value} is out of range for {self.dtype.long_name}"
            )
        return value


def _read(
    rows: Iterator[tuple[int, list[str]]], cells: _Cells, chosen: Sequence[str | int] | None, header: bool | None
) -> Table:
    line, first = next(rows, (0, []))
    if not first:
        raise ArtifactError(f"{cells.name}: the file has no rows")
    named = header if header is not None else not all(cells.is_number(c.strip()) for c in first)
    names = [c.strip() for c in first] if named else [str(i) for i in range(len(first))]
    picked = range(len(names)) if chosen is None else [_column(c, names, cells.name) for c in chosen]
    values: list[list[float]] = []
    if not named:
        values.append([cells.number(first[i], line, names[i]) for i in picked])
    for line, row in rows:
        if len(row) != len(names):
            raise ArtifactError(f"{cells.name}, line {line}: {len(row)} entries, the first line has {len(names)}")
        values.append([cells.number(row[i], line, names[i]) for i in picked])
    array = np.array(values, cells.dtype.numpy).reshape(len(values), len(picked))
    return Table(tuple(names[i] for i in picked), array)


def _column(requested: str | int, names: list[str], source: str) -> int:
    if isinstance(requested, int) and -len(names) <= requested < len(names):
        return requested % len(names)
    if isinstance(requested, int) or names.count(requested) != 1:
        raise ArgumentError(
            f"{source}: there is no unique column {requested!r}", remedy=f"use one of {', '.join(names)}"
        )
    return names.index(requested)
