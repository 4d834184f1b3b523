"""Packed operands: panels of neighbouring lanes, and the nest that copies an operand into them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphc.base.size import is_size
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.match import Contraction
from graphc.codegen.schedule.contraction.register_block import Tile
from graphc.codegen.schedule.contraction.runs import Run, column_runs, is_partial
from graphc.codegen.schedule.loops.transform import block_index, wrap
from graphc.ir.kernel.access import UNIT, access
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
        within = panel * (self.depth * width) + row * width + lane
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


def _room(c: Contraction, tile: Tile, last: int, lanes: int) -> int:
    """Lanes of the vectors that hold a last panel of more than one vector: all of them are then summed side by side,
    and those beside the panel are not stored. Panels of a width that is known at run time are full."""
    if is_size(tile.vector.extent):
        return 0
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
