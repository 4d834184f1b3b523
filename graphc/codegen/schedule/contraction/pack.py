"""Packed operands: panels of contiguous lanes, and the nest that copies an operand into them."""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod
from typing import NamedTuple

from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.match import Contraction
from graphc.codegen.schedule.contraction.product_of_tiles import rows_are_packed
from graphc.codegen.schedule.contraction.register_block import Tile
from graphc.codegen.schedule.contraction.runs import Run, column_runs, is_partial, row_runs
from graphc.codegen.schedule.loops.transform import block_index, wrap
from graphc.ir.kernel.access import UNIFORM, UNIT, access
from graphc.ir.kernel.index import Axis, Index, as_index, axes_of
from graphc.ir.kernel.map import BodyCopier, Names, substitute_axes
from graphc.ir.kernel.statements import Load, Stmt, Store


@dataclass(frozen=True)
class Packing:
    """Layout of a packed operand: panels of ``width`` lanes, with a row of lanes per point of the reduced axes."""

    load: Load
    buffer: str
    outer: tuple[Axis, ...]
    """Outer axes on which the operand depends, except the vector axis."""
    reduced: tuple[Axis, ...]
    vector: Axis
    panels: tuple[Run, ...]
    """(start, count, lanes) of runs of equal panels along the vector axis."""
    room: int
    """Width of the last panel including padding, if its lanes are not a whole number of vectors; else 0."""
    in_panels: bool = False
    """True if the operand is read where it is: it lies in panels of all lanes, each of one or more of ``panels``."""
    turned: bool = False
    """True if a panel is transposed: contiguous points of the reduced axes for each lane."""

    @property
    def depth(self) -> int:
        """Number of rows of lanes in a panel."""
        product = 1
        for x in self.reduced:
            product *= x.extent
        return product

    @property
    def size(self) -> int:
        """Number of elements of the packed operand."""
        product = self.depth * self._lanes
        for x in self.outer:
            product *= x.extent
        return product

    @property
    def _lanes(self) -> int:
        """Number of lanes of all panels together."""
        start, number, lanes = self.panels[-1]
        if is_size(self.vector.extent):
            return start + number * lanes
        return max(self.vector.extent, start + self.width(lanes))

    def width(self, lanes: int) -> int:
        """Return the width, including padding, of a panel of ``lanes`` lanes."""
        return max(lanes, self.room) if lanes == self.panels[-1][2] else lanes

    def index(self, run: Run, panel: Index, lane: Index, point: dict[Axis, Index]) -> Index:
        """Return the index of an element of a panel; ``point`` maps outer and reduced axes to indices."""
        start, width = run[0], self.width(run[2])
        if self.in_panels:
            return substitute_axes(self.load.index, {**point, self.vector: start + panel * width + lane})
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
        """Return the index to prefetch while a panel is read for the ``turn``-th of ``turns`` times.

        Each turn prefetches a part of the panel ``lanes`` lanes ahead. The index is in terms of the axes of the
        contraction, like its body.
        """
        row = as_index(0)
        for x in self.reduced:
            row = row * x.extent + x
        per_turn = (run[2] + turns - 1) // turns
        start = self.index(run, panel, as_index(0), {x: as_index(x if x in self.outer else 0) for x in self.axes})
        lanes = self.vector.extent if self.in_panels else lanes
        return start + lanes * self.depth + (turn * self.depth + row) * per_turn

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Axes of the contraction on which the operand depends, except the vector axis."""
        return (*self.outer, *self.reduced)


def make_packing(c: Contraction, tile: Tile, target: Target, buffer: str) -> Packing:
    """Return the packed layout for a tile."""
    assert tile.pack is not None
    used = axes_of(tile.pack.index)
    lanes = target.lanes(c.dtype)
    panels = column_runs(tile.vector.extent, lanes * tile.vectors)
    return Packing(
        tile.pack,
        tile.pack.buffer if tile.in_panels else buffer,
        tuple(x for x in c.outer if x in used and x != tile.vector),
        tuple(x for x in c.reduced if x in used),
        tile.vector,
        tuple(panels),
        _room(c, tile, panels[-1][2], lanes) if target.masked else 0,
        in_panels=tile.in_panels,
    )


class Packed(NamedTuple):
    """Packed operands of a contraction."""

    panels: Packing | None = None
    """The operand that is read as vectors."""
    rows: Packing | None = None
    """The operand whose elements are broadcast."""


def make_row_packing(c: Contraction, tile: Tile, target: Target, buffer: str) -> Packing | None:
    """Return the packed layout of the rows of a tile, with the rows of a block contiguous for each step of the sum.

    Returns None where packing does not pay. It pays where each step of a block reads another cache line, and L1 does
    not keep the lines until the next block reads the rest of them: the block then waits for them once per panel.
    """
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
    """Check whether waiting for lines of the rows from beyond L2 takes longer than packing the rows."""
    k, size = target.costs.contraction, rows.dtype.itemsize
    step = min(abs(access(rows.index, x).stride) for x in c.reduced) * size
    if step < target.line_bytes:
        return False
    depth = prod(x.extent for x in c.reduced)
    sets = max(1, target.l1_bytes // target.l1_ways // target.line_bytes)
    used_sets = sets // gcd(sets, step // target.line_bytes) if step % target.line_bytes == 0 else sets
    if depth <= used_sets * target.l1_ways * k.ways_used:
        return False
    panels = -(-tile.vector.extent // (tile.vectors * target.lanes(c.dtype)))
    far = tile.row is not None and size * depth * tile.row.extent > target.l2_bytes // 2
    return far and panels * k.llc_read > k.rows_pack_gain * k.pack_element * tile.rows


def _room(c: Contraction, tile: Tile, last: int, lanes: int) -> int:
    """Return the padded width of a last panel of more than one vector; 0 where it needs no padding.

    All its vectors are summed in full, and lanes beyond the panel are not stored. Panels of a width known only at run
    time are full.
    """
    if is_size(tile.vector.extent):
        return 0
    if tile.steps:
        return -(-last // lanes) * lanes
    other = c.b if tile.pack is c.a else c.a
    broadcast = tile.vector not in axes_of(other.index)
    return -(-last // lanes) * lanes if broadcast and last > lanes and last % lanes else 0


def pack_body(p: Packing, names: Names, target: str, source: str) -> tuple[Stmt, ...]:
    """Return the nest that copies an operand into its packed layout."""
    body: list[Stmt] = []
    for run in p.panels:
        start, number, lanes = run
        partial = is_partial(run, p.vector)
        if partial:  # copy the existing lanes only; the padding is never used
            lanes = p.vector.extent - start
        panel, lane = names.axis("p", number), names.axis("l", lanes)
        axes = {x: names.axis("i", x.extent) for x in (*p.outer, *p.reduced)}
        column = block_index(start, (lane, 1)) if partial else block_index(start, (panel, lanes), (lane, 1))
        copier = BodyCopier(names, {**axes, p.vector: column})
        load = replace(p.load, name=names.scalar("v"), buffer=source, index=copier.index(p.load.index), guard=())
        point = {x: as_index(axis) for x, axis in axes.items()}
        store = Store(target, p.index(run, as_index(panel), as_index(lane), point), load.name)
        inner = [axes[x] for x in p.reduced]
        in_order = access(p.load.index, p.vector) == UNIT  # then read the source once, from end to end
        order = [*(axes[x] for x in p.outer), *([*inner, panel, lane] if in_order else [panel, lane, *inner])]
        body += wrap([(x, "parallel") for x in order], (load, store))
    return tuple(body)
