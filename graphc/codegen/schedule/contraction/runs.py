"""Runs: an axis as equal blocks side by side, each run with its start, their number and their size."""

from __future__ import annotations

from graphc.base.size import always, is_size
from graphc.codegen.schedule.loops.transform import blocks
from graphc.ir.kernel.index import Axis

Run = tuple[int, int, int]
"""(start, count, size) of equal parts of an axis. Starts and counts may be sizes that are known at run time."""
_ODD = 3
"""The only odd factor of the rows of a full block, where the number of rows is known at run time. Of 2 to 4 vectors as
many rows fill 16 or 32 registers."""


def row_runs(row: Axis | None, most: int) -> list[Run]:
    """Blocks of at most ``most`` rows, as even as they can be, or where the number of rows is known at run time
    ``falling_runs``."""
    if row is None:
        return [(0, 1, 1)]
    return falling_runs(row.extent, most) if is_size(row.extent) else blocks(row.extent, most)


def falling_runs(extent: int, most: int) -> list[Run]:
    """As many full blocks as there are, then of each smaller size as many as fit into the rest, down to single rows.
    What starts at a multiple of one size starts at a multiple of all that follow."""
    runs, done, size = [], 0, even_rows(most)
    while True:
        until = extent // size * size
        runs.append((done, (until - done) // size, size))
        if size == 1:
            return [run for run in runs if run[1] != 0]
        done, size = until, size // _ODD if size % _ODD == 0 else size // 2


def even_rows(most: int) -> int:
    """The largest number of rows, at most ``most``, of a full block where the number of rows is known at run time: a
    power of two, or _ODD times one, so that each smaller block divides the one before it."""
    power = 1 << (most.bit_length() - 1)
    return max(power, power // 2 * _ODD if power // 2 * _ODD <= most else 1)


def column_runs(extent: int, width: int) -> list[Run]:
    """Full panels, then the rest; where the number of columns is known at run time, the last one is full, too, or there
    is none, and not all of it is used."""
    runs: list[Run] = []
    full = extent // width
    if full != 0:
        runs.append((0, full, width))
    rest = extent - full * width
    if is_size(rest):
        runs.append((full * width, (rest + width - 1) // width, width))
    elif rest:
        runs.append((full * width, 1, rest))
    return runs


def is_partial(run: Run, axis: Axis) -> bool:
    """Whether the last of these panels has lanes beyond the end of ``axis``, known at run time."""
    return is_size(axis.extent) and not always("<=", run[0] + run[1] * run[2], axis.extent)


def group_runs(number: int, together: int) -> list[Run]:
    """Groups of at most ``together`` of so many; where the number is known at run time, the last group has that many or
    fewer."""
    if not is_size(number):
        return blocks(number, together)
    full = number // together
    return [(0, full, together), (full * together, 1, number - full * together)]
