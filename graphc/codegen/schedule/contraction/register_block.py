"""Choice of a register block, by the estimated time of every tiling of a contraction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

from graphc.base.locks import cached_property
from graphc.base.records import dataclass
from graphc.base.sizes.size import bounds, is_size
from graphc.codegen.machine.costs import ContractionCosts
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.match import Contraction
from graphc.codegen.schedule.contraction.product_of_tiles import rows_are_packed, tile_steps
from graphc.codegen.schedule.contraction.runs import even_rows, falling_runs, remainders
from graphc.codegen.schedule.loops.transform import blocks, sums_in_turn
from graphc.ir.kernel.access import UNIFORM, UNIT, access
from graphc.ir.kernel.expected import expected_axis, expected_index
from graphc.ir.kernel.index import Axis, axes_of
from graphc.ir.kernel.statements import Load, Store

_THREE_SIZES = 8
"""Number of possible remainders of rows from which blocks of three sizes for them are too much code."""
_WINDOW_READS = 256
"""Most elements of windows whose cache lines are counted: a bound on compile time."""


@dataclass(frozen=True)
class Tile:
    """A register block. ``rows`` copies read ``a`` once for all columns; columns run across lanes (or copies)."""

    cycles: float
    """Estimated time of the whole contraction."""
    vector: Axis
    """Axis across lanes: one of ``outer``, or the last of ``reduced`` (sums lane by lane)."""
    row: Axis | None
    column: Axis | None
    """Second unrolled axis when lanes run along a reduced axis."""
    rows: int
    vectors: int
    """Vectors along ``vector`` in a block (or columns, when lanes run along a reduced axis)."""
    pack: Load | None = None
    """A load whose operand must be packed first, so that its lanes are contiguous."""
    in_panels: bool = False
    """True if the operand of ``pack`` lies in panels already, and is read where it is."""
    last: tuple[int, ...] = ()
    """Sizes of the blocks for the remainder of rows, where the number of rows varies by call and rows may be computed
    twice."""
    average: float = 0.0
    """Cycles of a step of the sum for each row, with the average remainder."""
    steps: int = 0
    """Steps of the sum in one product of hardware tiles; 0 where sums are in vectors."""
    memory: float = 0.0
    """The part of ``cycles`` that any other loops would take, too, to read an operand from memory."""

    @cached_property
    def expected(self) -> Tile:
        """The same block of the contraction with expected sizes (see Contraction.expected)."""
        vector, row, column = (x and expected_axis(x) for x in (self.vector, self.row, self.column))
        pack = self.pack and replace(self.pack, index=expected_index(self.pack.index))
        return replace(self, vector=vector, row=row, column=column, pack=pack)

    @property
    def panels(self) -> tuple[Any, ...]:
        """Key of the block's panels, the same for all numbers of rows."""
        return self.vector, self.row, self.column, self.vectors, self.pack, self.steps

    @property
    def label(self) -> str:
        """Label of the block, unique in its contraction: size, axes, the packed operand."""
        axes = "/".join(axis.name if axis else "-" for axis in (self.vector, self.row, self.column))
        tiles = f" tiles of {self.steps}" if self.steps else ""
        how = f" {'in panels' if self.in_panels else 'packed'} {self.pack.buffer}" if self.pack else ""
        return f"{self.rows}x{self.vectors}{tiles} {axes}{how}"


def choose_tile(c: Contraction, target: Target, free: frozenset[str] = frozenset()) -> Tile | None:
    """Return the register block with the lowest estimated time; None when nothing fits.

    Packing costs nothing for the buffers ``free`` (constants).
    """
    return _best(_tiles(c, target, free), target)


def rank_tiles(c: Contraction, target: Target, free: frozenset[str] = frozenset()) -> list[Tile]:
    """Return all different register blocks, ranked as by ``choose_tile``: the best one first."""
    tiles = _tiles(c, target, free)
    best = _best(tiles, target)
    ranked = {best.label: best} if best else {}
    for tile in sorted(tiles, key=lambda t: t.cycles):
        ranked.setdefault(tile.label, tile)
    return list(ranked.values())


def _best(tiles: list[Tile], target: Target) -> Tile | None:
    """Return the block with the lowest estimated time.

    Where the number of rows varies by call, the average remainder decides about the rows of a block: packed panels suit
    any number of rows.
    """
    best = min(tiles, key=lambda t: t.cycles, default=None)
    if best is None or not best.average:
        return best
    most = best.cycles * target.costs.contraction.as_fast
    return min((t for t in tiles if t.cycles <= most and t.panels == best.panels), key=lambda t: t.average)


def _tiles(c: Contraction, target: Target, free: frozenset[str]) -> list[Tile]:
    """Return the register blocks possible for all sizes, with estimates for expected sizes."""
    e = c.expected
    sizes = {x.name: x.extent for x in c.outer if is_size(x.extent)}
    tiles: list[Tile] = []
    for a, b in ((e.a, e.b), (e.b, e.a)):
        if a.name == c.unpacked:  # every row of a block would unpack it again
            continue
        for axis in e.outer:
            along = access(a.index, axis)
            if not along.plain or not access(b.index, axis).stride or b.guard or (along == UNIT and a.guard):
                continue
            tiles.extend(_lane_tiles(e, a, b, axis, target, free, sizes))
            tiles.extend(_tile_tiles(c, a, b, axis, target, free) if e is c else ())
    tiles.extend(() if target.costs.strict_order else _dot_tiles(e, target, sizes))  # they sum each lane separately
    return tiles if e is c else [tile for tile in (_for_all_sizes(t, c) for t in tiles) if tile is not None]


def _for_all_sizes(tile: Tile, c: Contraction) -> Tile | None:
    """Return a block of the expected contraction as a block of ``c``; None if an access is plain for expected sizes
    only."""
    axes = {x.name: x for x in (*c.outer, *c.reduced)}
    vector, row, column = (x and axes[x.name] for x in (tile.vector, tile.row, tile.column))
    assert vector is not None
    pack = tile.pack and (c.a if tile.pack.name == c.a.name else c.b)
    for load in (c.a, c.b):
        if load is not pack and not access(load.index, vector).plain:
            return None
    return replace(tile, vector=vector, row=row, column=column, pack=pack)


def _row_axes(c: Contraction, a: Load, b: Load, nearest_first: bool = False) -> Sequence[Axis | None]:
    """Return the axes along which ``a`` moves and ``b`` does not, or [None].

    With ``nearest_first``, rows that are in few pages win among blocks of equal time.
    """
    axes = [x for x in c.outer if x not in axes_of(b.index) and x in axes_of(a.index)]
    if nearest_first:
        axes.sort(key=lambda x: abs(access(a.index, x).stride))
    return axes or [None]


def _lane_tiles(
    c: Contraction,
    a: Load,
    b: Load,
    axis: Axis,
    target: Target,
    free: frozenset[str],
    sizes: Mapping[str, Any],
) -> list[Tile]:
    """Return register blocks with lanes along an outer axis.

    Rows of ``a`` are broadcast (or read as vectors where they vary along the axis, as in a depthwise convolution), and
    all rows share the vectors of ``b``. ``sizes`` are the extents of axes whose size varies by call.
    """
    lanes, k, points = target.lanes(c.dtype), target.costs.contraction, float(prod(x.extent for x in c.outer))
    added, busy = c.reduced[-1].extent, k.busy_sums if may_add_in_turn(c, target) else 0
    broadcast = access(a.index, axis) == UNIFORM
    near = {Store: (UNIT,), Load: (UNIFORM, UNIT)}
    scattered = [s for s in c.outer_accesses if access(s.index, axis) not in near[type(s)]]
    packing, page_misses, tiles = _packing_cycles(c, b, axis, free, k), _page_misses(c, a, target), []
    segments = k.far_segment and k.far_segment * _far_accesses(c, a, axis, target)
    in_place = access(b.index, axis) == UNIT
    in_panels = b.buffer in free and not axis.extent % lanes and _lies_in_panels(c, b, axis, target)
    for row in _row_axes(c, a, b, nearest_first=not broadcast):
        extent, number = (row.extent, sizes.get(row.name)) if row else (1, None)
        panels, wait = _memory_cycles(c, b, row, target), _row_read(c, a, row, axis, target)
        memory = panels + _memory_cycles(c, a, axis, target)
        scatter = _scatter_cycles(scattered, axis, row, points, target)
        for vectors, most in product(k.block_vectors, (target.streams, k.l1_ways_kept)):
            room = _room_for_rows(c, axis, vectors, in_panels, target)
            if room < 1:
                continue
            rows = _block_rows(row, min(room, most), sizes)
            used = _used_lanes(axis.extent, lanes)
            factor = _row_conflicts(c, a, row, rows, target) * page_misses
            close = _panel_read(c, b, vectors, target, False) == k.l1_read
            for pack in (b,) if in_panels else (None, b):
                if pack is None and not (in_place and (close or b.buffer not in free)):
                    continue
                once = pack is not None and extent <= rows and panels > 0
                read = k.l1_read if once else _panel_read(c, b, vectors, target, pack is not None)
                each = wait if broadcast else wait + vectors * _window_read(c, a, row, rows * vectors, target)
                far = 0.0 if pack or close else _strided_wait(c, b, row, rows, vectors, target)

                def step(n: int, read: float = read, v: int = vectors, each: float = each, far: float = far) -> float:
                    chains = sums_in_turn(added, busy // (n * v)) if 2 * n * v <= busy else 1
                    return _step_cycles(n * v, n if broadcast else n * v, v * read, k, chains) + n * each + far

                fractions = _row_fractions(row, rows, sizes)
                cycles = sum(
                    c.work * fraction / (n * vectors * lanes * used) * step(n) * factor for fraction, n in fractions
                )
                cycles += memory + scatter + segments * points / (vectors * lanes)
                if pack is not None:
                    cycles += packing
                elif row is not None and rows_exceed_l2(c, b, row, axis, target):
                    cycles *= k.far_rows
                remainder = _remainder_fields(number, extent, rows, step, k.sized_vectors // vectors)
                tiles.append(Tile(cycles, axis, row, None, rows, vectors, pack, in_panels, memory=memory, **remainder))
    return tiles


def _room_for_rows(c: Contraction, axis: Axis, vectors: int, in_panels: bool, target: Target) -> int:
    """Return the most rows of a block of so many vectors; less than one where there is no such block."""
    lanes = target.lanes(c.dtype)
    width = vectors * lanes
    if (vectors > 1 and width - lanes >= axis.extent) or (in_panels and axis.extent % width):
        return 0
    room = (target.registers_of(c.dtype) - 2 - vectors) // vectors
    return max(room, 1) if in_panels and width == axis.extent else room  # one row may read its panel again from L1


def _tile_tiles(c: Contraction, a: Load, b: Load, axis: Axis, target: Target, free: frozenset[str]) -> list[Tile]:
    """Return blocks with sums in hardware tiles, where one product multiplies rows of ``a`` by a panel of ``b``."""
    lanes, k, tiles, steps = target.lanes(c.dtype), target.costs.contraction, [], tile_steps(c, a, b, axis, target)
    if not steps:
        return []
    points = float(prod(x.extent for x in c.outer))
    near = {Store: (UNIT,), Load: (UNIFORM, UNIT)}
    scattered = [s for s in c.outer_accesses if access(s.index, axis) not in near[type(s)]]
    for row in _row_axes(c, a, b):
        if row is None or row.extent < k.tile_least_rows:
            continue
        turned = rows_are_packed(c, a, row)
        for groups, vectors in product((1, 2), (1, 2)):
            if vectors > 1 and (vectors - 1) * lanes >= axis.extent:
                continue
            rows = _block_rows(row, groups * target.tile_rows, {})
            groups = -(-rows // target.tile_rows)
            # The time of a product of tiles, or of reading both operands where no other product shares them.
            reads = (rows + vectors * steps) * k.tile_row_read
            each = max(rows * vectors * k.tile_row_cycles, reads) * _length(c) / steps + k.tile_block_cycles
            blocks_of = points / (row.extent * axis.extent) * -(-axis.extent // (vectors * lanes))
            cycles = blocks_of * -(-row.extent // rows) * each + _scatter_cycles(scattered, axis, row, points, target)
            cycles += _packing_cycles(c, b, axis, free, k) + (_packing_cycles(c, a, row, free, k) if turned else 0.0)
            tiles.append(Tile(cycles, axis, row, None, rows, vectors, b, steps=steps))
    return tiles


def _length(c: Contraction) -> float:
    """Return the number of steps of a sum."""
    return float(prod(x.extent for x in c.reduced))


def _remainder_fields(number: Any, expected: int, rows: int, step: Callable[[int], float], room: int) -> dict[str, Any]:
    """Return the fields ``last`` and ``average`` of a tile, for the remainder of rows after full blocks.

    ``number`` is the number of rows if it varies by call, else None. ``room`` limits the sum of rows over all sizes of
    blocks.
    """
    if number is None:
        return {}
    steps = tuple([step(size) for size in range(1, rows + 1)])
    possible = remainders(number, rows)
    sizes = _last_sizes(steps, possible, room - rows, expected < rows)
    return {"last": sizes, "average": _average_block(expected, steps, possible, sizes) / rows}


@lru_cache(maxsize=1024)
def _last_sizes(steps: tuple[float, ...], remainders: tuple[int, ...], room: int, few: bool) -> tuple[int, ...]:
    """Return the sizes of blocks for the possible ``remainders`` of rows with the least average time of a step.

    The sizes are the largest remainder, the least one, and one between these, together at most ``room`` rows.
    ``steps`` are the cycles of a step with 1, 2, ... rows. If ``few`` rows are expected, as in the steps of a recurrent
    network, no full block may run at all. Then three sizes are worth their code where they have room, and small
    remainders count more.
    """
    smaller, most = [n for n in remainders if 0 < n < remainders[-1]], remainders[-1]
    if not most:
        return ()
    least = smaller[:1]  # one row is a common case: calls with one token, or one image
    candidates: list[tuple[int, ...]] = [(*least, most)]
    if few or len(smaller) < _THREE_SIZES:
        candidates += [(*least, b, most) for b in smaller[1:]]
    fitting = [sizes for sizes in candidates if sum(sizes) <= room] or candidates[:1]
    return min(fitting, key=lambda sizes: (_remainder_cycles(steps, remainders, sizes, few), sum(sizes)))


def _remainder_cycles(
    steps: tuple[float, ...], remainders: tuple[int, ...], sizes: tuple[int, ...], few: bool
) -> float:
    """Return the summed cycles of a step over all possible remainders of rows, with ``few`` rows for each row."""
    return sum(steps[next(size for size in sizes if size >= n) - 1] / (n if few else 1) for n in remainders if n)


def _average_block(
    expected: int, steps: tuple[float, ...], remainders: tuple[int, ...], last: tuple[int, ...]
) -> float:
    """Return the cycles of a step of the sum, for as many rows as a full block has.

    Averages over the possible remainders; a block of more rows than ``expected`` counts with that number of rows.
    """
    rows = len(steps)
    if expected < rows:
        return steps[next((size for size in last if size >= expected), rows) - 1] * rows / expected
    full = (expected - sum(remainders) / len(remainders)) / rows
    average = _remainder_cycles(steps, remainders, last, False) / len(remainders)
    return (full * steps[-1] + average) * rows / expected


def _block_rows(row: Axis | None, most: int, sizes: Mapping[str, Any]) -> int:
    """Return the rows of the largest block, at most ``most``."""
    if row is None or row.name in sizes:
        return even_rows(min(most, bounds(sizes[row.name])[1])) if row else 1
    return max(size for _, _, size in blocks(row.extent, most))


def _row_fractions(row: Axis | None, most: int, sizes: Mapping[str, Any]) -> list[tuple[float, int]]:
    """Return (fraction of the rows, rows of a block) for each size of block.

    All rows count as in full blocks, unless their number varies by call and fewer are expected than one block holds.
    """
    if row is None or row.name not in sizes or row.extent >= most:
        return [(1.0, most)]
    return [(number * size / row.extent, size) for _, number, size in falling_runs(row.extent, most)]


def _row_read(c: Contraction, a: Load, row: Axis | None, axis: Axis, target: Target) -> float:
    """Return the cycles for which a step waits for its element of a row.

    It waits where further outer loops read all rows again in each iteration, and the rows do not fit into L2.
    """
    used, size = axes_of(a.index), a.dtype.itemsize
    again = prod(x.extent for x in c.outer if x not in used and x is not axis)
    if again == 1 or _bytes(a, (*c.reduced, *((row,) if row else ()))) <= target.l2_bytes:
        return 0.0
    step = min((abs(access(a.index, x).stride) for x in c.reduced if x in used), default=0)
    return target.costs.contraction.llc_read * min(1.0, step * size / target.line_bytes)


def _window_read(c: Contraction, a: Load, row: Axis | None, vectors: int, target: Target) -> float:
    """Return the cycles for which a step waits for a vector of a window that another row has read before.

    It waits where L1 cannot hold the ``vectors`` of all rows for the steps between: pixels at a large power of two from
    each other share few sets.
    """
    across = abs(access(a.index, row).stride) if row else 0
    lines, strides = vectors, across
    for x in reversed(c.reduced):
        step = abs(access(a.index, x).stride)
        if across and step and any(i * step % across == 0 for i in range(1, x.extent)):
            apart = max(target.line_bytes, (strides & -strides) * a.dtype.itemsize)
            sets = max(1, target.l1_bytes // target.l1_ways // apart)
            k = target.costs.contraction
            held = lines * target.vector_bytes <= sets * target.l1_ways * target.line_bytes
            return 0.0 if held else _line_read(k.l2_row_read, target) - k.l1_read
        lines, strides = lines * x.extent, strides | step
    return 0.0


def rows_exceed_l2(c: Contraction, b: Load, row: Axis, vector: Axis, target: Target) -> bool:
    """Check whether all rows exceed L2 by far and the panels of ``b`` half of it, so that repeated reads miss L2."""
    depth = prod(x.extent for x in c.reduced)
    panels = depth * vector.extent * b.dtype.itemsize
    far = target.costs.contraction.far_row_caches * target.l2_bytes
    return depth * row.extent * c.dtype.itemsize > far and panels > target.l2_bytes // 2


def _scatter_cycles(
    accesses: Sequence[Load | Store], axis: Axis, row: Axis | None, points: float, target: Target
) -> float:
    """Return the cycles of accesses whose lanes are not contiguous.

    They are register transposes if rows are contiguous, else single elements, from cache lines shared by several lanes
    or from one line each.
    """
    cycles, k = 0.0, target.costs.contraction
    for s in accesses:
        if row is not None and row.extent >= k.transposed_rows and access(s.index, row) == UNIT:
            cycles += k.transposed_access
        else:
            shared = (abs(access(s.index, axis).stride) or target.page_bytes) < k.shared_line_stride
            cycles += k.shared_line_access if shared else k.scattered_access
    return points * cycles


def _strided_wait(c: Contraction, b: Load, row: Axis | None, rows: int, vectors: int, target: Target) -> float:
    """Return the cycles for which a step waits for the lines of an unpacked panel beyond L1; 0 if it is read once."""
    if not target.costs.contraction.strided_wait:
        return 0.0
    others = prod(x.extent for x in c.outer if x not in axes_of(b.index) and x is not row)
    again = (row.extent if row else 1) * others > rows
    return target.costs.contraction.strided_wait * _lines(vectors, target) if again else 0.0


def _far_accesses(c: Contraction, a: Load, axis: Axis, target: Target) -> int:
    """Return the number of accesses to arrays beyond L2 of which each row has a segment: stores, and rows that vary
    along the lanes."""
    loads = [a] if access(a.index, axis) == UNIT else []
    segments = [*loads, *(s for s in c.outer_accesses if isinstance(s, Store) and access(s.index, axis) == UNIT)]
    axes = (*c.outer, *c.reduced)
    return sum(
        prod(x.extent for x in axes if x in axes_of(s.index)) * c.dtype.itemsize > target.l2_bytes for s in segments
    )


def may_add_in_turn(c: Contraction, target: Target) -> bool:
    """Return whether products may be added to several sums in turn: additions of integers do not wait for each other,
    steps of a packed word share its load, and strict order forbids it."""
    return c.dtype.is_floating_point and not c.unpacked and not target.costs.strict_order


def _step_cycles(sums: int, reads: int, panel: float, k: ContractionCosts, chains: int) -> float:
    """Return the cycles of one step of the sum.

    The slowest of these counts: the multiply-adds at the machine's throughput, the latency of a multiply-add where
    each sum has ``chains`` of them, or the reads of the rows (from L1) and of the panel (``panel`` cycles).
    """
    return max(sums / k.multiply_adds, k.chain_cycles / chains, reads * k.l1_read + panel) + k.step_cycles


def _packing_cycles(c: Contraction, b: Load, axis: Axis, free: frozenset[str], k: ContractionCosts) -> float:
    """Return the cycles to pack an operand: by a plain copy, register transposes, or element by element."""
    if b.buffer in free:
        return 0.0
    elements = _bytes(b, (*c.outer, *c.reduced)) / b.dtype.itemsize
    if access(b.index, axis) == UNIT:
        return k.pack_start + k.pack_element * elements
    transposable = any(access(b.index, x) == UNIT and x.extent >= k.pack_turned_extent for x in c.reduced)
    each = k.pack_turned_element if transposable else k.pack_gathered_element
    return k.pack_turned_start + each * elements


def _panel_read(c: Contraction, b: Load, vectors: int, target: Target, packed: bool) -> float:
    """Return the cycles to read a vector of a panel, which every block of rows reads again.

    Unpacked rows may have a stride of a large power of two. They then share few sets of a cache, and come from a larger
    cache than their size suggests.
    """
    k, line = target.costs.contraction, target.line_bytes
    steps = [abs(access(b.index, x).stride) * b.dtype.itemsize for x in c.reduced]
    lines = _lines(vectors, target)
    for x in c.reduced:
        lines *= x.extent
    step = min((s for s in steps if s), default=0)
    apart = line if packed or step < line else step & -step
    caches = (
        (target.l1_bytes, target.l1_ways, k.l1_read),
        (target.l2_bytes, k.l2_ways, _line_read(k.l2_read, target)),
    )
    for size, associativity, cycles in caches:
        sets = max(1, size // associativity // max(apart, line))
        if lines <= sets * associativity * k.ways_used:
            return cycles
    return _line_read(k.llc_read if packed or step < target.page_bytes else k.llc_page_read, target)


def _lies_in_panels(c: Contraction, b: Load, axis: Axis, target: Target) -> bool:
    """Check whether packing would gain nothing: rows of few cache lines, which lie one after another."""
    step, size = axis.extent, target.costs.contraction.panel_lines * target.line_bytes // b.dtype.itemsize
    if access(b.index, axis) != UNIT or b.guard or step > size:
        return False
    for x in sorted((x for x in c.reduced if x in axes_of(b.index)), key=lambda x: access(b.index, x).stride):
        if access(b.index, x).stride != step:
            return False
        step *= x.extent
    return True


def _lines(vectors: int, target: Target) -> int:
    """Return the cache lines of neighbouring vectors."""
    return -(-vectors * target.vector_bytes // target.line_bytes)


def _memory_cycles(c: Contraction, b: Load, row: Axis | None, target: Target) -> float:
    """Return the cycles to read an operand from memory, where it exceeds L2 and only rows reuse it; 0 elsewhere.

    They add to the cycles of the sums, which wait for the reads: few reads are in flight at a time.
    """
    size = _bytes(b, (*c.outer, *c.reduced))
    others = prod(x.extent for x in c.outer if x not in axes_of(b.index) and x is not row)
    if others > 1 or size <= target.l2_bytes:
        return 0.0
    return size / target.line_bytes * target.costs.contraction.memory_read


def _bytes(load: Load, axes: Sequence[Axis]) -> int:
    """Return the bytes read by a load along these axes."""
    used = axes_of(load.index)
    return load.dtype.itemsize * prod(x.extent for x in axes if x in used)


def _line_read(cycles: float, target: Target) -> float:
    """Return the cycles to read a vector where each cache line takes ``cycles``."""
    return max(target.costs.contraction.l1_read, cycles * target.vector_bytes / target.line_bytes)


def _page_misses(c: Contraction, a: Load, target: Target) -> float:
    """Return the slowdown by TLB misses: every step of the sum reads another page of a large operand, and a sum has
    more pages than the TLB holds."""
    steps = [abs(access(a.index, x).stride) * a.dtype.itemsize for x in c.reduced]
    missed = min(steps, default=0) >= target.page_bytes and _bytes(a, (*c.outer, *c.reduced)) > target.l2_bytes
    pages = prod(x.extent for x in c.reduced)
    return target.costs.contraction.page_miss if missed and pages > target.near_pages else 1.0


def _row_conflicts(c: Contraction, a: Load, row: Axis | None, rows: int, target: Target) -> float:
    """Return the slowdown by cache conflicts: lines that are read in turn share one set of the L1 cache.

    These are the rows at multiples of a page, and the elements of their windows.
    """
    k = target.costs.contraction
    lines = 0
    if row is not None and (access(a.index, row).stride or 1) * a.dtype.itemsize % target.page_bytes == 0:
        lines = rows
    if k.windows_conflict:
        lines = max(lines, _window_lines(c, a, row, rows, target))
    if lines <= k.l1_ways_kept:
        return 1.0
    return k.row_conflict if lines <= 2 * k.l1_ways_kept else k.row_conflict_far


def _window_lines(c: Contraction, a: Load, row: Axis | None, rows: int, target: Target) -> int:
    """Return the most lines in one set of the L1 cache between two steps along contiguous elements of the rows."""
    steps = [access(a.index, x).stride for x in c.reduced]
    first = steps.index(UNIT.stride) + 1 if UNIT.stride in steps else len(steps)
    window = [(x.extent, step) for x, step in zip(c.reduced[first:], steps[first:], strict=True) if step]
    if not window or rows * prod(extent for extent, _ in window) > _WINDOW_READS:
        return 0
    extents = [*window, (rows, access(a.index, row).stride if row else 0)]
    starts = {0}
    for extent, stride in extents:
        starts = {start + i * stride for start in starts for i in range(extent)}
    sets = target.l1_bytes // target.l1_ways // target.line_bytes
    lines = {start * a.dtype.itemsize // target.line_bytes for start in starts}
    return max(Counter(line % sets for line in lines).values())


def _used_lanes(extent: int, lanes: int) -> float:
    return extent / (-(-extent // lanes) * lanes)


def _dot_tiles(c: Contraction, target: Target, sizes: Mapping[str, Any]) -> list[Tile]:
    """Return register blocks with lanes along the last reduced axis: both operands are vectors, and lanes are reduced
    at the end."""
    axis = c.reduced[-1]
    if access(c.a.index, axis) != UNIT or access(c.b.index, axis) != UNIT or c.a.guard or c.b.guard:
        return []
    lanes, k, tiles = target.lanes(c.dtype), target.costs.contraction, []
    length = points = 1
    for x in c.reduced:
        length *= x.extent
    for x in c.outer:
        points *= x.extent
    for row in _row_axes(c, c.a, c.b):
        for column in _row_axes(c, c.b, c.a):
            for most_rows, most_columns in k.dot_blocks:
                rows, columns = _block_rows(row, most_rows, sizes), _block_rows(column, most_columns, sizes)
                if rows * columns + rows + columns > target.registers_of(c.dtype) - 1:
                    continue
                tile = Tile(0.0, axis, row, column, rows, columns)
                memory, cycles = 0.0, 0.0
                for (a, r), (b, n) in product(_row_fractions(row, rows, sizes), _row_fractions(column, columns, sizes)):
                    memory, loads = _dot_reads(c, replace(tile, rows=r, vectors=n), length, target)
                    step = max(r * n / k.multiply_adds, k.chain_cycles, loads) + k.step_cycles
                    cycles += points * length * a * b / (r * n * lanes * _used_lanes(axis.extent, lanes)) * step
                tiles.append(replace(tile, cycles=cycles + k.fold * points + memory, memory=memory))
    return tiles


def _dot_reads(c: Contraction, tile: Tile, length: int, target: Target) -> tuple[float, float]:
    """Return the cycles of reads from memory, and the cycles to read one vector of each row and column from a cache.

    A block of columns stays in a cache for all rows, or is read only once.
    """
    k, row, column, size = target.costs.contraction, tile.row, tile.column, length * c.a.dtype.itemsize
    again = row is not None and row.extent > tile.rows
    memory = _memory_cycles(c, c.b, row, target)
    passing = _read_cycles((row.extent if row else 1) * size, target)
    staying = _read_cycles((tile.vectors if again else column.extent if column else 1) * size, target)
    if memory and not again:
        staying = 0.0
    elif not memory and (column is None or column.extent <= tile.vectors):
        memory = _memory_cycles(c, c.a, column, target)
        passing = 0.0 if memory else passing
    return k.memory_rows * memory, tile.rows * passing + tile.vectors * staying


def _read_cycles(working_set: int, target: Target) -> float:
    """Return the cycles to read a vector repeatedly within ``working_set`` bytes."""
    k = target.costs.contraction
    if working_set <= target.l1_bytes // 2:
        return k.l1_read
    return _line_read(k.l2_row_read if working_set <= target.l2_bytes // 2 else k.llc_read, target)
