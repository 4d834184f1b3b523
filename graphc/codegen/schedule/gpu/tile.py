"""Choice of the tile of a sum of products that one thread block computes, and of its distribution over threads."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from graphc.base.sizes.size import hint
from graphc.codegen.machine.cuda.costs import TileCosts
from graphc.codegen.schedule.gpu.sum_of_products import SumOfProducts

WORD = 4
"""Bytes of a register."""


@dataclass(frozen=True)
class Tile:
    """Tile of a thread block: ``rows`` x ``columns`` results, ``depth`` terms at a time."""

    rows: int
    columns: int
    depth: int
    own_rows: int
    """Rows of the results of one thread."""
    own_columns: int

    @property
    def threads(self) -> int:
        """Number of threads of the block."""
        return (self.rows // self.own_rows) * (self.columns // self.own_columns)

    @property
    def owned(self) -> int:
        """Number of results of one thread."""
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
"""Candidate tiles; each is a whole number of warps."""


def choose_tile(
    match: SumOfProducts, rows: int, columns: int, costs: TileCosts, most_parts: int = 1
) -> tuple[Tile, int] | None:
    """Return (tile, number of segments of the terms) with the least estimated time.

    Returns None where there are too few rows, columns or results for a tile to be of use.
    """
    rows, columns = hint(rows), hint(columns)
    if min(rows, columns) < costs.least_side or rows * columns < costs.least_results:
        return None
    batch, terms = hint(prod(x.extent for x in match.shared)), hint(match.terms)
    wide = max(match.left.dtype.itemsize, match.right.dtype.itemsize, match.acc.dtype.itemsize) > WORD
    tiles = [t for t in TILES if not wide or t.owned <= costs.wide_owned]
    most = max(1, min(most_parts, terms // costs.part_terms))
    candidates = [
        (t, segments)
        for t in tiles
        for segments in [1 << i for i in range(most.bit_length())]
        if segments == 1 or batch * _blocks(t, rows, columns) < costs.processors
    ]
    return min(candidates, key=lambda candidate: _cycles(*candidate, rows, columns, batch, terms, costs))


def _blocks(tile: Tile, rows: int, columns: int) -> int:
    return -(-rows // tile.rows) * -(-columns // tile.columns)


def _cycles(tile: Tile, segments: int, rows: int, columns: int, batch: int, terms: int, costs: TileCosts) -> float:
    """Return the estimated cycles of a kernel, plus the cycles to add the sums of its segments."""
    blocks = segments * batch * _blocks(tile, rows, columns)
    products = tile.rows * tile.columns * tile.depth
    multiplied = products / costs.multiplied
    loaded = products * (1 / tile.own_rows + 1 / tile.own_columns) / (costs.loaded * costs.read_together)
    step = max(multiplied, loaded) + costs.overlap * min(multiplied, loaded)
    most = max(1, min(costs.resident_blocks, costs.resident_threads // tile.threads))
    rounds = -(-blocks // (costs.processors * most))
    together = min(most, -(-blocks // costs.processors))
    summed = rounds * -(-terms // (segments * tile.depth)) * (step * together + costs.wait)
    if segments == 1:
        return summed
    moved = 2 * WORD * segments * batch * rows * columns / costs.processors
    return summed + costs.launch + moved / costs.part_bytes
