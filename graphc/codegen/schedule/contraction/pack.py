"""Packed operands: panels of neighbouring lanes, and the nest that copies an operand into them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod
from typing import NamedTuple

from graphc.base.sizes.size import is_size
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.match import Contraction
from graphc.codegen.schedule.contraction.product_of_tiles import rows_are_packed
from graphc.codegen.schedule.contraction.register_block import Tile
from graphc.codegen.schedule.contraction.runs import Run, column_runs, is_partial, row_runs
from graphc.codegen.schedule.loops.transform import block_index, wrap
from graphc.ir.kernel.access import UNIFORM, UNIT, access
from graphc.ir.kernel.index import Axis, Index, as_index, axes_of
from graphc.ir.kernel.map import BodyCopier, Names
from graphc.ir.kernel.statements import Load, Stmt, Store


@dataclass(frozen=True)
class Packing:
    """How a packed operand lies in memory: panels of ``width`` lanes, a row of lanes per point of the reduced axes."""

    load: Load
    buffer: str
    outer: tuple[Axis, ...]
    """Outer axes, other than the vector axis, on which the operand depends."""
    reduced: tuple[Axis, ...]
    vector: Axis
    panels: tuple[Run, ...]
    """(start, count, lanes) of runs of equal panels along the vector axis."""
    room: int
    """Lanes for which the last panel has room, if it is not a whole number of vectors."""
    turned: bool = False
    """Whether a panel has all points of the reduced axes for each lane in a row, instead of a row of lanes for each."""

    @property
    def depth(self) -> int:
        """Rows of lanes in a panel."""
        product = 1
        for x in self.reduced:
            product *= x.extent
        return product

    @property
    def size(self) -> int:
        """Elements of the packed operand."""
        product = self.depth * self._lanes
        for x in self.outer:
            product *= x.extent
        return product

    @property
    def _lanes(self) -> int:
        """Lanes of all panels together."""
        start, number, lanes = self.panels[-1]
        if is_size(self.vector.extent):
            return start + number * lanes
        return max(self.vector.extent, start + self.width(lanes))

    def width(self, lanes: int) -> int:
        """Lanes for which a panel of so many has room."""
        return max(lanes, self.room) if lanes == self.panels[-1][2] else lanes

    def index(self, run: Run, panel: Index, lane: Index, point: dict[Axis, Index]) -> Index:
        """Where the element of a panel's row and lane lies; ``point`` maps outer and reduced axes to indices."""
        start, width = run[0], self.width(run[2])
        position = as_index(0)
        for x in self.outer:
            position = position * x.extent + point[x]
        row = as_index(0)
        for x in self.reduced:
            row = row * x.extent + point[x]
        across = lane * self.depth + row if self.turned else row * width + lane
        within = panel * (self.depth * width) + across
        return position * (self.depth * self._lanes) + start * self.depth + within

    def ahead(self, run: Run, panel: Index, lanes: int, turn: Index, turns: int) -> Index:
        """What to prefetch while a panel is read for the ``turn``-th of ``turns`` times: each turn brings a part of
        the panel which lies ``lanes`` lanes behind it. In terms of the packed operand's axes, as the body of the
        contraction is."""
        row = as_index(0)
        for x in self.reduced:
            row = row * x.extent + x
        part = (run[2] + turns - 1) // turns
        start = self.index(run, panel, as_index(0), {x: as_index(x if x in self.outer else 0) for x in self.axes})
        return start + lanes * self.depth + (turn * self.depth + row) * part

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Axes of the contraction on which the operand depends, except the vector axis."""
        return (*self.outer, *self.reduced)


def make_packing(c: Contraction, tile: Tile, target: Target, buffer: str) -> Packing:
    """The packed layout that suits a tile."""
    assert tile.pack is not None
    used = axes_of(tile.pack.index)
    lanes = target.lanes(c.dtype)
    panels = column_runs(tile.vector.extent, lanes * tile.vectors)
    return Packing(
        tile.pack,
        buffer,
        tuple(x for x in c.outer if x in used and x != tile.vector),
        tuple(x for x in c.reduced if x in used),
        tile.vector,
        tuple(panels),
        _room(c, tile, panels[-1][2], lanes) if target.masked else 0,
    )


class Packed(NamedTuple):
    """What a contraction reads from packed copies."""

    panels: Packing | None = None
    """The operand whose lanes are neighbours."""
    rows: Packing | None = None
    """The one whose elements are broadcast."""


def make_row_packing(c: Contraction, tile: Tile, target: Target, buffer: str) -> Packing | None:
    """The packed layout of the rows of a tile, those of a block next to each other for each step of the sum; None where
    they are read as they lie. A block that reads another line in each step, of so many that the L1 cache does not hold
    them until the next block reads their other parts, waits for these as often as there are panels."""
    other = c.b if tile.vector in axes_of(c.a.index) else c.a
    if tile.row is None or tile.vector not in c.outer or c.a.name == c.b.name:
        return None
    used = axes_of(other.index)
    if tile.steps:
        if not rows_are_packed(c, other, tile.row):
            return None
        outer = tuple(x for x in c.outer if x in used and x != tile.row)
        return Packing(other, buffer, outer, c.reduced, tile.row, tuple(row_runs(tile.row, tile.rows)), 0, turned=True)
    axes = (*c.outer, *c.reduced)
    sized = any(is_size(x.extent) for x in axes) or c.unpacked or c.dtype != other.dtype
    if sized or other.guard or access(other.index, tile.row) != UNIT or access(other.index, tile.vector) != UNIFORM:
        return None
    if tile.row.extent < 2 * tile.rows or not set(c.reduced) <= used or not _rows_wait(c, tile, other, target):
        return None
    outer = tuple(x for x in c.outer if x in used and x != tile.row)
    return Packing(other, buffer, outer, c.reduced, tile.row, tuple(row_runs(tile.row, tile.rows)), 0)


def _rows_wait(c: Contraction, tile: Tile, rows: Load, target: Target) -> bool:
    """Whether to wait for lines of the rows from beyond the L2 cache takes longer than packing them."""
    k, size = target.costs.contraction, rows.dtype.itemsize
    step = min(abs(access(rows.index, x).stride) for x in c.reduced) * size
    if step < target.line_bytes:
        return False
    depth = prod(x.extent for x in c.reduced)
    sets = max(1, target.l1_bytes // target.l1_ways // target.line_bytes)
    reached = sets // gcd(sets, step // target.line_bytes) if step % target.line_bytes == 0 else sets
    if depth <= reached * target.l1_ways * k.ways_used:
        return False
    panels = -(-tile.vector.extent // (tile.vectors * target.lanes(c.dtype)))
    far = tile.row is not None and size * depth * tile.row.extent > target.l2_bytes // 2
    return far and panels * k.llc_read > k.rows_pack_gain * k.pack_element * tile.rows


def _room(c: Contraction, tile: Tile, last: int, lanes: int) -> int:
    """Lanes of the vectors that hold a last panel of more than one vector: all of them are then summed side by side,
    and those beside the panel are not stored. Panels of a width that is known at run time are full."""
    if is_size(tile.vector.extent):
        return 0
    if tile.steps:
        return -(-last // lanes) * lanes
    other = c.b if tile.pack is c.a else c.a
    broadcast = tile.vector not in axes_of(other.index)
    return -(-last // lanes) * lanes if broadcast and last > lanes and last % lanes else 0


def pack_body(p: Packing, names: Names, target: str, source: str) -> tuple[Stmt, ...]:
    """The nest that copies an operand into its packed layout."""
    body: list[Stmt] = []
    for run in p.panels:
        start, number, lanes = run
        partial = is_partial(run, p.vector)
        if partial:  # what is there; the rest is never used
            lanes = p.vector.extent - start
        panel, lane = names.axis("p", number), names.axis("l", lanes)
        axes = {x: names.axis("i", x.extent) for x in (*p.outer, *p.reduced)}
        column = block_index(start, (lane, 1)) if partial else block_index(start, (panel, lanes), (lane, 1))
        copier = BodyCopier(names, {**axes, p.vector: column})
        load = replace(p.load, name=names.scalar("v"), buffer=source, index=copier.index(p.load.index), guard=())
        point = {x: as_index(axis) for x, axis in axes.items()}
        store = Store(target, p.index(run, as_index(panel), as_index(lane), point), load.name)
        inner = [axes[x] for x in p.reduced]
        in_order = access(p.load.index, p.vector) == UNIT  # what is read is walked through once, from end to end
        order = [*(axes[x] for x in p.outer), *([*inner, panel, lane] if in_order else [panel, lane, *inner])]
        body += wrap([(x, "parallel") for x in order], (load, store))
    return tuple(body)
