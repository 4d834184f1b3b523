"""Contractions cut into register blocks: the loops around a block, the block itself, and what follows the sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from graphc.base.dtypes import element, number_of
from graphc.base.sizes.size import bounds as size_bounds
from graphc.base.sizes.size import hint, is_one, is_size
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.match import Contraction
from graphc.codegen.schedule.contraction.pack import Packed, Packing
from graphc.codegen.schedule.contraction.product_of_tiles import in_tiles
from graphc.codegen.schedule.contraction.register_block import Tile, rows_exceed_l2
from graphc.codegen.schedule.contraction.runs import (
    LeftOver,
    RowRun,
    Run,
    column_runs,
    group_runs,
    is_partial,
    row_blocks,
    row_runs,
)
from graphc.codegen.schedule.loops.transform import block_index, wrap, write_out
from graphc.ir.kernel.access import UNIT, access
from graphc.ir.kernel.expected import expected_axis, expected_index
from graphc.ir.kernel.index import Axis, Index, as_index, atoms, axes_of, bounds
from graphc.ir.kernel.map import BodyCopier, Names, is_leaf, map_statements, substitute_axes
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.kernel.statements import (
    Acc,
    Bound,
    Buffer,
    Const,
    Kernel,
    Let,
    Load,
    Loop,
    Prefetch,
    Read,
    Stmt,
    Store,
)

SCRATCH = "sums"
"""Name of the scratch buffer that holds the sums of one register block."""
_CORE = (Prefetch, Acc, Loop, Read)
"""Statements that make up the sums."""


@dataclass(frozen=True)
class Piece:
    """What is summed side by side of a panel."""

    offset: Index
    """Its first lane in the panel."""
    vectors: int
    lanes: int
    around: Axis | None = None
    """The loop over pieces of which the offset depends."""

    @property
    def is_first(self) -> bool:
        """Whether a panel begins with it."""
        return self.offset == Index()


def apply_tile(c: Contraction, tile: Tile, kernel: Kernel, target: Target, names: Names, packed: Packed) -> Kernel:
    """The kernel with its nest cut into register blocks."""
    body: list[Stmt] = []
    buffers = kernel.buffers
    if tile.last and (tile.row is None or not c.is_repeatable(tile.row)):
        tile = replace(tile, last=())
    parts = [(c, tile)] if packed.rows else _row_groups(c, tile, target, names)  # what is packed comes in order
    for part, block in parts:
        body += _nest(part, block, target, names, packed)
    if tile.vector in c.outer and any(_has_scratch(part, block, target) for part, block in parts):
        size = tile.rows * tile.vectors * target.lanes(c.dtype)
        buffers = (*buffers, Buffer(SCRATCH, c.dtype, size, "scratch"))
    return replace(kernel, buffers=buffers, body=tuple(body))


def _nest(c: Contraction, tile: Tile, target: Target, names: Names, packed: Packed) -> tuple[Stmt, ...]:
    across = tile.vector in c.outer
    rest = [x for x in c.outer if x not in (tile.vector, tile.row, tile.column)]
    near = [x for x in rest if across and _is_near(c, x, tile.vector)]
    if across and not near and not _panels_stay(c, tile, target):
        near = _passing(c, tile, rest, target)
    rest = [x for x in rest if x not in near]
    c = replace(c, body=(*_prefetches_before(c, tile, target), *c.body)) if across and not tile.steps else c
    body = _lane_nest(c, tile, target, names, packed, near) if across else _dot_nest(c, tile, target, names)
    return wrap([(x, "parallel") for x in rest], body)


def _row_groups(c: Contraction, tile: Tile, target: Target, names: Names) -> list[tuple[Contraction, Tile]]:
    """The contraction with its rows in groups, each of which passes by all panels while it stays in L2,
    where all rows would come from LLC for each panel. In two parts where groups are of two sizes."""
    row, together = tile.row, _rows_together(c.expected, tile.expected, target)
    if row is None or together >= hint(row.extent) or any(_is_near(c, x, tile.vector) for x in c.outer):
        return [(c, tile)]
    parts = []
    if is_size(row.extent):  # whole blocks, so that those of what is left over end where its smaller ones begin
        together = max(1, together // tile.rows) * tile.rows
    for start, number, size in group_runs(row.extent, together):
        group, inside = names.axis("g", number), names.axis("m", size)
        place = block_index(start, (group, size), (inside, 1))
        rows = max(run.size for run in row_blocks(inside, tile.rows, tile.last))
        parts.append((c.with_axis(row, (group, inside), place), replace(tile, row=inside, rows=rows)))
    return parts


def _rows_together(c: Contraction, tile: Tile, target: Target) -> int:
    """How many rows to pass by all panels before the next ones do: all, unless those of a group can stay in the second
    cache, and panels, which are prefetched in time, can come from LLC at less cost than all rows."""
    everything = tile.row.extent if tile.row else 1
    if tile.pack is None or tile.row is None or not rows_exceed_l2(c, tile.pack, tile.row, tile.vector, target):
        return everything
    width = tile.vectors * target.lanes(c.dtype)
    panels, depth = -(-tile.vector.extent // width), prod(x.extent for x in c.reduced)
    panel, row = depth * width * tile.pack.dtype.itemsize, depth * c.dtype.itemsize
    k = target.costs.contraction
    together = max(k.panel_rows * tile.rows, int(target.l2_bytes * k.rows_l2) // row)
    groups = -(-everything // together)
    fewer = panels * panel * (groups - 1) < everything * row * (panels - 1)
    alone = _panels_together(c, tile, width, target) == 1 and panel <= target.l2_bytes // 2
    return together if fewer and alone and not _panels_stay(c, tile, target) else everything


def _prefetches_before(c: Contraction, tile: Tile, target: Target) -> list[Prefetch]:
    """Prefetches, before the sums, of rows that are read after them and do not lie in L1 yet; none where several
    vectors share a line, which would be prefetched as often."""
    if target.vector_bytes < target.line_bytes:
        return []
    loads = [s for s in c.beside if isinstance(s, Load) and not s.guard and _span(s) > target.l1_bytes]
    return [Prefetch(s.buffer, s.index) for s in loads if access(s.index, tile.vector) == UNIT]


def _is_near(c: Contraction, axis: Axis, vector: Axis) -> bool:
    """True when results along ``axis`` lie between the lanes of a vector: its loop belongs right around the register
    block, so that what is written (and read beside the sum) is still near when its neighbours are."""
    steps = [(abs(hint(access(s.index, axis).stride)), abs(hint(access(s.index, vector).stride))) for s in c.beside]
    return any(isinstance(s, Store) and 0 < a < v for s, (a, v) in zip(c.beside, steps, strict=True))


def _passing(c: Contraction, tile: Tile, rest: list[Axis], target: Target) -> list[Axis]:
    """Loops that pass by a panel while it stays in L1, where that moves fewer bytes than reading all panels again in
    each of their iterations."""
    panel, other = (c.b, c.a) if tile.vector in axes_of(c.b.index) else (c.a, c.b)
    loops = [x for x in rest if x not in axes_of(panel.index)]
    turns = prod(hint(x.extent) for x in loops)
    panels = -(-hint(tile.vector.extent) // (tile.vectors * target.lanes(c.dtype)))
    return loops if _span(other) * (panels - 1) < _span(panel) * (turns - 1) else []


def _span(load: Load) -> int:
    """Bytes from the first to the last element that a load reads, for the sizes that are expected."""
    low, high = bounds(expected_index(load.index))
    return (high - low + 1) * load.dtype.itemsize


def _lane_nest(
    c: Contraction, tile: Tile, target: Target, names: Names, packed: Packed, near: list[Axis]
) -> tuple[Stmt, ...]:
    """Register blocks over rows and panels. Panels are outside, so that one stays in L1 while all rows pass by it.
    Where several panels stay in L2 together, rows are outside of these, and what is written (and read beside the sum)
    is walked through in longer pieces."""
    runs = column_runs(tile.vector.extent, target.lanes(c.dtype) * tile.vectors)
    write = _Blocks(c, tile, target, names, packed, near)
    if _panels_stay(c, tile, target):
        return write.rows_outside([(run, run[1], as_index(0)) for run in runs])
    result: list[Stmt] = []
    for run in runs:
        together = _panels_together(c, tile, run[2], target)
        if together == 1 or is_one(run[1]) or is_partial(run, tile.vector) or (is_size(run[1]) and write.is_low):
            result += write.panels_outside(run)
            continue
        for start, number, size in _panel_groups(run[1], together, target):
            group = names.axis("g", number)
            body = write.rows_outside([(run, size, block_index(start, (group, size)))])
            result += wrap([(group, "parallel")], body)
    return tuple(result)


def _panel_groups(number: int, together: int, target: Target) -> list[Run]:
    """Panels in groups of at most ``together``; where their number is known at run time all in one if they are few at
    most, for the nest of the last group would be as long as that of all others."""
    few = together * target.costs.contraction.few_groups
    return [(0, 1, number)] if is_size(number) and size_bounds(number)[1] <= few else group_runs(number, together)


@dataclass(frozen=True)
class _Blocks:
    """Writes the loops over rows and panels around the register blocks of one contraction."""

    c: Contraction
    tile: Tile
    target: Target
    names: Names
    operands: Packed
    near: list[Axis]

    @property
    def packed(self) -> Packing | None:
        """The operand whose panels are packed."""
        return self.operands.panels

    def rows_outside(self, panels: list[tuple[Run, int, Index]]) -> tuple[Stmt, ...]:
        """Panels, given as (run, how many, first one), for each block of rows."""
        rows = row_blocks(self.tile.row, self.tile.rows, self.tile.last)
        turns = sum(run.number for run in rows)
        lanes = sum(count * run[2] for run, count, _ in panels)
        result: list[Stmt] = []
        done = 0
        for row_run in rows:
            block = self.names.axis("r", row_run.number)
            inner: list[Stmt] = []
            for run, count, first in panels:
                axis = self.names.axis("p", count)
                bodies: list[tuple[Stmt, ...]] = []
                for piece in self.pieces(run):
                    c = self.c
                    # What is left over is all of a call with few rows, which would wait for what it prefetches.
                    few = isinstance(row_run, LeftOver)
                    if self.packed is not None and piece.is_first and self.are_some(lanes) and not few:
                        places = self.ahead(run, first + axis, lanes, as_index(block) + done, turns)
                        c = self.prefetching(run, places, turns)
                    bodies.append(self.block(c, run, first + axis, piece, row_run, block))
                inner += wrap([(axis, "parallel")], tuple(s for body in bodies for s in body))
            result += wrap([(block, "parallel")], tuple(inner))
            done += row_run.number
        return tuple(result)

    @property
    def is_low(self) -> bool:
        """Whether one block has all rows, so that it is the same which loop is outside."""
        rows = row_runs(self.tile.row, self.tile.rows)
        return len(rows) == 1 and is_one(rows[0][1])

    def are_some(self, lanes: int) -> bool:
        """Whether so many lanes of the packed operand are not all of them."""
        return self.packed is not None and hint(lanes * self.packed.depth) < hint(self.packed.size)

    def panels_outside(self, run: Run) -> tuple[Stmt, ...]:
        """All blocks of rows for each panel of a run; meanwhile the next panel is prefetched."""
        rows = row_blocks(self.tile.row, self.tile.rows, self.tile.last)
        turns = prod(x.extent for x in self.near) * sum(run.number for run in rows)
        panel = self.names.axis("p", run[1])
        inner: list[Stmt] = []
        for piece in self.pieces(run):
            done = 0
            for row_run in rows:
                block = self.names.axis("r", row_run.number)
                turn = as_index(block) + done
                for x in self.near:
                    turn = turn * x.extent + x
                c = self.c
                if self.packed is not None and piece.is_first:
                    places = self.ahead(run, as_index(panel), run[2], turn, turns, row_run.only)
                    c = self.prefetching(run, places, turns)
                body = self.block(c, run, as_index(panel), piece, row_run, block)
                inner += wrap([(block, "parallel")], body)
                done += row_run.number
        return wrap([(panel, "parallel")], tuple(inner))

    def ahead(
        self, run: Run, panel: Index, lanes: int, turn: Index, turns: int, only: int | None = None
    ) -> tuple[Index, ...]:
        """What to prefetch in each step of a sum: a part of the panel ``lanes`` lanes behind, or where a panel is read
        once, what comes a fixed number of bytes later. ``only``: 1 where that is so, which is known at run time."""
        assert self.packed is not None
        size, line = self.packed.load.dtype.itemsize, self.target.line_bytes
        here = self.packed.index(run, panel, as_index(0), {x: as_index(x) for x in self.packed.axes})
        later = here + self.target.costs.contraction.prefetch_bytes // size
        every = tuple([later + lane for lane in range(0, run[2], line // size)])
        if hint(turns) == 1:
            return every
        place = self.packed.ahead(run, panel, lanes, turn, turns)
        if not is_size(turns) or only is None:
            return (place,)
        # The only block, of a call with few rows, reads each panel once; after others it brings what they left.
        return tuple([then + (place + i * (line // size) - then) * (1 - only) for i, then in enumerate(every)])

    def prefetching(self, run: Run, places: tuple[Index, ...], turns: int) -> Contraction:
        """The contraction with prefetches; as it is where tiles read panels in order, line after line."""
        if self.packed is None or self.tile.steps:
            return self.c
        return _prefetching(self.c, self.packed, run, places, turns, self.target)

    def pieces(self, run: Run) -> list[Piece]:
        """What is summed side by side of a panel: all of its vectors where it has room for a whole number of them; of
        one of which only a part is there, known at run time, each vector by itself, and what is left over as lanes of
        a whole one or as powers of two."""
        lanes = self.target.lanes(self.c.dtype)
        if not is_partial(run, self.tile.vector):
            size = run[2] if self.packed is None else self.packed.width(run[2])
            return [Piece(as_index(start), vectors, width) for start, vectors, width in column_runs(size, lanes)]
        extent = self.tile.vector.extent
        if self.target.masked:
            vector = self.names.axis("v", (extent - run[0] + lanes - 1) // lanes)
            return [Piece(as_index(vector) * lanes, 1, lanes, vector)]
        pieces, done = [], run[0]
        for width in (lanes >> bit for bit in range(lanes.bit_length())):
            vector = self.names.axis("v", (extent // width * width - done) // width)
            pieces.append(Piece(as_index(vector) * width + (done - run[0]), 1, width, vector))
            done = extent // width * width
        return pieces

    def block(
        self, c: Contraction, run: Run, panel: Index, piece: Piece, row_run: RowRun, block: Axis
    ) -> tuple[Stmt, ...]:
        """One register block inside loops over ``near``; ``panel`` and ``block`` say which."""
        beyond = self.target.masked if piece.around is not None else piece.vectors * piece.lanes > run[2]
        if beyond:
            held = self.packed.load.name if self.packed else ""
            c = replace(c, body=map_statements(c.body, leaf=lambda s: (_only_within(s, self.tile.vector, held),)))
        around: list[tuple[Axis, str]] = []
        if piece.around is not None:  # of its own for each block: threads share loops by their axes
            axis = self.names.axis("v", piece.around.extent)
            piece = replace(piece, offset=substitute_axes(piece.offset, {piece.around: axis}), around=axis)
            around.append((axis, "parallel"))
        body = _block(
            c, self.tile, self.target, self.names, run, panel, piece, row_run, block, self.operands, self.near
        )
        return wrap(around, body)


def _only_within(stmt: Stmt, axis: Axis, packed: str) -> Stmt:
    """A memory access beside that of the ``packed`` operand, where a panel may have more lanes than there are elements
    along ``axis``."""
    if not isinstance(stmt, Load | Store) or axis not in axes_of(stmt.index):
        return stmt
    if isinstance(stmt, Load) and stmt.name == packed:
        return stmt
    guard = (*stmt.guard, Bound(as_index(axis), 0, axis.extent))
    if isinstance(stmt, Store):
        return replace(stmt, guard=guard)
    return replace(stmt, guard=guard, other=stmt.other or Const(number_of(element(0, stmt.dtype)), stmt.dtype))


def _panels_together(c: Contraction, tile: Tile, width: int, target: Target) -> int:
    """How many panels of short sums share a part of L2; 1 where one does not fit L1."""
    panel = c.b if tile.vector in axes_of(c.b.index) else c.a
    depth = prod(expected_axis(x).extent for x in c.reduced if x in axes_of(panel.index))
    size = depth * width * panel.dtype.itemsize
    k = target.costs.contraction
    return max(1, int(target.l2_bytes * k.panels_l2) // size) if size <= target.l1_bytes * k.panel_l1 else 1


def _prefetching(
    c: Contraction, packed: Packing, run: Run, places: tuple[Index, ...], turns: int, target: Target
) -> Contraction:
    """The contraction with prefetches at ``places`` while a panel is read for one of ``turns`` times."""
    k, size, turns = target.costs.contraction, hint(packed.size) * packed.load.dtype.itemsize, hint(turns)
    fits = run[2] * hint(packed.depth) * packed.load.dtype.itemsize <= target.l2_bytes // 2
    next_panel = fits and size > target.l2_bytes * k.prefetched_l2 and 1 < turns <= k.panel_turns
    if c.unpacked:  # so slowly that nothing is lost if it is near already, as it is not among many of its kind
        once = turns == 1 and size > target.l1_bytes
    else:
        once = turns == 1 and size > target.l2_bytes and len(places) < k.prefetched_lines
    steps = c.reduced[:-1] if packed.load.name == c.unpacked else c.reduced
    if not steps or packed.reduced != steps or not (next_panel or once):
        return c
    first = tuple(Prefetch(packed.buffer, place) for place in places)
    return replace(c, body=_in_sum(c.body, first, steps[-1]))


def _in_sum(body: tuple[Stmt, ...], first: tuple[Stmt, ...], axis: Axis) -> tuple[Stmt, ...]:
    """The body with statements put in front of each step of a sum along ``axis``."""
    if not any(isinstance(s, Loop) for s in body):
        return (*first, *body)
    return map_statements(body, enter=lambda x: (replace(x, body=(*first, *x.body)),) if x.axis == axis else None)


def _panels_stay(c: Contraction, tile: Tile, target: Target) -> bool:
    """True when all panels fit half of L2, and several of them are passed by each block of rows."""
    c, tile = c.expected, tile.expected
    panel = c.b if tile.vector in axes_of(c.b.index) else c.a
    used, size = axes_of(panel.index), panel.dtype.itemsize
    for x in (*c.reduced, tile.vector):
        size *= x.extent if x in used else 1
    if tile.row is None or size > target.l2_bytes // 2:
        return False
    return tile.row.extent > tile.vector.extent * target.costs.contraction.panels_stay_rows


def _block(
    c: Contraction,
    tile: Tile,
    target: Target,
    names: Names,
    run: Run,
    panel: Index,
    piece: Piece,
    row_run: RowRun,
    block: Axis,
    packed: Packed,
    near: list[Axis],
) -> tuple[Stmt, ...]:
    """One register block inside loops over ``near``; ``panel`` and ``block`` are the loops around it."""
    start, _, size = run
    row = names.axis("u", row_run.size)
    side, lane = names.axis("u", piece.vectors), names.axis("l", piece.lanes)
    within = piece.offset + block_index(0, (side, piece.lanes), (lane, 1))
    before = start if is_partial(run, tile.vector) else panel * size + start
    mapping: dict[Axis, Index] = {tile.vector: before + within}
    if tile.row is not None:
        mapping[tile.row] = row_run.place(block, row)
    around = {x: names.axis("n", x.extent) for x in near}
    mapping.update({x: as_index(axis) for x, axis in around.items()})
    reads = {}
    if packed.panels is not None:
        reads[packed.panels.load.name] = _reader(packed.panels, run, panel, within)
    if packed.rows is not None:
        rows = (row_run.start, row_run.number, row_run.size)
        reads[packed.rows.load.name] = _reader(packed.rows, rows, as_index(block), as_index(row))
    if tile.steps and not _through_scratch(c, tile, target):
        body = in_tiles((row, side, lane), BodyCopier(names, mapping, reads).body(c.body), tile.steps, names)
    elif _through_scratch(c, tile, target):
        body = _block_through_scratch(c, tile, target, names, mapping, reads, (row, side, lane))
    else:
        body = _written_out(c, tile, target, BodyCopier(names, mapping, reads).body(c.body), names)
        body = wrap([(row, "unroll"), (side, "unroll"), (lane, "vector")], body)
    return wrap([(axis, "parallel") for axis in around.values()], body)


def _reader(packing: Packing, run: Run, panel: Index, lane: Index) -> Callable[[Load, BodyCopier], tuple[str, Index]]:
    """Where a packed operand is read instead of where it lies."""

    def read(load: Load, copier: BodyCopier) -> tuple[str, Index]:
        point = {x: as_index(copier.axes.get(x, x)) for x in packing.axes}
        return packing.buffer, packing.index(run, panel, lane, point)

    return read


def _through_scratch(c: Contraction, tile: Tile, target: Target) -> bool:
    """True when so much follows the sum that code for it should exist once per row, not once per register."""
    k = target.costs.contraction
    rest = [s for s in c.body if not isinstance(s, _CORE)]
    if tile.steps:
        return not _is_stored(rest, tile.vector)
    length = sum(k.held_transcendental if isinstance(s, Let) and SCALAR_OPS[s.op].transcendental else 1 for s in rest)
    spread = [s for s in c.beside if not access(s.index, tile.vector).plain]
    fixed = all(isinstance(s.init, Const) for s in c.body if isinstance(s, Acc))
    # NOTE: LLVM would keep literals of the loop for what follows in registers during the sum, and move the sums around.
    literals = any(isinstance(a, Const) for s in rest if isinstance(s, Let) for a in s.args)
    long = (length + k.held_scattered * len(spread)) * tile.rows * tile.vectors > k.held_operations
    return fixed and tile.rows >= k.looped_rows and long and not (spread and literals)


def _has_scratch(c: Contraction, tile: Tile, target: Target) -> bool:
    """Whether a block goes through scratch, or one of tiles may where its last panel is not full."""
    partial = bool(tile.steps) and tile.vector.extent % target.lanes(c.dtype) != 0
    return partial or _through_scratch(c, tile, target)


def _is_stored(rest: Sequence[Stmt], vector: Axis) -> bool:
    """Whether nothing follows the sums but that they are stored, lanes side by side."""
    if len(rest) != 1 or not isinstance(rest[0], Store):
        return False
    store = rest[0]
    plain = all(isinstance(x, Axis) for x in atoms(store.index)) and access(store.index, vector) == UNIT
    return plain and not store.guard and store.combine is None


def _rows_are_neighbours(c: Contraction, tile: Tile, lanes: int) -> bool:
    """True when what is written (and read beside the sum) is contiguous along rows but not along lanes."""
    if tile.row is None or tile.rows > lanes:
        return False
    apart = any(not access(s.index, tile.vector).plain for s in c.beside)
    return apart and all(access(s.index, tile.row).plain for s in c.beside)


def _block_through_scratch(
    c: Contraction,
    tile: Tile,
    target: Target,
    names: Names,
    mapping: dict[Axis, Index],
    reads: dict,
    lanes: tuple[Axis, Axis, Axis],
) -> tuple[Stmt, ...]:
    """A register block whose sums are put into a scratch tile, and a loop for what follows: over its rows, or over its
    vectors where results are contiguous along rows."""
    row, side, lane = lanes
    core = tuple(s for s in c.body if isinstance(s, _CORE))
    rest = tuple(s for s in c.body if not isinstance(s, _CORE))
    copier = BodyCopier(names, mapping, reads)
    total = next(s for s in core if isinstance(s, Read))
    dtype = next(s for s in core if isinstance(s, Acc)).dtype
    place = block_index(0, (row, side.extent * lane.extent), (side, lane.extent), (lane, 1))
    sums = copier.body(core) if tile.steps else _written_out(c, tile, target, copier.body(core), names)
    sums = (*sums, Store(SCRATCH, place, copier.renamed[total.name]))
    again = {a: names.axis("e", a.extent) for a in lanes}

    def move(index: Index) -> Index:
        return substitute_axes(index, again)

    after = BodyCopier(names, {a: move(i) for a, i in mapping.items()})
    load = Load(after.define(total.name), SCRATCH, move(place), dtype)
    body = (load, *after.body(rest))
    kinds = [(again[row], "serial"), (again[side], "unroll"), (again[lane], "vector")]
    stepped = tile.row is not None and (row.extent == 1 or mapping[tile.row].coefficient(row) == 1)
    if stepped and _rows_are_neighbours(c, tile, lane.extent):  # reads the tile by a register transpose
        kinds = [(again[side], "serial"), (again[lane], "unroll"), (again[row], "vector")]
    if tile.steps:
        return (*in_tiles(lanes, sums, tile.steps, names), *wrap(kinds, body))
    return (*wrap([(row, "unroll"), (side, "unroll"), (lane, "vector")], sums), *wrap(kinds, body))


def _dot_nest(c: Contraction, tile: Tile, target: Target, names: Names) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for column_run in row_runs(tile.column, tile.vectors):
        for row_run in row_runs(tile.row, tile.rows):
            axes, mapping = [], {}
            for axis, (start, number, size) in ((tile.column, column_run), (tile.row, row_run)):
                block, copy = names.axis("r", number), names.axis("u", size)
                axes.append((block, copy))
                if axis is not None:
                    mapping[axis] = block_index(start, (block, size), (copy, 1))
            body = BodyCopier(names, mapping).body(c.body)
            body = _split_reduction(body, target.lanes(c.dtype), names)
            order = [(axes[0][0], "parallel"), (axes[1][0], "parallel"), (axes[0][1], "unroll"), (axes[1][1], "unroll")]
            result += wrap(order, body)
    return tuple(result)


def _split_reduction(body: tuple[Stmt, ...], lanes: int, names: Names) -> tuple[Stmt, ...]:
    """The innermost reduce loop cut into vectors and a tail."""

    def enter(loop: Loop) -> tuple[Stmt, ...] | None:
        if not is_leaf(loop):
            return None
        pieces: list[Stmt] = []
        for start, number, size in column_runs(loop.axis.extent, lanes):
            used = size
            if is_partial((start, number, size), loop.axis):  # the last vector, of which only a part is there
                used = loop.axis.extent - start
            step, lane = names.axis("o", number), names.axis("l", used)
            index = block_index(start, (step, size), (lane, 1))
            inner = BodyCopier(names, {loop.axis: index}).body(loop.body)
            pieces += wrap([(step, "reduce"), (lane, "vector")], inner)
        return tuple(pieces)

    return map_statements(body, enter=enter)


def _written_out(c: Contraction, tile: Tile, target: Target, body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """``write_out``, but for windows of which neighbouring rows share elements: LLVM would read each element once for
    all steps, and keep more of them than there are registers. So would it with what the next step reads, where a block
    and its panel leave few registers and every load takes one."""
    k = target.costs.contraction
    if tile.row is None or tile.rows < k.looped_rows or c.unpacked:  # a word serves for all steps that are written out
        return write_out(body, names, target.costs.loops)
    left = target.registers - (tile.rows + 1) * tile.vectors
    if left < k.window_registers and not target.memory_operands:
        return body
    c, row = c.expected, expected_axis(tile.row)
    a = c.a if row in axes_of(c.a.index) else c.b
    step, across = access(a.index, c.reduced[-1]).stride, access(a.index, row).stride
    shared = step and across and any(i * step % across == 0 for i in range(1, c.reduced[-1].extent))
    return body if shared else write_out(body, names, target.costs.loops)
