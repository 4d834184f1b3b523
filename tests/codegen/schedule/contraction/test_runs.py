"""Runs of equal blocks along an axis."""

import pytest

from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.size import Size, always, at
from graphc.codegen.schedule.contraction.runs import (
    LeftOver,
    column_runs,
    group_runs,
    is_partial,
    remainders,
    row_blocks,
    row_runs,
)
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.index_range import stays_within

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


BATCH, TIME = Dim("batch", 1, 60), Dim("time", 1, 9)


def rows_of(runs, sizes: dict) -> list[list[int]]:
    """The rows of each block for some sizes."""
    found = []
    for run in runs:
        block, row = Axis("r", run.number), Axis("u", run.size)
        place = run.position(block, row)
        for i in range(at(run.number, sizes)):
            found.append([value_of(place, {block: i, row: j}, sizes) for j in range(run.size)])
    return found


def value_of(index, axes: dict, sizes: dict) -> int:
    total = at(index.constant, sizes)
    for atom, coefficient in index.terms:
        value = axes[atom] if atom in axes else value_of(atom.operand, axes, sizes) // at(atom.divisor, sizes)
        total += at(coefficient, sizes) * value
    return total


@pytest.mark.parametrize("rows", [BATCH, 16 * BATCH, 3 * BATCH + 1, BATCH * TIME, BATCH + TIME - 1, BATCH // 2 + 3])
@pytest.mark.parametrize(("most", "last"), [(6, (1, 4, 5)), (8, (5, 7)), (12, (4, 11)), (3, (1, 2)), (2, (1,))])
def test_what_is_left_over_is_one_block(rows: Size, most: int, last: tuple[int, ...]):
    """All rows are in blocks, which lie within them, and only the last one holds some of its rows twice."""
    largest = remainders(rows, most)[-1]
    runs = row_blocks(Axis("i", rows), most, [*(size for size in last if size < largest), largest] if largest else ())
    assert all(isinstance(run, LeftOver) for run in runs[1:])
    for run in runs:
        assert stays_within(run.position(Axis("r", run.number), Axis("u", run.size)), (), rows) is None
    named = dimensions([rows])
    for batch, time in [(1, 1), (2, 1), (3, 4), (5, 1), (7, 3), (12, 9), (13, 1), (59, 8), (60, 9)]:
        sizes = {d: batch if name == "batch" else time for name, d in named.items()}
        number, blocks = at(rows, sizes), rows_of(runs, sizes)
        assert sorted({i for block in blocks for i in block}) == list(range(number))
        assert len(blocks) == -(-number // most)
        assert all(len(set(block)) == most for block in blocks[: number // most])


def test_rows_that_may_be_none_and_blocks_without_sizes_for_the_rest_fall_to_single_rows():
    none = Dim("none", 0, 50)
    for rows, last in ((none, (5, 7)), (BATCH, ())):
        runs = row_blocks(Axis("i", rows), 8, last)
        assert [run.size for run in runs] == [8, 4, 2, 1]


def test_rows_of_a_known_number_are_even_blocks():
    assert [(run.number, run.size) for run in row_blocks(Axis("i", 17), 12, ())] == [(1, 9), (1, 8)]


def test_what_may_be_left_over():
    assert remainders(BATCH, 4) == (0, 1, 2, 3)
    assert remainders(16 * BATCH, 8) == (0,)
    assert remainders(16 * BATCH + 2, 12) == (2, 6, 10)
