"""Runs of equal blocks along an axis."""

import pytest

from graphc.base.named_dims import Dim, dimensions
from graphc.base.size import always, at
from graphc.codegen.schedule.contraction.runs import column_runs, group_runs, is_partial, row_runs
from graphc.ir.kernel.index import Axis

ROWS = Dim("rows", 1, 500)


def test_column_runs():
    assert column_runs(70, 32) == [(0, 2, 32), (64, 1, 6)]
    assert column_runs(8, 16) == [(0, 1, 8)]
    assert column_runs(32, 16) == [(0, 2, 16)]


def covered(runs, rows: int) -> list[int]:
    """The elements that runs hold when there are so many rows, in order."""
    sizes = {dimensions([ROWS])["rows"]: rows}
    values = [[at(x, sizes) for x in run] for run in runs]
    return [start + i for start, number, size in values for i in range(number * size)]


@pytest.mark.parametrize(
    ("most", "sizes"),
    [(1, [1]), (2, [2, 1]), (3, [3, 1]), (4, [4, 2, 1]), (7, [6, 2, 1]), (14, [12, 4, 2, 1]), (29, [24, 8, 4, 2, 1])],
)
def test_rows_known_at_run_time_are_full_blocks_and_smaller_ones(most: int, sizes: list[int]):
    runs = row_runs(Axis("i", ROWS), most)
    assert [size for _, _, size in runs] == sizes
    for rows in [1, 2, most, most + 1, 37, 499, 500]:
        assert covered(runs, rows) == list(range(rows))
    for start, number, size in runs:
        assert always("<=", 0, number) and always("<=", start + number * size, ROWS)
        assert size == sizes[0] or always("<=", number, 2)


@pytest.mark.parametrize("width", [16, 48])
def test_the_last_panel_of_columns_known_at_run_time_is_full(width: int):
    for columns in [1, 15, 16, 17, 48, 100, 500]:
        runs = column_runs(ROWS, width)
        assert covered(runs, columns) == list(range(-(-columns // width) * width))
    assert [is_partial(run, Axis("j", ROWS)) for run in runs] == [False, True]
    assert not any(is_partial(run, Axis("j", ROWS * width)) for run in column_runs(ROWS * width, width))


def test_groups_known_at_run_time():
    for number in [1, 5, 6, 7, 500]:
        assert covered(group_runs(ROWS, 6), number) == list(range(number))
