"""How large the tile of a sum of products is that one block of threads computes, and how it lies over the threads."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from graphc.base.size import hint
from graphc.codegen.schedule.gpu.sum_of_products import SumOfProducts

PROCESSORS = 132
"""Streaming multiprocessors of an H200 and of an H100 SXM: as many blocks as that keep all of them busy."""
LOADED_PER_CYCLE = 32.0
"""Words of shared memory that a processor reads in a cycle (its banks), from CUDA's programming guide."""
MULTIPLIED_PER_CYCLE = 128.0
"""Multiply-adds in f32 of a processor in a cycle, from the same."""
WAIT_CYCLES = 400.0
"""Cycles from one step over the terms to the next where a processor has one block: about the latency of its memory."""


@dataclass(frozen=True)
class Tile:
    """What a block of threads computes: ``rows`` x ``columns`` results, ``depth`` terms at a time."""

    rows: int
    columns: int
    depth: int
    own_rows: int
    """Rows of the results of one thread."""
    own_columns: int

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return (self.rows // self.own_rows) * (self.columns // self.own_columns)

    @property
    def owned(self) -> int:
        """Results of one thread."""
        return self.own_rows * self.own_columns

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}, {self.depth} terms at a time, {self.own_rows}x{self.own_columns} a thread"


TILES = (
    Tile(128, 128, 8, 8, 8),
    Tile(128, 64, 8, 8, 4),
    Tile(64, 128, 8, 4, 8),
    Tile(64, 64, 16, 4, 4),
    Tile(64, 32, 16, 4, 4),
    Tile(32, 64, 16, 4, 4),
    Tile(32, 32, 16, 4, 2),
    Tile(16, 64, 16, 2, 4),
    Tile(64, 16, 16, 4, 2),
    Tile(16, 16, 16, 2, 2),
    Tile(8, 64, 16, 1, 4),
    Tile(64, 8, 16, 4, 1),
)
"""The tiles to choose from; each is a whole number of warps."""


def choose_tile(found: SumOfProducts, rows: int, columns: int) -> Tile | None:
    """The tile with the least estimated time for so many rows and columns; None where there are too few of them for a
    tile to be of use: less than half of the smallest."""
    rows, columns = hint(rows), hint(columns)
    if min(rows, columns) < 4 or rows * columns < 256:
        return None
    batch, terms = hint(prod(x.extent for x in found.shared)), hint(found.terms)
    wide = max(found.left.dtype.itemsize, found.right.dtype.itemsize, found.acc.dtype.itemsize) > 4
    tiles = [t for t in TILES if not wide or t.owned <= 16]
    return min(tiles, key=lambda t: _cycles(t, rows, columns, batch, terms))


def _cycles(tile: Tile, rows: int, columns: int, batch: int, terms: int) -> float:
    """Estimated cycles of a kernel."""
    blocks = batch * -(-rows // tile.rows) * -(-columns // tile.columns)
    steps = -(-terms // tile.depth)
    products = tile.rows * tile.columns * tile.depth
    multiplied = products / MULTIPLIED_PER_CYCLE
    loaded = products * (1 / tile.own_rows + 1 / tile.own_columns) / LOADED_PER_CYCLE / 4
    step = max(multiplied, loaded) + 0.25 * min(multiplied, loaded)
    together = max(1, min(4, 1024 // tile.threads))
    rounds = -(-blocks // (PROCESSORS * together))
    return rounds * steps * (max(step * min(together, -(-blocks // PROCESSORS)), 0.0) + WAIT_CYCLES)
