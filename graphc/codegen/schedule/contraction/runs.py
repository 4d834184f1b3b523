"""Runs: an axis cut into consecutive equal blocks, each run with its start, count and size of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from graphc.base.records import dataclass
from graphc.base.sizes.size import always, bounds, is_size, terms
from graphc.codegen.schedule.loops.transform import block_index, blocks
from graphc.ir.kernel.index import Axis, Index, as_index

Run = tuple[int, int, int]
"""(start, count, size) of equal blocks of an axis. Starts and counts may be sizes known only at run time."""
_ODD = 3
"""The only odd factor of the rows of a full block, where the number of rows is known only at run time. Blocks of 2 to 4
vectors with such row counts fill 16 or 32 registers."""


@dataclass(frozen=True)
class RowRun:
    """Consecutive blocks of ``size`` rows."""

    start: int
    number: int
    size: int

    @property
    def only(self) -> int | None:
        """1 where the run has no blocks before it, else 0; None unless that depends on the sizes of a call."""
        return None

    def position(self, block: Axis, row: Axis) -> Index:
        """Return the position of a row of a block along the axis."""
        return block_index(self.start, (block, self.size), (row, 1))


@dataclass(frozen=True)
class LeftOver(RowRun):
    """At most one block, for the remainder of rows after full blocks: up to ``size`` rows; if fewer, it computes some
    twice."""

    end: int
    """The total number of rows."""
    present: int
    """The number of rows in the remainder; at least 1 in any case."""

    @property
    def only(self) -> int | None:
        """1 where no full blocks come before the remainder, else 0."""
        most = max(1, bounds(self.start)[1])
        return 1 - (self.start + most - 1) // most

    def position(self, block: Axis, row: Axis) -> Index:
        """Return the position of a row of the block along the axis.

        From the block's start this is ``present - 1 - floor((size - 1 - row) * present / size)``.
        """
        return self.end - 1 - ((self.size - 1 - as_index(row)) * self.present) // self.size


def row_blocks(row: Axis | None, most: int, last: Sequence[int]) -> Sequence[RowRun]:
    """Return blocks of at most ``most`` rows, as even as possible.

    Where the number of rows is known only at run time, these are full blocks and one block for the remainder, of the
    smallest of the sizes ``last`` that holds it. Without such sizes, or where there may be no rows, this returns
    ``falling_runs``.
    """
    if row is None or not is_size(row.extent) or not last or bounds(row.extent)[0] < 1:
        return [RowRun(*run) for run in row_runs(row, most)]
    extent, full = row.extent, row.extent // most
    present = extent - (extent - 1) // most * most
    sizes = [size for size in sorted(last) if always("<=", 0, extent - 1 - ((size - 1) * present) // size)]
    possible = remainders(extent, most)
    if not sizes or sizes[-1] < possible[-1]:
        return [RowRun(*run) for run in falling_runs(extent, most)]
    runs = [RowRun(0, full, most)]
    for smaller, size in zip((0, *sizes), sizes, strict=False):
        if any(smaller < rest <= size for rest in possible):
            number = _has_remainder(extent, most, smaller + 1) - _has_remainder(extent, most, size + 1)
            runs.append(LeftOver(full * most, number, size, extent, present))
    return [run for run in runs if run.number != 0]


def remainders(extent: int, most: int) -> tuple[int, ...]:
    """Return the possible values of ``extent % most``."""
    monomials = terms(extent)
    step = gcd(most, *(c for monomial, c in monomials if monomial))
    least = sum(c for monomial, c in monomials if not monomial) % step
    return tuple(range(least, most, step))


def _has_remainder(extent: int, most: int, number: int) -> int:
    """Return 1 if at least ``number`` rows remain after full blocks of ``most``, else 0 (as a size)."""
    return (extent + most - number) // most - extent // most if number < most else 0


def row_runs(row: Axis | None, most: int) -> list[Run]:
    """Return blocks of at most ``most`` rows, as even as possible; ``falling_runs`` for sizes known only at run
    time."""
    if row is None:
        return [(0, 1, 1)]
    return falling_runs(row.extent, most) if is_size(row.extent) else blocks(row.extent, most)


def falling_runs(extent: int, most: int) -> list[Run]:
    """Return the full blocks, then of each smaller size as many as fit into the remainder, down to single rows.

    A block that starts at a multiple of one size starts at a multiple of all smaller sizes.
    """
    runs, start, size = [], 0, even_rows(most)
    while True:
        end = extent // size * size
        runs.append((start, (end - start) // size, size))
        if size == 1:
            return [run for run in runs if run[1] != 0]
        start, size = end, size // _ODD if size % _ODD == 0 else size // 2


def even_rows(most: int) -> int:
    """Return the rows of a full block, at most ``most``, where the number of rows is known only at run time.

    This is a power of two, or _ODD times one: each smaller block divides the larger one before it.
    """
    power = 1 << (most.bit_length() - 1)
    return max(power, power // 2 * _ODD if power // 2 * _ODD <= most else 1)


def column_runs(extent: int, width: int) -> list[Run]:
    """Return the full panels, then the remainder.

    Where the number of columns is known only at run time, the last panel is full width, too (or absent), and not all of
    it is used.
    """
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
    """Check whether the last of these panels may have lanes beyond the end of ``axis``, known only at run time."""
    return is_size(axis.extent) and not always("<=", run[0] + run[1] * run[2], axis.extent)


def group_runs(number: int, together: int) -> list[Run]:
    """Return groups of at most ``together`` out of ``number``; for a number known only at run time, full groups and one
    last group."""
    if not is_size(number):
        return blocks(number, together)
    full = number // together
    return [(0, full, together), (full * together, 1, number - full * together)]
