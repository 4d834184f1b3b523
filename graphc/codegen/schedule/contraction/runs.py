"""Runs: an axis as equal blocks side by side, each run with its start, their number and their size."""

from __future__ import annotations

from graphc.base.size import is_size
from graphc.codegen.schedule.loops.transform import blocks
from graphc.ir.kernel.index import Axis

Run = tuple[int, int, int]
"""(start, count, size) of equal parts of an axis. Starts and counts may be sizes that are known at run time."""


def row_runs(row: Axis | None, most: int) -> list[Run]:
    """Blocks of at most ``most`` rows, as even as they can be. Where the number of rows is known at run time: as many
    full ones as there are, then at most one of each power of two."""
    if row is None:
        return [(0, 1, 1)]
    extent = row.extent
    if not is_size(extent):
        return blocks(extent, most)
    runs, start = [(0, extent // most, most)], extent // most * most
    rest = extent - start
    width = 1 << (most - 1).bit_length()
    while width > 1:
        above, width = width, width // 2
        runs.append((start + rest // above * above, rest // width - rest // above * 2, width))
    return [run for run in runs if run[1] != 0]


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


def group_runs(number: int, together: int) -> list[Run]:
    """Groups of at most ``together`` of so many; where the number is known at run time, the last group has that many or
    fewer."""
    if not is_size(number):
        return blocks(number, together)
    full = number // together
    return [(0, full, together), (full * together, 1, number - full * together)]
