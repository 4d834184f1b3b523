"""Tiled contractions: thread blocks compute tiles of results from tiles of both factors in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd, prod

from graphc.base.dtypes import DType, bool_, int64
from graphc.base.records import dataclass
from graphc.base.sizes.size import hint, is_size
from graphc.codegen.machine.cuda.costs import TILES as COSTS
from graphc.codegen.machine.cuda.costs import TileCosts
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.gpu.split_epilogue import nest_of, part_of, row_major
from graphc.codegen.schedule.gpu.sum_of_products import Factor, SumOfProducts, find_sum_of_products
from graphc.codegen.schedule.loops.transform import wrap
from graphc.ir.kernel.index import Axis, Index, as_index, bounds, unflatten
from graphc.ir.kernel.index_range import stays_within
from graphc.ir.kernel.map import BodyCopier, Names
from graphc.ir.kernel.statements import (
    Barrier,
    Bound,
    Buffer,
    Const,
    Guard,
    IndexLet,
    Kernel,
    Let,
    Load,
    Loop,
    Read,
    Stmt,
    Store,
    Update,
)

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


QUAD = 4
"""Neighbouring rows or columns of one thread."""
_SUMS = "own_sums"
VECTOR_BYTES = 16
"""Bytes that a thread reads from shared memory at a time."""


def tile_contraction(kernel: Kernel, target: Target, names: Names) -> Kernel | None:
    """Tile a sum of products over thread blocks.

    Needs: a lowered kernel without threads; ``names`` unused in it. Does: lets each thread block compute a tile of
    results from tiles of the factors in shared memory. Leaves: a kernel that adds the same products in the same order,
    or None for other kernels and for sums with few rows or columns.
    """
    builder = _tiled(kernel, names, 1)
    tiled = builder.kernel() if builder is not None else None
    return tiled if builder is not None and builder.is_proven else None


def describe_tiles(tiled: Kernel) -> str:
    """Describe the choice of ``tile_contraction`` for people."""
    size = sum(b.size * b.dtype.itemsize for b in tiled.buffers if b.role == "shared")
    owned = next(b.size for b in tiled.buffers if b.name.startswith(_SUMS)) // tiled.threads
    each = "a result" if owned == 1 else f"{owned} results"
    return f"tiles of both factors in {size} bytes of shared memory, {each} for each of {tiled.threads} threads"


def split_terms(kernel: Kernel, target: Target, names: Names, sums: str) -> tuple[Kernel, Kernel] | None:
    """Split a sum of products into a kernel of partial sums and a kernel that adds them (split-K).

    Needs: the same as ``tile_contraction``. Does: cuts long sums with few results into a fixed number of segments.
    Thread blocks compute tiles of their sums into ``sums``, the last argument of the first kernel; the second kernel,
    with ``sums`` as its last input, adds them in order. Leaves: both kernels, the second without threads and under the
    old name; or None where splitting does not pay.
    """
    builder = _tiled(kernel, names, COSTS.most_parts)
    if builder is None or builder.parts == 1:
        return None
    partial = builder.partial_kernel(sums)
    return (partial, _sum_of_segments(kernel, builder.match, builder.parts, names, sums)) if builder.is_proven else None


def _tiled(kernel: Kernel, names: Names, most_parts: int) -> _TiledKernel | None:
    """Match the kernel and choose a tile; return the builder of the tiled kernel, or None."""
    match = find_sum_of_products(kernel, names)
    if match is None:
        return None
    first, second = match.only(match.left), match.only(match.right)
    if not first or not second:
        return None
    along_first = _is_stored_along(match, first[-1]) and not _is_stored_along(match, second[-1])
    factors = (match.right, match.left) if along_first else (match.left, match.right)
    rows, columns = (match.only(f) for f in factors)
    chosen = choose_tile(match, prod(x.extent for x in rows), prod(x.extent for x in columns), COSTS, most_parts)
    return None if chosen is None else _TiledKernel(kernel, match, factors, chosen, names)


def _sum_of_segments(kernel: Kernel, match: SumOfProducts, segments: int, names: Names, sums: str) -> Kernel:
    """Return the kernel that adds the sums of all segments."""
    axes, body = nest_of(kernel)
    position, size = row_major(axes)
    segment, value = names.axis("p", segments), names.scalar("v")
    load = Load(value, sums, as_index(segment) * size + position, match.acc.dtype)
    added = Loop(segment, "reduce", (load, Update(match.acc.name, value)))
    using = tuple(added if isinstance(s, Loop) else s for s in body)
    partial = Buffer(sums, match.acc.dtype, size * segments, "in")
    return part_of(kernel, kernel.name, axes, using, (partial,), ())


def _is_stored_along(match: SumOfProducts, axis: Axis) -> bool:
    """Check whether a store is contiguous along an axis."""
    return any(s.index.coefficient(axis) == 1 for s in match.stores)


@dataclass(frozen=True)
class _Side:
    """The rows or the columns of the tiles."""

    factor: Factor
    axes: tuple[Axis, ...]
    block: Axis
    """Axis over the tiles (thread blocks)."""
    size: int
    """Rows or columns of a tile."""
    own: int
    """Rows or columns of one thread."""
    shared: Buffer
    """Tile of the factor in shared memory, ``pitch`` elements for each term."""
    fragment: Buffer
    """Elements that each thread reads from the tile for one term."""
    staged: Buffer
    """Elements that each thread has loaded for the next tile."""
    pitch: int

    @property
    def extent(self) -> int:
        """Number of rows or columns in all tiles together."""
        return prod(x.extent for x in self.axes)

    def inside(self, flat: Index, more: int = 0) -> Guard:
        """Return the guard for the existence of a row and ``more`` rows after it; empty where all exist."""
        full = not is_size(self.extent) and self.extent % self.size == 0
        return () if full else (Bound(flat, 0, self.extent - more),)


class _TiledKernel:
    """Builder of a tiled kernel, with a method for each part of it."""

    def __init__(
        self,
        kernel: Kernel,
        match: SumOfProducts,
        factors: tuple[Factor, Factor],
        chosen: tuple[Tile, int],
        names: Names,
    ):
        self.old = kernel
        self.match = match
        self.tile, self.parts = chosen
        """The tile, and the number of segments into which the terms are cut."""
        self.names = names
        self.is_proven = True
        """False once an access is emitted that cannot be proven to be inside its buffer."""
        self.buffer_names = {b.name for b in kernel.buffers}
        steps = _tiles(match.terms, self.tile.depth * self.parts)
        self.part = names.axis("p", self.parts)
        self.segment_terms = steps * self.tile.depth
        self.is_stepped = is_size(steps) or steps > 1
        """True if one tile of the factors is loaded while another one is multiplied (double buffering)."""
        self.step = names.axis("k", steps)
        self.rows = self.side(factors[0], self.tile.rows, self.tile.own_rows, "rows")
        self.columns = self.side(factors[1], self.tile.columns, self.tile.own_columns, "columns")
        self.sums = self.buffer(_SUMS, match.acc.dtype, self.tile.threads * self.tile.owned, "private")

    def side(self, factor: Factor, size: int, own: int, name: str) -> _Side:
        """Return the rows or columns of the tiles, with their buffers."""
        axes = self.match.only(factor)
        block = self.names.axis("b", _tiles(prod(x.extent for x in axes), size))
        pitch = size + (COSTS.padding if size >= COSTS.padded else 0)
        halves = 2 if self.is_stepped else 1
        shared = self.buffer(name, factor.dtype, halves * pitch * self.tile.depth, "shared")
        fragment = self.buffer(f"own_{name}", factor.dtype, own * self.tile.threads, "private")
        staged = self.buffer(f"next_{name}", factor.dtype, size * self.tile.depth, "private")
        return _Side(factor, axes, block, size, own, shared, fragment, staged, pitch)

    def buffer(self, name: str, dtype: DType, size: int, role: str) -> Buffer:
        """Return a new buffer that only this kernel uses."""
        while name in self.buffer_names:
            name += "_"
        self.buffer_names.add(name)
        return Buffer(name, dtype, size, role)

    def kernel(self) -> Kernel:
        """Return the whole kernel.

        While a tile of terms is multiplied, the next one is loaded and stored into the other half of shared memory.
        """
        body = self.blocks(self.finish())
        return replace(self.old, buffers=(*self.old.buffers, *self.own()), body=body, threads=self.tile.threads)

    def partial_kernel(self, sums: str) -> Kernel:
        """Return the kernel that stores the sums of segments in the buffer ``sums``."""
        position, size = row_major(self.match.outer)
        body = self.blocks(self.keep_parts(sums, as_index(self.part) * size + position))
        out = Buffer(sums, self.match.acc.dtype, size * self.parts, "out")
        old = replace(self.old, buffers=(*(b for b in self.old.buffers if b.role == "in"), out, *self.own()))
        return replace(part_of(old, f"{self.old.name}_parts", (), body, (), ()), threads=self.tile.threads)

    def own(self) -> tuple[Buffer, ...]:
        """Return the buffers that only this kernel uses."""
        sides = (self.rows, self.columns)
        return (*(s.shared for s in sides), self.sums, *(b for s in sides for b in (s.fragment, s.staged)))

    def blocks(self, finish: Stmt) -> tuple[Stmt, ...]:
        """Return the loops over blocks around the sums and the statement ``finish``."""
        sides = (self.rows, self.columns)
        start, step = as_index(0), as_index(self.step)
        first = [stmt for s in sides for stmt in (self.load(s, start), self.share(s, start))]
        body: tuple[Stmt, ...] = (*first, Barrier("block"))
        if self.is_stepped:
            ahead = tuple(self.load(s, step + 1) for s in sides)
            shared = tuple(self.share(s, step + 1) for s in sides)
            inside = (*ahead, self.multiply(step), *shared, Barrier("block"))
            body = (*body, Loop(self.step, "serial", inside))
        else:
            body = (*body, self.multiply(start))
        outer = (self.part, *self.match.shared, self.rows.block, self.columns.block)
        return wrap([(axis, "block") for axis in outer], (self.clear(), *body, finish))

    # ---- where a thread's results are

    def own_row(self, side: _Side, thread: Axis, own: Index) -> Index:
        """Return the row (or column) of the tile for row ``own`` of a thread.

        Threads have quads of neighbours, so that together they access contiguous memory.
        """
        across = self.tile.columns // self.tile.own_columns
        number = as_index(thread) // across if side is self.rows else as_index(thread) % across
        together = min(QUAD, side.own)
        spread = side.size // (side.own // together)
        return own // together * spread + number * together + own % together

    def placed(
        self, statements: tuple[Stmt, ...], groups: Sequence[tuple[tuple[Axis, ...], Index, Index]], guard: Guard
    ) -> tuple[tuple[Stmt, ...], BodyCopier]:
        """Return a copy of statements at given iterations, under a guard, with its copier.

        ``groups`` are (axes, number of the iteration of all axes together, offset along the innermost axis). If an
        index cannot be proven to be within its buffer, the digit of the outermost of several axes is taken modulo its
        extent: that changes no value, but lets the proof succeed.
        """
        copies: list[tuple[tuple[Stmt, ...], BodyCopier]] = []
        for wrapped in (False, True):
            axes = {x: digit for group in groups for x, digit in _digits(*group, wrapped)}
            copier = BodyCopier(self.names, axes)
            copies.append((_guarded(copier.body(statements), guard, self.sums.name), copier))
            if self.is_within(copies[-1][0]):
                return copies[-1]
        self.is_proven = False
        return copies[0]

    def is_within(self, statements: Sequence[Stmt]) -> bool:
        """Check whether all accesses are proven to be inside their buffers."""
        sizes = {b.name: b.size for b in self.old.buffers}
        accesses = [s for s in statements if isinstance(s, Load | Store) and s.buffer in sizes]
        return all(stays_within(s.index, s.guard, sizes[s.buffer]) is None for s in accesses)

    # ---- parts of the kernel

    def clear(self) -> Stmt:
        """Set all sums to their initial value."""
        thread, own = self.names.axis("t", self.tile.threads), self.names.axis("r", self.tile.owned)
        start = self.match.acc.init if self.parts == 1 else _zero(self.match.acc.dtype)
        store = Store(self.sums.name, self.own_sum(thread, as_index(own)), start)
        return _nest(((thread, "thread"), (own, "unroll")), (store,))

    def own_sum(self, thread: Axis, number: Index) -> Index:
        return as_index(thread) * self.tile.owned + number

    def element(self, side: _Side, rounds: Axis, thread: Axis) -> tuple[Index, Index]:
        """Return (row, term) of a thread's element of a tile in a round; together, threads load contiguous elements."""
        number = as_index(rounds) * self.tile.threads + as_index(thread)
        if self.is_along_terms(side):
            return number // self.tile.depth, number % self.tile.depth
        return number % side.size, number // side.size

    def rounds(self, side: _Side) -> tuple[Axis, Axis]:
        """Return the axes over the threads, and over the elements of a tile that each loads."""
        return (
            self.names.axis("t", self.tile.threads),
            self.names.axis("u", side.size * self.tile.depth // self.tile.threads),
        )

    def staged(self, side: _Side, thread: Axis, rounds: Axis) -> Index:
        return as_index(thread) * rounds.extent + as_index(rounds)

    def load(self, side: _Side, step: Index) -> Stmt:
        """Load each thread's elements of a tile of a factor into ``staged``, with zeros after the last term."""
        thread, rounds = self.rounds(side)
        row, term = self.element(side, rounds, thread)
        flat = as_index(side.block) * side.size + row
        position = as_index(self.part) * self.segment_terms + step * self.tile.depth + term
        guard = (*side.inside(flat), *self.has_term(position))
        groups = ((side.axes, flat, as_index(0)), (self.match.reduced, position, as_index(0)))
        loads, copier = self.placed(side.factor.statements, groups, guard)
        value, extra = self.zero_after_terms(side.factor, copier.name(side.factor.value), position)
        store = Store(side.staged.name, self.staged(side, thread, rounds), value)
        return _nest(((thread, "thread"), (rounds, "unroll")), (*loads, *extra, store))

    def share(self, side: _Side, step: Index) -> Stmt:
        """Store the elements that threads have loaded in the shared tile."""
        thread, rounds = self.rounds(side)
        row, term = self.element(side, rounds, thread)
        value = self.names.scalar("v")
        read = Load(value, side.staged.name, self.staged(side, thread, rounds), side.factor.dtype)
        store = Store(side.shared.name, self.half(side, step) + term * side.pitch + row, value)
        return _nest(((thread, "thread"), (rounds, "unroll")), (read, store))

    def half(self, side: _Side, step: Index) -> Index:
        """Return the offset of a step's tile in the shared buffer."""
        return step % 2 * (self.tile.depth * side.pitch)

    def is_along_terms(self, side: _Side) -> bool:
        """Check whether the stride of terms in memory is smaller than the stride of rows."""
        terms = [abs(s) for x in self.match.reduced[-1:] if (s := _step(side.factor, x))]
        rows = [abs(s) for x in side.axes[-1:] if (s := _step(side.factor, x))]
        return bool(terms) and (not rows or _is_less(min(terms), min(rows)))

    def has_term(self, position: Index) -> Guard:
        """Return the guard for the existence of a term; empty where all exist."""
        terms, (_, high) = self.match.terms, bounds(position)
        within = not is_size(terms) and not is_size(high) and high < terms
        return () if within else (Bound(position, 0, terms),)

    def zero_after_terms(self, factor: Factor, value: str, position: Index) -> tuple[str, tuple[Stmt, ...]]:
        """Return (name, statements) of the factor, or of zero after the last term; no statements if guarded loads give
        zero already."""
        zero_else = all(s.other is None or not s.other.value for s in factor.loads)
        if not self.has_term(position) or (factor.is_zero_outside and zero_else):
            return value, ()
        number, inside, chosen = (self.names.scalar(x) for x in ("n", "c", "z"))
        return chosen, (
            IndexLet(number, position - self.match.terms, int64),
            Let(inside, "lt", (number, Const(0, int64)), bool_),
            Let(chosen, "select", (inside, value, _zero(factor.dtype)), factor.dtype),
        )

    def multiply(self, step: Index) -> Stmt:
        """Multiply a tile of terms; each thread computes the products for its results."""
        thread, term = self.names.axis("t", self.tile.threads), self.names.axis("k", self.tile.depth)
        fragments = tuple(self.fragment(side, step, thread, term) for side in (self.rows, self.columns))
        return _nest(((thread, "thread"), (term, "unroll")), (*fragments, self.outer_product(thread)))

    def fragment(self, side: _Side, step: Index, thread: Axis, term: Axis) -> Stmt:
        """Copy a thread's elements of a factor for one term from shared memory, 16 bytes at a time."""
        together = gcd(side.own, VECTOR_BYTES // side.factor.dtype.itemsize)
        vectors, lane = self.names.axis("r", side.own // together), self.names.axis("v", together)
        own = as_index(vectors) * together + as_index(lane)
        value = self.names.scalar("v")
        index = self.half(side, step) + as_index(term) * side.pitch + self.own_row(side, thread, own)
        read = Load(value, side.shared.name, index, side.factor.dtype)
        keep = Store(side.fragment.name, as_index(thread) * side.own + own, value)
        return _nest(((vectors, "unroll"), (lane, "vector" if together > 1 else "unroll")), (read, keep))

    def outer_product(self, thread: Axis) -> Stmt:
        """Add the outer product of a thread's rows and columns of one term to its sums."""
        row, column = self.names.axis("r", self.tile.own_rows), self.names.axis("c", self.tile.own_columns)
        values = {}
        loads = []
        for side, own in ((self.rows, row), (self.columns, column)):
            name = values[side.factor.value] = self.names.scalar("v")
            index = as_index(thread) * side.own + as_index(own)
            loads.append(Load(name, side.fragment.name, index, side.factor.dtype))
        product = self.names.scalar("p")
        multiply = replace(
            self.match.product, name=product, args=tuple(values[str(x)] for x in self.match.product.args)
        )
        number = as_index(row) * self.tile.own_columns + as_index(column)
        add = Store(self.sums.name, self.own_sum(thread, number), product, combine="add")
        return _nest(((row, "unroll"), (column, "unroll")), (*loads, multiply, add))

    def finish(self) -> Stmt:
        """Return the epilogue for each existing result of a thread."""
        return self.each_result(self.match.after)

    def keep_parts(self, sums: str, index: Index) -> Stmt:
        """Store the sums of a segment."""
        name = self.names.scalar("s")
        return self.each_result((Read(name, self.match.acc.name), Store(sums, index, name)))

    def each_result(self, after: tuple[Stmt, ...]) -> Stmt:
        """Return ``after`` for each result, with sums read from the thread's buffer; neighbouring columns are a
        vector."""
        thread = self.names.axis("t", self.tile.threads)
        row = self.names.axis("r", self.tile.own_rows)
        together = self.columns_per_store()
        vectors = self.names.axis("c", self.tile.own_columns // together)
        lane = self.names.axis("v", together)
        across = as_index(vectors) * together
        flat = as_index(self.rows.block) * self.rows.size + self.own_row(self.rows, thread, as_index(row))
        first = as_index(self.columns.block) * self.columns.size + self.own_row(self.columns, thread, across)
        number = as_index(row) * self.tile.own_columns + across + lane
        sums = Load("", self.sums.name, self.own_sum(thread, number), self.match.acc.dtype)
        read = tuple(replace(sums, name=s.name) if isinstance(s, Read) else s for s in after)
        groups = ((self.rows.axes, flat, as_index(0)), (self.columns.axes, first, as_index(lane)))
        guard = (*self.rows.inside(flat), *self.columns.inside(first, together - 1))
        body, _ = self.placed(read, groups, guard)
        kind = "vector" if together > 1 else "unroll"
        return _nest(((thread, "thread"), (row, "unroll"), (vectors, "unroll"), (lane, kind)), body)

    def columns_per_store(self) -> int:
        """Return the columns to store at a time: up to 16 bytes if the innermost extent is a multiple of that, else
        1."""
        columns = gcd(self.columns.own, QUAD, VECTOR_BYTES // self.match.acc.dtype.itemsize)
        inner = self.columns.axes[-1].extent
        return columns if not is_size(inner) and inner % columns == 0 else 1


# ---- small parts


def _digits(axes: tuple[Axis, ...], flat: Index, more: Index, wrapped: bool) -> list[tuple[Axis, Index]]:
    """Return the index along each axis in iteration ``flat`` of all of them, plus ``more`` along the innermost one."""
    digits = list(unflatten(flat, tuple(x.extent for x in axes)))
    if wrapped and len(axes) > 1:
        digits[0] = digits[0] % axes[0].extent
    digits[-1] = digits[-1] + more
    return list(zip(axes, digits, strict=True))


def _tiles(extent: int, size: int) -> int:
    return (extent + (size - 1)) // size


def _nest(axes: Sequence[tuple[Axis, str]], body: tuple[Stmt, ...]) -> Stmt:
    for axis, kind in reversed(axes):
        body = (Loop(axis, kind, body),)
    return body[0]


def _step(factor: Factor, axis: Axis) -> int:
    """Return the stride of a factor along an axis, from the first of its loads with a stride; 0 if none has one."""
    return next((c for s in factor.loads if (c := s.index.coefficient(axis))), 0)


def _zero(dtype: DType) -> Const:
    return Const(0.0 if dtype.kind in "fh" else False if dtype.kind == "b" else 0, dtype)


def _is_less(a: int, b: int) -> bool:
    return not is_size(a) and (is_size(b) or a < b)


def _guarded(body: tuple[Stmt, ...], guard: Guard, but: str = "") -> tuple[Stmt, ...]:
    """Add a guard to all loads and stores, except accesses of the buffer ``but``."""
    if not guard:
        return body
    return tuple(
        replace(s, guard=(*s.guard, *guard), other=s.other or _zero(s.dtype))
        if isinstance(s, Load) and s.buffer != but
        else replace(s, guard=(*s.guard, *guard))
        if isinstance(s, Store) and s.buffer != but
        else s
        for s in body
    )
