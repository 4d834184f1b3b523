"""Nests of tiled contractions: the loops around a register block, the block itself, and the epilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from graphc.base.dtypes import element, number_of
from graphc.base.records import dataclass
from graphc.base.sizes.size import bounds as size_bounds
from graphc.base.sizes.size import hint, is_one, is_size
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.match import Contraction
from graphc.codegen.schedule.contraction.pack import Packed, Packing
from graphc.codegen.schedule.contraction.product_of_tiles import in_tiles
from graphc.codegen.schedule.contraction.register_block import Tile, may_add_in_turn, rows_exceed_l2
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
from graphc.codegen.schedule.loops.transform import block_index, interleave, wrap, write_out
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
"""Statements of the sums; all others are the epilogue."""


@dataclass(frozen=True)
class Piece:
    """Part of a panel that one register block sums."""

    offset: Index
    """Its first lane in the panel."""
    vectors: int
    lanes: int
    around: Axis | None = None
    """The loop over pieces on which the offset depends, if any."""

    @property
    def is_first(self) -> bool:
        """True if the panel begins with it."""
        return self.offset == Index()


def apply_tile(c: Contraction, tile: Tile, kernel: Kernel, target: Target, names: Names, packed: Packed) -> Kernel:
    """Return the kernel with its nest cut into register blocks."""
    body: list[Stmt] = []
    buffers = kernel.buffers
    if tile.last and (tile.row is None or not c.is_repeatable(tile.row)):
        tile = replace(tile, last=())
    groups = [(c, tile)] if packed.rows else _row_groups(c, tile, target, names)  # packed rows are read in order
    for group, block in groups:
        body += _nest(group, block, target, names, packed)
    if tile.vector in c.outer and any(_has_scratch(group, block, target) for group, block in groups):
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
    """Return the contraction with its rows in groups that stay in L2 while each group uses all panels.

    Ungrouped, all rows would come from LLC for each panel. Groups of two sizes give two contractions.
    """
    row, together = tile.row, _rows_together(c.expected, tile.expected, target)
    if row is None or together >= hint(row.extent) or any(_is_near(c, x, tile.vector) for x in c.outer):
        return [(c, tile)]
    groups = []
    if is_size(row.extent):  # full blocks only, so that the smaller blocks of the remainder come after all groups
        together = max(1, together // tile.rows) * tile.rows
    for start, number, size in group_runs(row.extent, together):
        group, inside = names.axis("g", number), names.axis("m", size)
        position = block_index(start, (group, size), (inside, 1))
        rows = max(run.size for run in row_blocks(inside, tile.rows, tile.last))
        groups.append((c.with_axis(row, (group, inside), position), replace(tile, row=inside, rows=rows)))
    return groups


def _rows_together(c: Contraction, tile: Tile, target: Target) -> int:
    """Return the number of rows that use all panels before the next rows do.

    These are all rows, unless a group of rows fits into L2 and reading panels (which are prefetched) from LLC costs
    less than reading all rows from it.
    """
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
    """Return prefetches, before the sums, of elements for the epilogue from loads over more than L1 holds.

    Returns none where several vectors share a cache line, as the line would be prefetched several times.
    """
    if target.vector_bytes < target.line_bytes:
        return []
    loads = [s for s in c.outer_accesses if isinstance(s, Load) and not s.guard and _span(s) > target.l1_bytes]
    return [Prefetch(s.buffer, s.index) for s in loads if access(s.index, tile.vector) == UNIT]


def _is_near(c: Contraction, axis: Axis, vector: Axis) -> bool:
    """Check whether results along ``axis`` are located between the lanes of a vector.

    The loop over the axis then belongs right around the register block, so that neighbouring accesses outside the sum
    find their cache lines still near.
    """
    steps = [
        (abs(hint(access(s.index, axis).stride)), abs(hint(access(s.index, vector).stride))) for s in c.outer_accesses
    ]
    return any(isinstance(s, Store) and 0 < a < v for s, (a, v) in zip(c.outer_accesses, steps, strict=True))


def _passing(c: Contraction, tile: Tile, rest: list[Axis], target: Target) -> list[Axis]:
    """Return the loops to run for each panel while it stays in L1.

    They are moved inside where that reads fewer bytes than reading all panels again in each of their iterations.
    """
    panel, other = (c.b, c.a) if tile.vector in axes_of(c.b.index) else (c.a, c.b)
    loops = [x for x in rest if x not in axes_of(panel.index)]
    turns = prod(hint(x.extent) for x in loops)
    panels = -(-hint(tile.vector.extent) // (tile.vectors * target.lanes(c.dtype)))
    return loops if _span(other) * (panels - 1) < _span(panel) * (turns - 1) else []


def _span(load: Load) -> int:
    """Return the bytes from the first to the last element of a load, for expected sizes."""
    low, high = bounds(expected_index(load.index))
    return (high - low + 1) * load.dtype.itemsize


def _lane_nest(
    c: Contraction, tile: Tile, target: Target, names: Names, packed: Packed, near: list[Axis]
) -> tuple[Stmt, ...]:
    """Return the register blocks in loops over rows and panels.

    Panels are outside, so that one stays in L1 for all rows. Where several panels stay in L2 together, rows are
    outside of these, so that accesses outside the sum are contiguous over longer distances.
    """
    runs = column_runs(tile.vector.extent, target.lanes(c.dtype) * tile.vectors)
    blocks = _Blocks(c, tile, target, names, packed, near)
    if _panels_stay(c, tile, target):
        return blocks.rows_outside([(run, run[1], as_index(0)) for run in runs])
    result: list[Stmt] = []
    for run in runs:
        together = _panels_together(c, tile, run[2], target)
        if together == 1 or is_one(run[1]) or is_partial(run, tile.vector) or (is_size(run[1]) and blocks.is_one_block):
            result += blocks.panels_outside(run)
            continue
        for start, number, size in _panel_groups(run[1], together, target):
            group = names.axis("g", number)
            body = blocks.rows_outside([(run, size, block_index(start, (group, size)))])
            result += wrap([(group, "parallel")], body)
    return tuple(result)


def _panel_groups(number: int, together: int, target: Target) -> list[Run]:
    """Return the panels in groups of at most ``together``.

    A number known only at run time gives one group if it is always small: the code for the last group would otherwise
    be as long as the code for all others.
    """
    few = together * target.costs.contraction.few_groups
    return [(0, 1, number)] if is_size(number) and size_bounds(number)[1] <= few else group_runs(number, together)


@dataclass(frozen=True)
class _Blocks:
    """Builder of the loops over rows and panels around the register blocks of one contraction."""

    c: Contraction
    tile: Tile
    target: Target
    names: Names
    operands: Packed
    near: list[Axis]

    @property
    def packed(self) -> Packing | None:
        """Layout of the operand with packed panels, if any."""
        return self.operands.panels

    def rows_outside(self, panels: list[tuple[Run, int, Index]]) -> tuple[Stmt, ...]:
        """Return loops over rows around loops over panels; ``panels`` are (run, count, first panel)."""
        rows = row_blocks(self.tile.row, self.tile.rows, self.tile.last)
        turns = sum(run.number for run in rows)
        lanes = sum(count * run[2] for run, count, _ in panels)
        result: list[Stmt] = []
        rows_before = 0
        for row_run in rows:
            block = self.names.axis("r", row_run.number)
            inner: list[Stmt] = []
            for run, count, first in panels:
                axis = self.names.axis("p", count)
                bodies: list[tuple[Stmt, ...]] = []
                for piece in self.pieces(run):
                    c = self.c
                    # A call with few rows has nothing but the remainder, which would wait for its own prefetches.
                    few = isinstance(row_run, LeftOver)
                    if self.packed is not None and piece.is_first and self.are_some(lanes) and not few:
                        targets = self.ahead(run, first + axis, lanes, as_index(block) + rows_before, turns)
                        c = self.prefetching(run, targets, turns)
                    bodies.append(self.block(c, run, first + axis, piece, row_run, block))
                inner += wrap([(axis, "parallel")], tuple(s for body in bodies for s in body))
            result += wrap([(block, "parallel")], tuple(inner))
            rows_before += row_run.number
        return tuple(result)

    @property
    def is_one_block(self) -> bool:
        """True if one block has all rows; the order of the loops then does not matter."""
        rows = row_runs(self.tile.row, self.tile.rows)
        return len(rows) == 1 and is_one(rows[0][1])

    def are_some(self, lanes: int) -> bool:
        """Check whether ``lanes`` are fewer than all lanes of the packed operand."""
        return self.packed is not None and hint(lanes * self.packed.depth) < hint(self.packed.size)

    def panels_outside(self, run: Run) -> tuple[Stmt, ...]:
        """Return loops over panels of a run around loops over rows, with prefetches of the next panel."""
        rows = row_blocks(self.tile.row, self.tile.rows, self.tile.last)
        turns = prod(x.extent for x in self.near) * sum(run.number for run in rows)
        panel = self.names.axis("p", run[1])
        inner: list[Stmt] = []
        for piece in self.pieces(run):
            rows_before = 0
            for row_run in rows:
                block = self.names.axis("r", row_run.number)
                turn = as_index(block) + rows_before
                for x in self.near:
                    turn = turn * x.extent + x
                c = self.c
                if self.packed is not None and piece.is_first:
                    targets = self.ahead(run, as_index(panel), run[2], turn, turns, row_run.only)
                    c = self.prefetching(run, targets, turns)
                body = self.block(c, run, as_index(panel), piece, row_run, block)
                inner += wrap([(block, "parallel")], body)
                rows_before += row_run.number
        return wrap([(panel, "parallel")], tuple(inner))

    def ahead(
        self, run: Run, panel: Index, lanes: int, turn: Index, turns: int, only: int | None = None
    ) -> tuple[Index, ...]:
        """Return the indices to prefetch in each step of a sum.

        These are a part of the panel ``lanes`` lanes ahead. If a panel is read only once, they are a fixed number of
        bytes ahead; ``only`` is 1 then, as a size known only at run time.
        """
        assert self.packed is not None
        size, line = self.packed.load.dtype.itemsize, self.target.line_bytes
        here = self.packed.index(run, panel, as_index(0), {x: as_index(x) for x in self.packed.axes})
        later = here + self.target.costs.contraction.prefetch_bytes // size
        every = tuple([later + lane for lane in range(0, run[2], line // size)])
        if hint(turns) == 1:
            return every
        next_panel = self.packed.ahead(run, panel, lanes, turn, turns)
        if not is_size(turns) or only is None:
            return (next_panel,)
        # The only block, of a call with few rows, reads each panel once; after full blocks it prefetches their rest.
        return tuple([then + (next_panel + i * (line // size) - then) * (1 - only) for i, then in enumerate(every)])

    def prefetching(self, run: Run, targets: tuple[Index, ...], turns: int) -> Contraction:
        """Return the contraction with prefetches; without them for hardware tiles, which read panels line by line."""
        if self.packed is None or self.tile.steps:
            return self.c
        return _prefetching(self.c, self.packed, run, targets, turns, self.target)

    def pieces(self, run: Run) -> list[Piece]:
        """Return the pieces in which register blocks sum a panel.

        A panel of known width is summed in whole vectors plus a rest. A partial panel, known only at run time, is
        summed vector by vector; its remainder is one masked vector, or vectors of powers of two.
        """
        lanes = self.target.lanes(self.c.dtype)
        if not is_partial(run, self.tile.vector):
            size = run[2] if self.packed is None else self.packed.width(run[2])
            return [Piece(as_index(start), vectors, width) for start, vectors, width in column_runs(size, lanes)]
        extent = self.tile.vector.extent
        if self.target.masked:
            vector = self.names.axis("v", (extent - run[0] + lanes - 1) // lanes)
            return [Piece(as_index(vector) * lanes, 1, lanes, vector)]
        pieces, end = [], run[0]
        for width in (lanes >> bit for bit in range(lanes.bit_length())):
            vector = self.names.axis("v", (extent // width * width - end) // width)
            pieces.append(Piece(as_index(vector) * width + (end - run[0]), 1, width, vector))
            end = extent // width * width
        return pieces

    def block(
        self, c: Contraction, run: Run, panel: Index, piece: Piece, row_run: RowRun, block: Axis
    ) -> tuple[Stmt, ...]:
        """Return register block number ``block`` of panel ``panel``, inside loops over ``near``."""
        beyond = self.target.masked if piece.around is not None else piece.vectors * piece.lanes > run[2]
        if beyond:
            packed = self.packed.load.name if self.packed else ""
            c = replace(c, body=map_statements(c.body, leaf=lambda s: (_only_within(s, self.tile.vector, packed),)))
        around: list[tuple[Axis, str]] = []
        if piece.around is not None:  # a separate axis for each block, because threads share loops by their axes
            axis = self.names.axis("v", piece.around.extent)
            piece = replace(piece, offset=substitute_axes(piece.offset, {piece.around: axis}), around=axis)
            around.append((axis, "parallel"))
        body = _block(
            c, self.tile, self.target, self.names, run, panel, piece, row_run, block, self.operands, self.near
        )
        return wrap(around, body)


def _only_within(stmt: Stmt, axis: Axis, packed: str) -> Stmt:
    """Guard an access, except the ``packed`` operand's, against lanes of a panel beyond the end of ``axis``."""
    if not isinstance(stmt, Load | Store) or axis not in axes_of(stmt.index):
        return stmt
    if isinstance(stmt, Load) and stmt.name == packed:
        return stmt
    guard = (*stmt.guard, Bound(as_index(axis), 0, axis.extent))
    if isinstance(stmt, Store):
        return replace(stmt, guard=guard)
    return replace(stmt, guard=guard, other=stmt.other or Const(number_of(element(0, stmt.dtype)), stmt.dtype))


def _panels_together(c: Contraction, tile: Tile, width: int, target: Target) -> int:
    """Return the number of panels of short sums that share a part of L2; 1 if a panel does not fit into L1."""
    panel = c.b if tile.vector in axes_of(c.b.index) else c.a
    depth = prod(expected_axis(x).extent for x in c.reduced if x in axes_of(panel.index))
    size = depth * width * panel.dtype.itemsize
    k = target.costs.contraction
    return max(1, int(target.l2_bytes * k.panels_l2) // size) if size <= target.l1_bytes * k.panel_l1 else 1


def _prefetching(
    c: Contraction, packed: Packing, run: Run, indices: tuple[Index, ...], turns: int, target: Target
) -> Contraction:
    """Return the contraction with prefetches at ``indices`` while a panel is read for one of ``turns`` times."""
    k, size, turns = target.costs.contraction, hint(packed.size) * packed.load.dtype.itemsize, hint(turns)
    fits = run[2] * hint(packed.depth) * packed.load.dtype.itemsize <= target.l2_bytes // 2
    next_panel = fits and size > target.l2_bytes * k.prefetched_l2 and 1 < turns <= k.panel_turns
    if c.unpacked:  # unpacking is so slow that needless prefetches cost nothing; weights of many layers are not near
        once = turns == 1 and size > target.l1_bytes
    else:
        once = turns == 1 and size > target.l2_bytes and len(indices) < k.prefetched_lines
    steps = c.reduced[:-1] if packed.load.name == c.unpacked else c.reduced
    if not steps or packed.reduced != steps or not (next_panel or once):
        return c
    first = tuple(Prefetch(packed.buffer, index) for index in indices)
    return replace(c, body=_in_sum(c.body, first, steps[-1]))


def _in_sum(body: tuple[Stmt, ...], first: tuple[Stmt, ...], axis: Axis) -> tuple[Stmt, ...]:
    """Return the body with statements inserted before each step of a sum along ``axis``."""
    if not any(isinstance(s, Loop) for s in body):
        return (*first, *body)
    return map_statements(body, enter=lambda x: (replace(x, body=(*first, *x.body)),) if x.axis == axis else None)


def _panels_stay(c: Contraction, tile: Tile, target: Target) -> bool:
    """Check whether all panels fit into half of L2, and there are enough rows per column for rows to go outside."""
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
    """Return one register block inside loops over ``near``; ``panel`` and ``block`` are the loops around it."""
    start, _, size = run
    k, row = target.costs.contraction, names.axis("u", row_run.size)
    side, lane = names.axis("u", piece.vectors), names.axis("l", piece.lanes)
    within = piece.offset + block_index(0, (side, piece.lanes), (lane, 1))
    before = start if is_partial(run, tile.vector) else panel * size + start
    mapping: dict[Axis, Index] = {tile.vector: before + within}
    if tile.row is not None:
        mapping[tile.row] = row_run.position(block, row)
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
        body = BodyCopier(names, mapping, reads).body(c.body)
        if may_add_in_turn(c, target) and not is_size(sums := row_run.size * piece.vectors):
            body = interleave(body, k.busy_sums // sums, names)
        body = _written_out(c, tile, target, body, names)
        body = wrap([(row, "unroll"), (side, "unroll"), (lane, "vector")], body)
    return wrap([(axis, "parallel") for axis in around.values()], body)


def _reader(packing: Packing, run: Run, panel: Index, lane: Index) -> Callable[[Load, BodyCopier], tuple[str, Index]]:
    """Return a function that maps a load of an operand to (buffer, index) in its packed copy."""

    def read(load: Load, copier: BodyCopier) -> tuple[str, Index]:
        point = {x: as_index(copier.axes.get(x, x)) for x in packing.axes}
        return packing.buffer, packing.index(run, panel, lane, point)

    return read


def _through_scratch(c: Contraction, tile: Tile, target: Target) -> bool:
    """Check whether the epilogue is so long that its code should exist once per row, not once per register.

    Sums then go through scratch memory.
    """
    k = target.costs.contraction
    rest = [s for s in c.body if not isinstance(s, _CORE)]
    if tile.steps:
        return not _is_stored(rest, tile.vector)
    length = sum(k.held_transcendental if isinstance(s, Let) and SCALAR_OPS[s.op].transcendental else 1 for s in rest)
    spread = [s for s in c.outer_accesses if not access(s.index, tile.vector).plain]
    fixed = all(isinstance(s.init, Const) for s in c.body if isinstance(s, Acc))
    # NOTE: LLVM would keep literals of the epilogue's loop in registers during the sum, and move the sums around.
    literals = any(isinstance(a, Const) for s in rest if isinstance(s, Let) for a in s.args)
    long = (length + k.held_scattered * len(spread)) * tile.rows * tile.vectors > k.held_operations
    return fixed and tile.rows >= k.looped_rows and long and not (spread and literals)


def _has_scratch(c: Contraction, tile: Tile, target: Target) -> bool:
    """Check whether a block goes through scratch; with hardware tiles, also if only its last, partial panel does."""
    partial = bool(tile.steps) and tile.vector.extent % target.lanes(c.dtype) != 0
    return partial or _through_scratch(c, tile, target)


def _is_stored(rest: Sequence[Stmt], vector: Axis) -> bool:
    """Check whether the epilogue is one plain store with contiguous lanes."""
    if len(rest) != 1 or not isinstance(rest[0], Store):
        return False
    store = rest[0]
    plain = all(isinstance(x, Axis) for x in atoms(store.index)) and access(store.index, vector) == UNIT
    return plain and not store.guard and store.combine is None


def _rows_are_neighbours(c: Contraction, tile: Tile, lanes: int) -> bool:
    """Check whether all accesses outside the sum are contiguous along rows, but not all along lanes."""
    if tile.row is None or tile.rows > lanes:
        return False
    apart = any(not access(s.index, tile.vector).plain for s in c.outer_accesses)
    return apart and all(access(s.index, tile.row).plain for s in c.outer_accesses)


def _block_through_scratch(
    c: Contraction,
    tile: Tile,
    target: Target,
    names: Names,
    mapping: dict[Axis, Index],
    reads: dict,
    lanes: tuple[Axis, Axis, Axis],
) -> tuple[Stmt, ...]:
    """Return a register block that stores its sums in scratch, and a loop for the epilogue.

    The loop runs over rows, or over vectors where results are contiguous along rows.
    """
    row, side, lane = lanes
    core = tuple(s for s in c.body if isinstance(s, _CORE))
    rest = tuple(s for s in c.body if not isinstance(s, _CORE))
    copier = BodyCopier(names, mapping, reads)
    total = next(s for s in core if isinstance(s, Read))
    dtype = next(s for s in core if isinstance(s, Acc)).dtype
    index = block_index(0, (row, side.extent * lane.extent), (side, lane.extent), (lane, 1))
    sums = copier.body(core) if tile.steps else _written_out(c, tile, target, copier.body(core), names)
    sums = (*sums, Store(SCRATCH, index, copier.renamed[total.name]))
    again = {a: names.axis("e", a.extent) for a in lanes}

    def move(index: Index) -> Index:
        return substitute_axes(index, again)

    after = BodyCopier(names, {a: move(i) for a, i in mapping.items()})
    load = Load(after.define(total.name), SCRATCH, move(index), dtype)
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
    """Cut the innermost reduce loop into vectors and a tail."""

    def enter(loop: Loop) -> tuple[Stmt, ...] | None:
        if not is_leaf(loop):
            return None
        pieces: list[Stmt] = []
        for start, number, size in column_runs(loop.axis.extent, lanes):
            # The last vector may have fewer lanes.
            used = loop.axis.extent - start if is_partial((start, number, size), loop.axis) else size
            step, lane = names.axis("o", number), names.axis("l", used)
            index = block_index(start, (step, size), (lane, 1))
            inner = BodyCopier(names, {loop.axis: index}).body(loop.body)
            pieces += wrap([(step, "reduce"), (lane, "vector")], inner)
        return tuple(pieces)

    return map_statements(body, enter=enter)


def _written_out(c: Contraction, tile: Tile, target: Target, body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Unroll short loops (``write_out``), unless that would make LLVM run out of registers.

    In windows whose neighbouring rows share elements, LLVM would load each element once for all steps and keep too many
    of them. The same holds for loads of the next step where a block and its panel leave few registers and every load
    takes one.
    """
    k = target.costs.contraction
    if tile.row is None or tile.rows < k.looped_rows or c.unpacked:  # unrolled steps share one load of a packed word
        return write_out(body, names, target.costs.loops)
    free_registers = target.registers_of(c.dtype) - (tile.rows + 1) * tile.vectors
    if free_registers < k.window_registers and not target.memory_operands:
        return body
    c, row = c.expected, expected_axis(tile.row)
    a = c.a if row in axes_of(c.a.index) else c.b
    step, across = access(a.index, c.reduced[-1]).stride, access(a.index, row).stride
    shared = step and across and any(i * step % across == 0 for i in range(1, c.reduced[-1].extent))
    return body if shared else write_out(body, names, target.costs.loops)
