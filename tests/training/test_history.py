"""Histories: columns, rows, the best epoch by its goal, and tables of 80 columns."""

from __future__ import annotations

import math

import pytest

from graphc.errors import ArgumentError
from graphc.training.history import MOST_ROWS, WIDTH, Goal, History


def rows(**columns: list[float | None]) -> list[dict[str, float | None]]:
    """Return a row for each epoch; ``valid_loss`` is the column ``valid.loss``."""
    count = len(next(iter(columns.values())))
    named = {name.replace("valid_", "valid."): values for name, values in columns.items()}
    return [{"epoch": i + 1, **{n: v[i] for n, v in named.items()}, "seconds": 0.5 * i} for i in range(count)]


def test_columns_and_rows():
    history = History(rows(loss=[3.0, None, 1.0], valid_accuracy=[0.5, 0.75, 0.625]))
    assert history.columns == ["loss", "valid.accuracy"] and len(history) == 3
    assert history["loss"][0] == 3.0 and math.isnan(history["loss"][1])
    assert history["seconds"] == [0.0, 0.5, 1.0] and history[-1]["epoch"] == 3
    assert [row["epoch"] for row in history] == [1, 2, 3]
    with pytest.raises(ArgumentError, match="there is no column 'f1'"):
        history["f1"]


@pytest.mark.parametrize(
    ("goal", "column", "best"),
    [
        (None, "valid.loss", 3),
        ("loss", "loss", 2),
        ("valid.accuracy", "valid.accuracy", 1),
        ("min:valid.accuracy", "valid.accuracy", 2),
        ("max:valid.reward", "valid.reward", 3),
        ("valid.reward", "valid.reward", None),
    ],
)
def test_goals(goal: str | None, column: str, best: int | None):
    columns = {"valid_accuracy": [0.9, 0.2, 0.9], "valid_loss": [2.0, None, 1.0], "valid_reward": [1.0, 2.0, 3.0]}
    history = History(rows(loss=[3.0, 1.0, 1.0], **columns), Goal.parse(goal) if goal else None)
    assert history.goal_column == column and history.best_epoch == best


def test_the_first_goal_is_of_validation_data():
    assert History(rows(loss=[1.0], valid_mse=[1.0], valid_mae=[2.0])).goal_column == "valid.mse"
    assert History(rows(cost=[2.0, 1.0])).best_epoch == 2
    assert History().goal_column is None and History().best_epoch is None


@pytest.mark.parametrize("text", ["", "max:", "largest:loss"])
def test_goals_that_are_refused(text: str):
    with pytest.raises(ArgumentError, match="does not name a column"):
        Goal.parse(text)


def test_a_table():
    history = History(rows(loss=[3.0, 1.0], valid_loss=[None, 0.123456]))
    assert str(history).splitlines() == [
        "epoch  loss  valid.loss  seconds",
        "   1      3  not finite        0",
        "   2*     1      0.1235      0.5",
        "* best valid.loss",
    ]
    assert repr(history) == "History(2 epochs: loss, valid.loss)" and str(History()) == "no epochs"


def test_wide_and_long_tables_fit():
    values = [1.0 + i for i in range(500)]
    history = History(rows(**{f"a_long_name_of_a_column_{i}": values for i in range(7)}))
    lines = str(history).splitlines()
    assert max(map(len, lines)) <= WIDTH and len(lines) <= 4 * (MOST_ROWS + 2)
    assert lines[0].startswith("epoch") and lines.count("") == 3
    epochs = [line.split()[0] for line in str(History(rows(loss=values[::-1]))).splitlines()[1:-1]]
    assert epochs[0] == "1" and epochs[-1] == "500*" and len(epochs) <= MOST_ROWS


def test_nothing_to_plot():
    with pytest.raises(ArgumentError, match="no epochs to plot"):
        History().plot()
