"""Runs: an axis as equal blocks side by side, each run with its start, their number and their size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from graphc.base.sizes.size import always, bounds, is_size, terms
from graphc.codegen.schedule.loops.transform import block_index, blocks
from graphc.ir.kernel.index import Axis, Index, as_index

Run = tuple[int, int, int]
"""(start, count, size) of equal parts of an axis. Starts and counts may be sizes that are known at run time."""
_ODD = 3
"""The only odd factor of the rows of a full block, where the number of rows is known at run time. Of 2 to 4 vectors as
many rows fill 16 or 32 registers."""


@dataclass(frozen=True)
class RowRun:
    """Blocks of rows side by side."""

    start: int
    number: int
    size: int

    @property
    def only(self) -> int | None:
        """1 where there are no blocks before, else 0, if that depends on the sizes of a call."""
        return None

    def place(self, block: Axis, row: Axis) -> Index:
        """Where a row of a block lies."""
        return block_index(self.start, (block, self.size), (row, 1))


@dataclass(frozen=True)
class LeftOver(RowRun):
    """One block or none for what is left over from full blocks: as many rows as it has, or fewer, some of which it then
    computes twice."""

    end: int
    """The number of all rows."""
    held: int
    """How many of them it computes, where there is one; 1 or more in any case."""

    @property
    def only(self) -> int | None:
        """See RowRun."""
        most = max(1, bounds(self.start)[1])
        return 1 - (self.start + most - 1) // most

    def place(self, block: Axis, row: Axis) -> Index:
        """Where a row of a block lies: ``held - 1 - floor((size - 1 - row) * held / size)`` from its start on."""
        return self.end - 1 - ((self.size - 1 - as_index(row)) * self.held) // self.size


def row_blocks(row: Axis | None, most: int, last: Sequence[int]) -> Sequence[RowRun]:
    """Blocks of at most ``most`` rows, as even as they can be. Where the number of rows is known at run time these are
    full blocks, and the rows that are left over are one block, of the smallest of the sizes ``last`` that holds them;
    without such sizes, or where there may be no rows at all, ``falling_runs``."""
    if row is None or not is_size(row.extent) or not last or bounds(row.extent)[0] < 1:
        return [RowRun(*run) for run in row_runs(row, most)]
    extent, full = row.extent, row.extent // most
    held = extent - (extent - 1) // most * most
    sizes = [size for size in sorted(last) if always("<=", 0, extent - 1 - ((size - 1) * held) // size)]
    left = remainders(extent, most)
    if not sizes or sizes[-1] < left[-1]:
        return [RowRun(*run) for run in falling_runs(extent, most)]
    runs = [RowRun(0, full, most)]
    for smaller, size in zip((0, *sizes), sizes, strict=False):
        if any(smaller < rest <= size for rest in left):
            number = _has_left(extent, most, smaller + 1) - _has_left(extent, most, size + 1)
            runs.append(LeftOver(full * most, number, size, extent, held))
    return [run for run in runs if run.number != 0]


def remainders(extent: int, most: int) -> tuple[int, ...]:
    """Numbers of rows, below ``most``, that may be left over from blocks of that many."""
    found = terms(extent)
    step = gcd(most, *(c for monomial, c in found if monomial))
    least = sum(c for monomial, c in found if not monomial) % step
    return tuple(range(least, most, step))


def _has_left(extent: int, most: int, number: int) -> int:
    """1 where so many rows or more are left over from blocks of ``most``, else 0."""
    return (extent + most - number) // most - extent // most if number < most else 0


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
