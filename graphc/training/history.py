"""History of a training: measures of each epoch, as columns, as a table, and as a picture."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass
from graphc.training.picture import Chart, draw

VALID = "valid."
"""Prefix of the columns that were measured on validation data."""
HIGHER_IS_BETTER = frozenset({"accuracy", "auroc", "f1", "precision", "r2", "recall", "top5"})
LOWER_IS_BETTER = frozenset({"cross_entropy", "error", "loss", "mae", "mse", "perplexity", "rmse"})
WIDTH = 80
MOST_ROWS = 24
"""Rows of a printed table; it leaves out others."""
_BESIDE = ("epoch", "seconds")


@dataclass(frozen=True)
class Goal:
    """Column whose best value makes an epoch the best one."""

    column: str | None = None
    """None: the loss on validation data, or else the first column of those, or else the loss."""
    is_higher_better: bool | None = None
    """None: as the name says, ``accuracy`` for example."""

    @classmethod
    def parse(cls, text: str) -> Goal:
        """Read ``NAME``, ``min:NAME`` or ``max:NAME``. Raises ArgumentError."""
        kind, colon, name = text.rpartition(":")
        if not name or (colon and kind not in ("min", "max")):
            raise ArgumentError(
                f"{text!r} does not name a column", remedy="use a name such as valid.loss, or max:valid.reward"
            )
        return cls(name, kind == "max" if colon else None)


class History(Sequence[Mapping[str, Any]]):
    """Measures of each epoch: ``history["valid.loss"]`` is a column, ``history[-1]`` the row of the last epoch.

    ``str(history)`` is a table that fits into 80 columns, with a star at the best epoch. ``plot`` draws a chart for
    each measure, on the training and the validation data. ``rows`` are dictionaries with ``epoch`` (from 1), the
    measures (None if not finite), and ``seconds`` since the start of the training.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]] = (), goal: Goal | None = None):
        self.rows = list(rows)
        self.goal = goal or Goal()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, str):
            return self.rows[index]
        if index not in self.columns and index not in _BESIDE:
            raise ArgumentError(f"there is no column {index!r}", remedy=f"use one of {', '.join(self.columns)}")
        values = [row.get(index) for row in self.rows]
        return [math.nan if value is None else value for value in values]

    @property
    def columns(self) -> list[str]:
        """Names of the measures."""
        return [name for name in dict.fromkeys(n for row in self.rows for n in row) if name not in _BESIDE]

    @property
    def goal_column(self) -> str | None:
        """Column that says which epoch is the best; None without epochs."""
        columns = self.columns
        if self.goal.column is not None or not columns:
            return self.goal.column
        valid = [name for name in columns if name.startswith(VALID)]
        loss = f"{VALID}{columns[0]}"
        return loss if loss in valid else (valid or columns)[0]

    @property
    def is_higher_better(self) -> bool | None:
        """Whether higher values of the goal's column are better; None if nothing says so."""
        column, columns = self.goal_column, self.columns
        if self.goal.is_higher_better is not None or column is None:
            return self.goal.is_higher_better
        name = column.removeprefix(VALID)
        kind = name.rpartition(".")[2]
        if kind in HIGHER_IS_BETTER:
            return True
        return False if kind in LOWER_IS_BETTER or name == columns[0] else None

    @property
    def best_epoch(self) -> int | None:
        """Number of the best epoch, from 1; of equal ones the first. None if no value is finite, or if nothing says
        whether higher values are better."""
        column, is_higher = self.goal_column, self.is_higher_better
        finite = [row for row in self.rows if row.get(column) is not None] if column else []
        if not finite or is_higher is None:
            return None
        sign = -1 if is_higher else 1
        return min(finite, key=lambda row: sign * row[str(column)])["epoch"]

    def check_goal(self) -> None:
        """Raise ArgumentError unless the column of the goal exists, and its best value is known."""
        column = self.goal_column
        if column not in self.columns:
            raise ArgumentError(
                f"there is no column {column!r} that says which epoch is the best",
                remedy=f"use one of {', '.join(self.columns)}",
            )
        if self.is_higher_better is None:
            raise ArgumentError(
                f"nothing says whether a higher {column} is better or worse",
                remedy=f"name the column with its direction: 'max:{column}' or 'min:{column}'",
            )

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the columns over the epochs.

        Args:
            path: file to write: ``.svg`` is drawn by graphc alone; other formats, such as ``.png``, by matplotlib.

        Returns:
            Without a path: a figure of ``matplotlib.pyplot``, or where matplotlib is not installed a picture that
            notebooks show.

        Raises:
            ArgumentError: no epochs, or a format that needs matplotlib, which is not installed.
        """
        if not self.rows:
            raise ArgumentError("the history has no epochs to plot", remedy="train for one epoch first")
        charts: dict[str, Chart] = {}
        for name in self.columns:
            label = "valid" if name.startswith(VALID) else "train"
            charts.setdefault(name.removeprefix(VALID), {})[label] = self[name]
        return draw(charts, self["epoch"], self.best_epoch, path)

    def __repr__(self) -> str:
        return f"History({len(self)} epochs: {', '.join(self.columns)})"

    def __str__(self) -> str:
        if not self.rows:
            return "no epochs"
        rows = self._rows_to_print()
        best = self.best_epoch
        first = ["epoch", *(f"{row['epoch']}{'*' if row['epoch'] == best else ' '}" for row in rows)]
        cells = [[name, *(_number(row.get(name)) for row in rows)] for name in [*self.columns, "seconds"]]
        blocks = [[first]]
        for column in cells:
            if sum(_width(c) + 2 for c in [*blocks[-1], column]) - 2 > WIDTH and len(blocks[-1]) > 1:
                blocks.append([first])
            blocks[-1].append(column)
        text = "\n\n".join(_aligned(block) for block in blocks)
        return text if best is None else f"{text}\n* best {self.goal_column}"

    def _rows_to_print(self) -> list[Mapping[str, Any]]:
        """Return all rows, or about ``MOST_ROWS`` evenly, with the first, the best and the last one."""
        count = len(self.rows)
        if count <= MOST_ROWS:
            return self.rows
        step = -(-count // (MOST_ROWS - 2))
        chosen = {*range(0, count, step), count - 1}
        chosen |= {i for i, row in enumerate(self.rows) if row["epoch"] == self.best_epoch}
        return [self.rows[i] for i in sorted(chosen)]


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"


def _width(column: Sequence[str]) -> int:
    return max(map(len, column))


def _aligned(columns: Sequence[Sequence[str]]) -> str:
    """Return the text of columns, each aligned to the right."""
    widths = [_width(column) for column in columns]
    rows = zip(*columns, strict=True)
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)
