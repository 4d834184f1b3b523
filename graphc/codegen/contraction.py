"""Contractions: recognises a sum of products in a nest and tiles it into register blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphc.codegen.loops import BodyCopier, Names, block_index, blocks, wrap
from graphc.codegen.target import Target
from graphc.codegen.vectorise import lane_stride
from graphc.ir.index import Axis, Dynamic, Index, as_index, atoms, axes_of, substitute
from graphc.ir.kernel import Acc, Buffer, Const, Kernel, Let, Load, Loop, Read, Stmt, Store, Update
from graphc.ir.scalar import SCALAR_OPS

SCRATCH = "sums"
"""Name of the scratch buffer that holds the sums of one register block."""
_HELD, _LONG = 448, 24
"""Operations after the sum, over all registers of a block, that are emitted with the sums in registers; and how many a
transcendental function counts for."""
_LINE, _PAGE = 64, 4096
"""Bytes of a cache line and of a page."""
_SHORT = 8
"""A last reduced axis of at most this extent is written out instead of looped over."""


@dataclass(frozen=True)
class Contraction:
    """``acc += a * b`` summed over ``reduced`` for every point of ``outer``; ``body`` holds it and what is done
    with it."""

    outer: tuple[Axis, ...]
    reduced: tuple[Axis, ...]
    a: Load
    b: Load
    body: tuple[Stmt, ...]
    beside: tuple[Load | Store, ...]
    """Memory accesses of the body outside of the sum, once per point."""


def find_contraction(kernel: Kernel) -> Contraction | None:
    """The contraction that makes up the whole kernel, or None."""
    outer: list[Axis] = []
    body = kernel.body
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "parallel":
        outer.append(body[0].axis)
        body = body[0].body
    loops = [s for s in body if isinstance(s, Loop)]
    if not outer or len(loops) != 1 or sum(isinstance(s, Acc) for s in body) != 1:
        return None
    reduced: list[Axis] = []
    inner: tuple[Stmt, ...] = (loops[0],)
    while len(inner) == 1 and isinstance(inner[0], Loop) and inner[0].kind == "reduce":
        reduced.append(inner[0].axis)
        inner = inner[0].body
    pair = _product(inner)
    if pair is None:
        return None
    beside = tuple(s for s in body if isinstance(s, (Load, Store)))
    return Contraction(tuple(outer), tuple(reduced), *pair, body, beside)


def _product(inner: tuple[Stmt, ...]) -> tuple[Load, Load] | None:
    """The two loads, when the innermost body is nothing but ``acc += load * load``."""
    loads = {s.name: s for s in inner if isinstance(s, Load)}
    updates = [s for s in inner if isinstance(s, Update)]
    products = [s for s in inner if isinstance(s, Let)]
    if len(updates) != 1 or len(products) != 1 or len(inner) != len(loads) + 2 or products[0].op != "mul":
        return None
    a, b = (loads.get(x) if isinstance(x, str) else None for x in products[0].args)
    if a is None or b is None or updates[0].value != products[0].name or products[0].dtype.kind != "f":
        return None
    if any(isinstance(x, Dynamic) for s in (a, b) for x in atoms(s.index)):
        return None
    return a, b


@dataclass(frozen=True)
class Tile:
    """A register block. ``rows`` copies read ``a`` once for all columns; ``columns`` run across lanes (or copies)."""

    cycles: float
    """Estimated time of the whole contraction."""
    vector: Axis
    """Axis across lanes: one of ``outer``, or the last of ``reduced`` (products summed lane by lane)."""
    row: Axis | None
    column: Axis | None
    """Second unrolled axis when lanes run along a reduced axis."""
    rows: int
    vectors: int
    """Vectors side by side along ``vector`` (or columns, when lanes run along a reduced axis)."""
    pack: Load | None = None
    """A load that must first be copied so that its lanes are neighbours."""


def choose_tile(c: Contraction, target: Target, free: frozenset[str] = frozenset()) -> Tile | None:
    """The register block with the lowest estimated time; None when nothing fits. Packing costs nothing for the
    buffers ``free`` (constants)."""
    tiles: list[Tile] = []
    for a, b in ((c.a, c.b), (c.b, c.a)):
        for axis in c.outer:
            stride = lane_stride(b.index, axis)
            if lane_stride(a.index, axis) != 0 or stride in (0, None) or b.guard:
                continue
            tiles.extend(_lane_tiles(c, a, b, axis, target, free))
    tiles.extend(_dot_tiles(c, target))
    return min(tiles, key=lambda t: t.cycles, default=None)


def _row_axes(c: Contraction, a: Load, b: Load) -> list[Axis | None]:
    """Axes along which ``b`` stays and ``a`` moves."""
    found = [x for x in c.outer if x not in axes_of(b.index) and x in axes_of(a.index)]
    return list(found) or [None]


def _lane_tiles(c: Contraction, a: Load, b: Load, axis: Axis, target: Target, free: frozenset[str]) -> list[Tile]:
    """Lanes along an outer axis: rows of ``a`` are broadcast, vectors of ``b`` are shared by the rows."""
    lanes = target.lanes(b.dtype)
    points = 1.0
    for x in c.outer:
        points *= x.extent
    scattered = [s for s in c.beside if lane_stride(s.index, axis) not in ((1,) if isinstance(s, Store) else (0, 1))]
    tiles = []
    for row in _row_axes(c, a, b):
        extent = row.extent if row else 1
        for vectors in (1, 2, 3, 4, 6, 8):
            room = (target.registers - 2 - vectors) // vectors
            if room < 1 or (vectors > 1 and (vectors - 1) * lanes >= axis.extent):
                continue
            rows = max(size for _, _, size in blocks(extent, room))
            used = _used_lanes(axis.extent, lanes)
            factor = _row_conflicts(a, row, rows) * _page_misses(c, a, target)
            tile = Tile(0.0, axis, row, None, rows, vectors)
            for pack in (None, b):
                if pack is None and lane_stride(b.index, axis) != 1:
                    continue
                step = _step_cycles(rows, vectors, _panel_read(c, b, vectors, target, pack is not None))
                cycles = _work(c) / (rows * vectors * lanes * used) * step * factor
                cycles += _scatter_cycles(scattered, row, points)
                cycles += 0.0 if pack is None else _packing_cycles(c, b, axis, free)
                tiles.append(replace(tile, cycles=cycles, pack=pack))
    return tiles


def _scatter_cycles(accesses: Sequence[Load | Store], row: Axis | None, points: float) -> float:
    """Time of accesses whose lanes lie apart: register transposes when rows are neighbours, else element by element."""
    side_by_side = [row is not None and row.extent >= 4 and lane_stride(s.index, row) == 1 for s in accesses]
    return points * sum(0.5 if fine else 1.5 for fine in side_by_side)


def _work(c: Contraction) -> float:
    """Multiply-adds."""
    work = 1.0
    for x in (*c.outer, *c.reduced):
        work *= x.extent
    return work


def _step_cycles(rows: int, vectors: int, read: float) -> float:
    """Cycles of one step of the sum: two multiply-adds at a time, at least the latency of one chain, and the reads of
    the rows (from the first cache) and of the panel (``read`` cycles a vector)."""
    return max(rows * vectors / 2.0, 4.0, rows * 0.5 + vectors * read)


def _packing_cycles(c: Contraction, b: Load, axis: Axis, free: frozenset[str]) -> float:
    """Time to copy an operand: a plain copy, a register transpose, or element by element."""
    if b.buffer in free:
        return 0.0
    elements = 1.0
    for x in (*c.outer, *c.reduced):
        elements *= x.extent if x in axes_of(b.index) else 1
    if lane_stride(b.index, axis) == 1:
        return 200.0 + 0.6 * elements
    transposable = any(lane_stride(b.index, x) == 1 and x.extent >= 16 for x in c.reduced)
    return 400.0 + (1.2 if transposable else 4.0) * elements


def _panel_read(c: Contraction, b: Load, vectors: int, target: Target, packed: bool) -> float:
    """Cycles to read a vector of a panel, which every block of rows reads again. Unpacked, its rows may lie a large
    power of two apart, share few sets of a cache, and so be read from farther away than their size suggests."""
    steps = [abs(lane_stride(b.index, x) or 0) * b.dtype.itemsize for x in c.reduced]
    lines = vectors
    for x in c.reduced:
        lines *= x.extent
    step = min((s for s in steps if s), default=0)
    apart = _LINE if packed or step < _LINE else step & -step
    for size, ways, cycles in ((target.l1_bytes, 12, 0.5), (target.l2_bytes, 16, 1.5)):
        sets = max(1, size // ways // max(apart, _LINE))
        if lines <= sets * ways * 0.6:
            return cycles
    return 5.0 if packed or step < _PAGE else 12.0


def _page_misses(c: Contraction, a: Load, target: Target) -> float:
    """How much longer it takes when every step of the sum reads a few elements of another page of a large operand."""
    size = a.dtype.itemsize
    for x in (*c.outer, *c.reduced):
        size *= x.extent if x in axes_of(a.index) else 1
    steps = [abs(lane_stride(a.index, x) or 0) * a.dtype.itemsize for x in c.reduced]
    return 3.0 if min(steps, default=0) >= _PAGE and size > target.l2_bytes else 1.0


def _row_conflicts(a: Load, row: Axis | None, rows: int) -> float:
    """Rows that lie a multiple of 4096 bytes apart share one set of the first cache."""
    if row is None or rows <= 8:
        return 1.0
    return 1.3 if (lane_stride(a.index, row) or 1) * a.dtype.itemsize % 4096 == 0 else 1.0


def _used_lanes(extent: int, lanes: int) -> float:
    return extent / (-(-extent // lanes) * lanes)


_DOT_BLOCKS = ((1, 8), (8, 1), (2, 6), (6, 2), (3, 5), (4, 4), (4, 5), (1, 4), (4, 1), (2, 2), (1, 1))


def _dot_tiles(c: Contraction, target: Target) -> list[Tile]:
    """Lanes along the last reduced axis: both operands are read as vectors, and lanes are folded at the end."""
    axis = c.reduced[-1]
    if lane_stride(c.a.index, axis) != 1 or lane_stride(c.b.index, axis) != 1 or c.a.guard or c.b.guard:
        return []
    lanes, tiles = target.lanes(c.a.dtype), []
    length = points = 1
    for x in c.reduced:
        length *= x.extent
    for x in c.outer:
        points *= x.extent
    for row in _row_axes(c, c.a, c.b):
        for column in _row_axes(c, c.b, c.a):
            for most_rows, most_columns in _DOT_BLOCKS:
                rows = max(s for _, _, s in blocks(row.extent if row else 1, most_rows))
                columns = max(s for _, _, s in blocks(column.extent if column else 1, most_columns))
                if rows * columns + rows + columns > target.registers - 1:
                    continue
                step = max(rows * columns / 2.0, 4.0, _dot_loads(c, row, rows, columns, length, target))
                steps = points * length / (rows * columns * lanes * _used_lanes(axis.extent, lanes))
                cycles = steps * step + 5.0 * points
                tiles.append(Tile(cycles, axis, row, column, rows, columns))
    return tiles


def _dot_loads(c: Contraction, row: Axis | None, rows: int, columns: int, length: int, target: Target) -> float:
    """Cycles to read one vector of each row and column: a block of columns stays while all rows pass by it."""
    size = length * c.a.dtype.itemsize
    passing = _read_cycles((row.extent if row else 1) * size, target)
    staying = _read_cycles(columns * size, target) if row is not None and row.extent > rows else 0.5
    return rows * passing + columns * staying


def _read_cycles(working_set: int, target: Target) -> float:
    """Cycles to read a vector that is read again and again among ``working_set`` bytes."""
    return 0.5 if working_set <= target.l1_bytes // 2 else 2.0 if working_set <= target.l2_bytes // 2 else 5.0


# ---- applying a tile


def apply_tile(
    c: Contraction, tile: Tile, kernel: Kernel, target: Target, names: Names, packed: Packing | None
) -> Kernel:
    """The kernel with its nest cut into register blocks."""
    across = tile.vector in c.outer
    rest = [x for x in c.outer if x not in (tile.vector, tile.row, tile.column)]
    near = [x for x in rest if across and _is_near(c, x, tile.vector)]
    rest = [x for x in rest if x not in near]
    body = _lane_nest(c, tile, target, names, packed, near) if across else _dot_nest(c, tile, target, names)
    buffers = kernel.buffers
    if across and _through_scratch(c, tile):
        size = tile.rows * tile.vectors * target.lanes(c.a.dtype)
        buffers = (*buffers, Buffer(SCRATCH, c.a.dtype, size, "scratch"))
    return replace(kernel, buffers=buffers, body=wrap([(x, "parallel") for x in rest], body))


@dataclass(frozen=True)
class Packing:
    """How a packed operand lies in memory: panels of ``width`` lanes, a row of lanes per point of the reduced axes."""

    load: Load
    buffer: str
    outer: tuple[Axis, ...]
    """Outer axes, other than the vector axis, on which the operand depends."""
    reduced: tuple[Axis, ...]
    vector: Axis
    panels: tuple[tuple[int, int, int], ...]
    """(start, count, lanes) of runs of equal panels along the vector axis."""

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
        product = self.depth * self.vector.extent
        for x in self.outer:
            product *= x.extent
        return product

    def index(self, run: tuple[int, int, int], panel: Index, lane: Index, point: dict[Axis, Index]) -> Index:
        """Where the element of a panel's row and lane lies; ``point`` maps outer and reduced axes to indices."""
        start, _, lanes = run
        position = as_index(0)
        for x in self.outer:
            position = position * x.extent + point[x]
        row = as_index(0)
        for x in self.reduced:
            row = row * x.extent + point[x]
        within = panel * (self.depth * lanes) + row * lanes + lane
        return position * (self.depth * self.vector.extent) + start * self.depth + within


def make_packing(c: Contraction, tile: Tile, target: Target, buffer: str) -> Packing:
    """The packed layout that suits a tile."""
    assert tile.pack is not None
    used = axes_of(tile.pack.index)
    lanes = target.lanes(tile.pack.dtype) * tile.vectors
    return Packing(
        tile.pack,
        buffer,
        tuple(x for x in c.outer if x in used and x != tile.vector),
        tuple(x for x in c.reduced if x in used),
        tile.vector,
        tuple(column_runs(tile.vector.extent, lanes)),
    )


def column_runs(extent: int, width: int) -> list[tuple[int, int, int]]:
    """(start, count, size): full panels, then the rest."""
    runs = []
    if extent // width:
        runs.append((0, extent // width, width))
    if extent % width:
        runs.append((extent - extent % width, 1, extent % width))
    return runs


def pack_body(p: Packing, names: Names, target: str, source: str) -> tuple[Stmt, ...]:
    """The nest that copies an operand into its packed layout."""
    body: list[Stmt] = []
    for run in p.panels:
        start, number, lanes = run
        panel, lane = names.axis("p", number), names.axis("l", lanes)
        axes = {x: names.axis("i", x.extent) for x in (*p.outer, *p.reduced)}
        column = block_index(start, (panel, lanes), (lane, 1))
        copier = BodyCopier(names, {**axes, p.vector: column})
        load = replace(p.load, name=names.scalar("v"), buffer=source, index=copier.index(p.load.index), guard=())
        point = {x: as_index(axis) for x, axis in axes.items()}
        store = Store(target, p.index(run, as_index(panel), as_index(lane), point), load.name)
        inner = [axes[x] for x in p.reduced]
        in_order = lane_stride(p.load.index, p.vector) == 1  # what is read is walked through once, from end to end
        order = [*(axes[x] for x in p.outer), *([*inner, panel, lane] if in_order else [panel, lane, *inner])]
        body += wrap([(x, "parallel") for x in order], (load, store))
    return tuple(body)


def _row_runs(row: Axis | None, most: int) -> list[tuple[int, int, int]]:
    return blocks(row.extent, most) if row else [(0, 1, 1)]


def _is_near(c: Contraction, axis: Axis, vector: Axis) -> bool:
    """True when results along ``axis`` lie between the lanes of a vector: its loop belongs right around the register
    block, so that what is written (and read beside the sum) is still near when its neighbours are."""
    steps = [(abs(lane_stride(s.index, axis) or 0), abs(lane_stride(s.index, vector) or 0)) for s in c.beside]
    return any(isinstance(s, Store) and 0 < a < v for s, (a, v) in zip(c.beside, steps, strict=True))


def _lane_nest(
    c: Contraction, tile: Tile, target: Target, names: Names, packed: Packing | None, near: list[Axis]
) -> tuple[Stmt, ...]:
    """Register blocks over rows and panels. Panels are outside, so that one stays near while all rows pass by it;
    when all panels together stay near, rows are outside, and what is written (and read beside the sum) is walked
    through in order."""
    lanes = target.lanes(c.a.dtype)
    result: list[Stmt] = []
    runs = column_runs(tile.vector.extent, lanes * tile.vectors)
    if _panels_stay(c, tile, target):
        for row_run in _row_runs(tile.row, tile.rows):
            block = names.axis("r", row_run[1])
            inner: list[Stmt] = []
            for run in runs:
                panel = names.axis("p", run[1])
                pieces: list[Stmt] = []
                for piece in _vector_pieces(run[2], lanes):
                    pieces += _block(c, tile, names, run, panel, piece, row_run, block, packed, near)
                inner += wrap([(panel, "parallel")], tuple(pieces))
            result += wrap([(block, "parallel")], tuple(inner))
        return tuple(result)
    for run in runs:
        panel = names.axis("p", run[1])
        inner = []
        for piece in _vector_pieces(run[2], lanes):
            for row_run in _row_runs(tile.row, tile.rows):
                block = names.axis("r", row_run[1])
                body = _block(c, tile, names, run, panel, piece, row_run, block, packed, near)
                inner += wrap([(block, "parallel")], body)
        result += wrap([(panel, "parallel")], tuple(inner))
    return tuple(result)


def _panels_stay(c: Contraction, tile: Tile, target: Target) -> bool:
    """True when all panels fit half of the second cache, and several of them are passed by each block of rows."""
    used = axes_of(c.b.index if tile.vector in axes_of(c.b.index) else c.a.index)
    size = c.a.dtype.itemsize
    for x in (*c.reduced, tile.vector):
        size *= x.extent if x in used else 1
    return tile.row is not None and size <= target.l2_bytes // 2 and tile.row.extent > tile.vector.extent // 4


def _vector_pieces(size: int, lanes: int) -> list[tuple[int, int, int]]:
    """(offset, vectors, lanes) pieces of a panel: whole vectors side by side, then a part of one."""
    pieces = []
    if size // lanes:
        pieces.append((0, size // lanes, lanes))
    if size % lanes:
        pieces.append((size - size % lanes, 1, size % lanes))
    return pieces


def _block(
    c: Contraction,
    tile: Tile,
    names: Names,
    run: tuple[int, int, int],
    panel: Axis,
    piece: tuple[int, int, int],
    row_run: tuple[int, int, int],
    block: Axis,
    packed: Packing | None,
    near: list[Axis],
) -> tuple[Stmt, ...]:
    """One register block inside loops over ``near``; ``panel`` and ``block`` are the loops around it."""
    start, _, size = run
    offset, vectors, lanes = piece
    row_start, _, rows = row_run
    row = names.axis("u", rows)
    side, lane = names.axis("u", vectors), names.axis("l", lanes)
    within = block_index(offset, (side, lanes), (lane, 1))
    mapping: dict[Axis, Index] = {tile.vector: block_index(start, (panel, size)) + within}
    if tile.row is not None:
        mapping[tile.row] = block_index(row_start, (block, rows), (row, 1))
    around = {x: names.axis("n", x.extent) for x in near}
    mapping.update({x: as_index(axis) for x, axis in around.items()})
    reads = {}
    if packed is not None:

        def read(load: Load, copier: BodyCopier) -> tuple[str, Index]:
            point = {x: as_index(copier.axes.get(x, x)) for x in (*packed.outer, *packed.reduced)}
            return packed.buffer, packed.index(run, as_index(panel), within, point)

        reads = {packed.load.name: read}
    if _through_scratch(c, tile):
        body = _block_through_scratch(c, names, mapping, reads, (row, side, lane))
    else:
        body = write_out(BodyCopier(names, mapping, reads).body(c.body), names)
        body = wrap([(row, "unroll"), (side, "unroll"), (lane, "vector")], body)
    return wrap([(axis, "parallel") for axis in around.values()], body)


def _through_scratch(c: Contraction, tile: Tile) -> bool:
    """True when so much follows the sum that code for it should exist once per row, not once per register."""
    rest = [s for s in c.body if not isinstance(s, (Acc, Loop, Read))]
    length = sum(_LONG if isinstance(s, Let) and SCALAR_OPS[s.op].transcendental else 1 for s in rest)
    fixed = all(isinstance(s.init, Const) for s in c.body if isinstance(s, Acc))
    strides = (lane_stride(s.index, tile.vector) for s in c.beside)
    return fixed and tile.rows >= 4 and length * tile.rows * tile.vectors > _HELD and all(x in (0, 1) for x in strides)


def _block_through_scratch(
    c: Contraction, names: Names, mapping: dict[Axis, Index], reads: dict, lanes: tuple[Axis, Axis, Axis]
) -> tuple[Stmt, ...]:
    """A register block whose sums are put into a scratch tile, and a loop over its rows for what follows."""
    row, side, lane = lanes
    core = tuple(s for s in c.body if isinstance(s, (Acc, Loop, Read)))
    rest = tuple(s for s in c.body if not isinstance(s, (Acc, Loop, Read)))
    copier = BodyCopier(names, mapping, reads)
    total = next(s for s in core if isinstance(s, Read))
    dtype = next(s for s in core if isinstance(s, Acc)).dtype
    place = block_index(0, (row, side.extent * lane.extent), (side, lane.extent), (lane, 1))
    sums = write_out(copier.body(core), names)
    sums = (*sums, Store(SCRATCH, place, copier.renamed[total.name]))
    again = {a: names.axis("e", a.extent) for a in lanes}

    def move(index: Index) -> Index:
        return substitute(index, lambda a: again.get(a) if isinstance(a, Axis) else None)

    after = BodyCopier(names, {a: move(i) for a, i in mapping.items()})
    load = Load(after.define(total.name), SCRATCH, move(place), dtype)
    body = (load, *after.body(rest))
    return (
        *wrap([(row, "unroll"), (side, "unroll"), (lane, "vector")], sums),
        *wrap([(again[row], "serial"), (again[side], "unroll"), (again[lane], "vector")], body),
    )


def _dot_nest(c: Contraction, tile: Tile, target: Target, names: Names) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for column_run in _row_runs(tile.column, tile.vectors):
        for row_run in _row_runs(tile.row, tile.rows):
            axes, mapping = [], {}
            for axis, (start, number, size) in ((tile.column, column_run), (tile.row, row_run)):
                block, copy = names.axis("r", number), names.axis("u", size)
                axes.append((block, copy))
                if axis is not None:
                    mapping[axis] = block_index(start, (block, size), (copy, 1))
            body = BodyCopier(names, mapping).body(c.body)
            body = _split_reduction(body, target.lanes(c.a.dtype), names)
            order = [(axes[0][0], "parallel"), (axes[1][0], "parallel"), (axes[0][1], "unroll"), (axes[1][1], "unroll")]
            result += wrap(order, body)
    return tuple(result)


def _split_reduction(body: tuple[Stmt, ...], lanes: int, names: Names) -> tuple[Stmt, ...]:
    """The innermost reduce loop cut into vectors and a tail."""
    result: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            result.append(stmt)
        elif any(isinstance(s, Loop) for s in stmt.body):
            result.append(Loop(stmt.axis, stmt.kind, _split_reduction(stmt.body, lanes, names)))
        else:
            for start, number, size in column_runs(stmt.axis.extent, lanes):
                step, lane = names.axis("o", number), names.axis("l", size)
                index = block_index(start, (step, size), (lane, 1))
                inner = BodyCopier(names, {stmt.axis: index}).body(stmt.body)
                result += wrap([(step, "reduce"), (lane, "vector")], inner)
    return tuple(result)


def write_out(body: tuple[Stmt, ...], names: Names) -> tuple[Stmt, ...]:
    """Short innermost reduce loops written out, so that a window of 3 or 5 costs no loop."""
    result: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, Loop):
            result.append(stmt)
            continue
        leaf = not any(isinstance(s, Loop) for s in stmt.body)
        if leaf and stmt.kind == "reduce" and stmt.axis.extent <= _SHORT:
            for i in range(stmt.axis.extent):
                result += BodyCopier(names, {stmt.axis: i}).body(stmt.body)
        else:
            result.append(Loop(stmt.axis, stmt.kind, write_out(stmt.body, names)))
    return tuple(result)
