"""Tiled contractions: blocks of threads compute tiles of results from tiles of both factors that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from graphc.base.dtypes import DType, bool_, int64
from graphc.base.sizes.size import is_size
from graphc.codegen.machine.cuda.costs import TILES as COSTS
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.gpu.split_epilogue import nest_of, part_of, row_major
from graphc.codegen.schedule.gpu.sum_of_products import Factor, SumOfProducts, find_sum_of_products
from graphc.codegen.schedule.gpu.tile import Tile, choose_tile
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

QUAD = 4
"""Neighbouring rows or columns that a thread has."""
_SUMS = "own_sums"
VECTOR_BYTES = 16
"""What a thread reads of shared memory at a time."""


def tile_contraction(kernel: Kernel, target: Target, names: Names) -> Kernel | None:
    """Needs: a lowered kernel without threads; ``names`` that it does not use. Does: makes a sum of products a kernel
    of blocks of threads, each of which computes a tile of results from tiles of the factors in shared memory. Leaves: a
    kernel that adds the same products in the same order, or None where it is no such sum, or one with few rows or
    columns."""
    made = _tiled(kernel, names, 1)
    tiled = made.kernel() if made is not None else None
    return tiled if made is not None and made.is_proven else None


def describe_tiles(tiled: Kernel) -> str:
    """What ``tile_contraction`` has chosen, for people."""
    size = sum(b.size * b.dtype.itemsize for b in tiled.buffers if b.role == "shared")
    owned = next(b.size for b in tiled.buffers if b.name.startswith(_SUMS)) // tiled.threads
    each = "a result" if owned == 1 else f"{owned} results"
    return f"tiles of both factors in {size} bytes of shared memory, {each} for each of {tiled.threads} threads"


def split_terms(kernel: Kernel, target: Target, names: Names, sums: str) -> tuple[Kernel, Kernel] | None:
    """Needs: as ``tile_contraction``. Does: cuts long sums with few results into stretches, a fixed number of them, of
    which blocks of threads compute tiles into ``sums``, its last argument, and adds these in order in a second kernel,
    of which ``sums`` is the last input. Leaves: two kernels, the second one without threads and under the old name; or
    None where that does not pay."""
    made = _tiled(kernel, names, COSTS.most_parts)
    if made is None or made.parts == 1:
        return None
    partial = made.partial_kernel(sums)
    return (partial, _sum_of_parts(kernel, made.found, made.parts, names, sums)) if made.is_proven else None


def _tiled(kernel: Kernel, names: Names, most_parts: int) -> _TiledKernel | None:
    """What writes the kernel, with the tile chosen."""
    found = find_sum_of_products(kernel, names)
    if found is None:
        return None
    first, second = found.only(found.left), found.only(found.right)
    if not first or not second:
        return None
    along_first = _is_stored_along(found, first[-1]) and not _is_stored_along(found, second[-1])
    factors = (found.right, found.left) if along_first else (found.left, found.right)
    rows, columns = (found.only(f) for f in factors)
    chosen = choose_tile(found, prod(x.extent for x in rows), prod(x.extent for x in columns), COSTS, most_parts)
    return None if chosen is None else _TiledKernel(kernel, found, factors, chosen, names)


def _sum_of_parts(kernel: Kernel, found: SumOfProducts, parts: int, names: Names, sums: str) -> Kernel:
    """The kernel that adds the sums of stretches."""
    axes, body = nest_of(kernel)
    place, size = row_major(axes)
    part, value = names.axis("p", parts), names.scalar("v")
    load = Load(value, sums, as_index(part) * size + place, found.acc.dtype)
    added = Loop(part, "reduce", (load, Update(found.acc.name, value)))
    using = tuple(added if isinstance(s, Loop) else s for s in body)
    given = Buffer(sums, found.acc.dtype, size * parts, "in")
    return part_of(kernel, kernel.name, axes, using, (given,), ())


def _is_stored_along(found: SumOfProducts, axis: Axis) -> bool:
    """Whether neighbours along an axis are stored side by side."""
    return any(s.index.coefficient(axis) == 1 for s in found.stores)


@dataclass(frozen=True)
class _Side:
    """The rows or the columns of the tiles."""

    factor: Factor
    axes: tuple[Axis, ...]
    block: Axis
    """Which tile it is."""
    size: int
    """Rows or columns of a tile."""
    own: int
    """How many of them one thread has."""
    shared: Buffer
    """The tile of the factor, ``pitch`` elements for each term."""
    fragment: Buffer
    """What each thread reads of it for one term."""
    staged: Buffer
    """What each thread has read for the next tile."""
    pitch: int

    @property
    def extent(self) -> int:
        """How many there are in all tiles together."""
        return prod(x.extent for x in self.axes)

    def inside(self, flat: Index, more: int = 0) -> Guard:
        """That a row and so many behind it exist; empty where all do."""
        whole = not is_size(self.extent) and self.extent % self.size == 0
        return () if whole else (Bound(flat, 0, self.extent - more),)


class _TiledKernel:
    """Writes the kernel; one method for each of its parts."""

    def __init__(
        self,
        kernel: Kernel,
        found: SumOfProducts,
        factors: tuple[Factor, Factor],
        chosen: tuple[Tile, int],
        names: Names,
    ):
        self.old = kernel
        self.found = found
        self.tile, self.parts = chosen
        """The tile, and into how many stretches the terms are cut."""
        self.names = names
        self.is_proven = True
        """Whether every access that has been written is proven to lie in its buffer."""
        self.taken = {b.name for b in kernel.buffers}
        steps = _tiles(found.terms, self.tile.depth * self.parts)
        self.part = names.axis("p", self.parts)
        self.stretch = steps * self.tile.depth
        self.is_stepped = is_size(steps) or steps > 1
        """Whether one tile of the factors is read while another one is multiplied."""
        self.step = names.axis("k", steps)
        self.rows = self.side(factors[0], self.tile.rows, self.tile.own_rows, "rows")
        self.columns = self.side(factors[1], self.tile.columns, self.tile.own_columns, "columns")
        self.sums = self.buffer(_SUMS, found.acc.dtype, self.tile.threads * self.tile.owned, "private")

    def side(self, factor: Factor, size: int, own: int, name: str) -> _Side:
        """The rows or columns."""
        axes = self.found.only(factor)
        block = self.names.axis("b", _tiles(prod(x.extent for x in axes), size))
        pitch = size + (COSTS.padding if size >= COSTS.padded else 0)
        halves = 2 if self.is_stepped else 1
        shared = self.buffer(name, factor.dtype, halves * pitch * self.tile.depth, "shared")
        fragment = self.buffer(f"own_{name}", factor.dtype, own * self.tile.threads, "private")
        staged = self.buffer(f"next_{name}", factor.dtype, size * self.tile.depth, "private")
        return _Side(factor, axes, block, size, own, shared, fragment, staged, pitch)

    def buffer(self, name: str, dtype: DType, size: int, role: str) -> Buffer:
        """A buffer of the kernel's own."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return Buffer(name, dtype, size, role)

    def kernel(self) -> Kernel:
        """All of it: while a tile of terms is multiplied, the next one is read, and shared in the other half."""
        body = self.blocks(self.finish())
        return replace(self.old, buffers=(*self.old.buffers, *self.own()), body=body, threads=self.tile.threads)

    def partial_kernel(self, sums: str) -> Kernel:
        """The kernel of the sums of stretches, which go to a buffer of that name."""
        place, size = row_major(self.found.outer)
        body = self.blocks(self.keep_parts(sums, as_index(self.part) * size + place))
        out = Buffer(sums, self.found.acc.dtype, size * self.parts, "out")
        old = replace(self.old, buffers=(*(b for b in self.old.buffers if b.role == "in"), out, *self.own()))
        return replace(part_of(old, f"{self.old.name}_parts", (), body, (), ()), threads=self.tile.threads)

    def own(self) -> tuple[Buffer, ...]:
        """Buffers of the kernel's own."""
        sides = (self.rows, self.columns)
        return (*(s.shared for s in sides), self.sums, *(b for s in sides for b in (s.fragment, s.staged)))

    def blocks(self, finish: Stmt) -> tuple[Stmt, ...]:
        """The loops over blocks, with what a block does and finishes with."""
        sides = (self.rows, self.columns)
        start, step = as_index(0), as_index(self.step)
        first = [part for s in sides for part in (self.load(s, start), self.share(s, start))]
        body: tuple[Stmt, ...] = (*first, Barrier("block"))
        if self.is_stepped:
            ahead = tuple(self.load(s, step + 1) for s in sides)
            shared = tuple(self.share(s, step + 1) for s in sides)
            inside = (*ahead, self.multiply(step), *shared, Barrier("block"))
            body = (*body, Loop(self.step, "serial", inside))
        else:
            body = (*body, self.multiply(start))
        outer = (self.part, *self.found.shared, self.rows.block, self.columns.block)
        return wrap([(axis, "block") for axis in outer], (self.clear(), *body, finish))

    # ---- where a thread's results are

    def places(self, side: _Side, thread: Axis, own: Index) -> Index:
        """The row of the tile that is the thread's: quads of neighbours, which threads read and write side by side."""
        across = self.tile.columns // self.tile.own_columns
        number = as_index(thread) // across if side is self.rows else as_index(thread) % across
        together = min(QUAD, side.own)
        spread = side.size // (side.own // together)
        return own // together * spread + number * together + own % together

    def placed(
        self, statements: tuple[Stmt, ...], groups: Sequence[tuple[tuple[Axis, ...], Index, Index]], guard: Guard
    ) -> tuple[tuple[Stmt, ...], BodyCopier]:
        """Statements with each group of axes at such a number of an iteration of all of them together, and so many
        places further along the innermost one, under a condition that says that there are these iterations. Where it is
        hard to see of an index that it is within its buffer then, the number of the outermost of several axes is taken
        modulo its extent, which changes nothing."""
        made: list[tuple[tuple[Stmt, ...], BodyCopier]] = []
        for wrapped in (False, True):
            axes = {x: digit for group in groups for x, digit in _digits(*group, wrapped)}
            copier = BodyCopier(self.names, axes)
            made.append((_guarded(copier.body(statements), guard, self.sums.name), copier))
            if self.is_within(made[-1][0]):
                return made[-1]
        self.is_proven = False
        return made[0]

    def is_within(self, statements: Sequence[Stmt]) -> bool:
        """Whether all accesses are proven to lie in their buffers."""
        sizes = {b.name: b.size for b in self.old.buffers}
        accesses = [s for s in statements if isinstance(s, Load | Store) and s.buffer in sizes]
        return all(stays_within(s.index, s.guard, sizes[s.buffer]) is None for s in accesses)

    # ---- parts

    def clear(self) -> Stmt:
        """All sums at what they start from."""
        thread, own = self.names.axis("t", self.tile.threads), self.names.axis("r", self.tile.owned)
        start = self.found.acc.init if self.parts == 1 else _zero(self.found.acc.dtype)
        store = Store(self.sums.name, self.own_sum(thread, as_index(own)), start)
        return _nest(((thread, "thread"), (own, "unroll")), (store,))

    def own_sum(self, thread: Axis, number: Index) -> Index:
        return as_index(thread) * self.tile.owned + number

    def element(self, side: _Side, rounds: Axis, thread: Axis) -> tuple[Index, Index]:
        """Which row and term of a tile a thread reads in a round: neighbours in memory side by side."""
        number = as_index(rounds) * self.tile.threads + as_index(thread)
        if self.is_along_terms(side):
            return number // self.tile.depth, number % self.tile.depth
        return number % side.size, number // side.size

    def rounds(self, side: _Side) -> tuple[Axis, Axis]:
        """Axes over the threads and over what each reads of a tile."""
        return (
            self.names.axis("t", self.tile.threads),
            self.names.axis("u", side.size * self.tile.depth // self.tile.threads),
        )

    def staged(self, side: _Side, thread: Axis, rounds: Axis) -> Index:
        return as_index(thread) * rounds.extent + as_index(rounds)

    def load(self, side: _Side, step: Index) -> Stmt:
        """Each thread reads what it will share of a tile of a factor, zeros behind the last term."""
        thread, rounds = self.rounds(side)
        row, term = self.element(side, rounds, thread)
        flat = as_index(side.block) * side.size + row
        at = as_index(self.part) * self.stretch + step * self.tile.depth + term
        guard = (*side.inside(flat), *self.behind(at))
        places = ((side.axes, flat, as_index(0)), (self.found.reduced, at, as_index(0)))
        made, copier = self.placed(side.factor.statements, places, guard)
        value, extra = self.zero_behind(side.factor, copier.name(side.factor.value), at)
        store = Store(side.staged.name, self.staged(side, thread, rounds), value)
        return _nest(((thread, "thread"), (rounds, "unroll")), (*made, *extra, store))

    def share(self, side: _Side, step: Index) -> Stmt:
        """A tile that threads have read becomes shared."""
        thread, rounds = self.rounds(side)
        row, term = self.element(side, rounds, thread)
        value = self.names.scalar("v")
        read = Load(value, side.staged.name, self.staged(side, thread, rounds), side.factor.dtype)
        store = Store(side.shared.name, self.half(side, step) + term * side.pitch + row, value)
        return _nest(((thread, "thread"), (rounds, "unroll")), (read, store))

    def half(self, side: _Side, step: Index) -> Index:
        """Where the tile of a step starts in the shared buffer."""
        return step % 2 * (self.tile.depth * side.pitch)

    def is_along_terms(self, side: _Side) -> bool:
        """Whether neighbouring terms lie nearer to each other in memory than neighbouring rows."""
        terms = [abs(s) for x in self.found.reduced[-1:] if (s := _step(side.factor, x))]
        rows = [abs(s) for x in side.axes[-1:] if (s := _step(side.factor, x))]
        return bool(terms) and (not rows or _is_less(min(terms), min(rows)))

    def behind(self, at: Index) -> Guard:
        """That a term exists; empty where all do."""
        terms, (_, high) = self.found.terms, bounds(at)
        within = not is_size(terms) and not is_size(high) and high < terms
        return () if within else (Bound(at, 0, terms),)

    def zero_behind(self, factor: Factor, value: str, at: Index) -> tuple[str, tuple[Stmt, ...]]:
        """The factor, or zero where there is no term; nothing to do where it is what the guard leaves."""
        zero_else = all(s.other is None or not s.other.value for s in factor.loads)
        if not self.behind(at) or (factor.is_zero_outside and zero_else):
            return value, ()
        number, inside, chosen = (self.names.scalar(x) for x in ("n", "c", "z"))
        return chosen, (
            IndexLet(number, at - self.found.terms, int64),
            Let(inside, "lt", (number, Const(0, int64)), bool_),
            Let(chosen, "select", (inside, value, _zero(factor.dtype)), factor.dtype),
        )

    def multiply(self, step: Index) -> Stmt:
        """The products of a tile's terms, each thread those of its results."""
        thread, term = self.names.axis("t", self.tile.threads), self.names.axis("k", self.tile.depth)
        fragments = tuple(self.fragment(side, step, thread, term) for side in (self.rows, self.columns))
        return _nest(((thread, "thread"), (term, "unroll")), (*fragments, self.outer_product(thread)))

    def fragment(self, side: _Side, step: Index, thread: Axis, term: Axis) -> Stmt:
        """A thread's part of a factor for one term becomes its own, 16 bytes at a time."""
        together = gcd(side.own, VECTOR_BYTES // side.factor.dtype.itemsize)
        vectors, lane = self.names.axis("r", side.own // together), self.names.axis("v", together)
        own = as_index(vectors) * together + as_index(lane)
        value = self.names.scalar("v")
        index = self.half(side, step) + as_index(term) * side.pitch + self.places(side, thread, own)
        read = Load(value, side.shared.name, index, side.factor.dtype)
        keep = Store(side.fragment.name, as_index(thread) * side.own + own, value)
        return _nest(((vectors, "unroll"), (lane, "vector" if together > 1 else "unroll")), (read, keep))

    def outer_product(self, thread: Axis) -> Stmt:
        """What a thread's rows and columns of one term add to its sums."""
        row, column = self.names.axis("r", self.tile.own_rows), self.names.axis("c", self.tile.own_columns)
        values = {}
        loads = []
        for side, own in ((self.rows, row), (self.columns, column)):
            name = values[side.factor.value] = self.names.scalar("v")
            index = as_index(thread) * side.own + as_index(own)
            loads.append(Load(name, side.fragment.name, index, side.factor.dtype))
        product = self.names.scalar("p")
        multiply = replace(
            self.found.product, name=product, args=tuple(values[str(x)] for x in self.found.product.args)
        )
        number = as_index(row) * self.tile.own_columns + as_index(column)
        add = Store(self.sums.name, self.own_sum(thread, number), product, combine="add")
        return _nest(((row, "unroll"), (column, "unroll")), (*loads, multiply, add))

    def finish(self) -> Stmt:
        """What is done with the sums, for each of a thread's results that exists."""
        return self.each_result(self.found.after)

    def keep_parts(self, sums: str, place: Index) -> Stmt:
        """Stores the sums of a stretch."""
        name = self.names.scalar("s")
        return self.each_result((Read(name, self.found.acc.name), Store(sums, place, name)))

    def each_result(self, after: tuple[Stmt, ...]) -> Stmt:
        """Statements once for each result, with the sums read from the thread's; neighbouring columns as a vector."""
        thread = self.names.axis("t", self.tile.threads)
        row = self.names.axis("r", self.tile.own_rows)
        together = self.together()
        vectors = self.names.axis("c", self.tile.own_columns // together)
        lane = self.names.axis("v", together)
        across = as_index(vectors) * together
        flat = as_index(self.rows.block) * self.rows.size + self.places(self.rows, thread, as_index(row))
        first = as_index(self.columns.block) * self.columns.size + self.places(self.columns, thread, across)
        number = as_index(row) * self.tile.own_columns + across + lane
        sums = Load("", self.sums.name, self.own_sum(thread, number), self.found.acc.dtype)
        read = tuple(replace(sums, name=s.name) if isinstance(s, Read) else s for s in after)
        groups = ((self.rows.axes, flat, as_index(0)), (self.columns.axes, first, as_index(lane)))
        guard = (*self.rows.inside(flat), *self.columns.inside(first, together - 1))
        body, _ = self.placed(read, groups, guard)
        kind = "vector" if together > 1 else "unroll"
        return _nest(((thread, "thread"), (row, "unroll"), (vectors, "unroll"), (lane, kind)), body)

    def together(self) -> int:
        """Columns that are written at a time: 16 bytes where rows of the innermost axis are multiples of that."""
        wanted = gcd(self.columns.own, QUAD, VECTOR_BYTES // self.found.acc.dtype.itemsize)
        inner = self.columns.axes[-1].extent
        return wanted if not is_size(inner) and inner % wanted == 0 else 1


# ---- small parts


def _digits(axes: tuple[Axis, ...], flat: Index, more: Index, wrapped: bool) -> list[tuple[Axis, Index]]:
    """What each of some axes is in an iteration of all of them, ``more`` places further along the innermost one."""
    found = list(unflatten(flat, tuple(x.extent for x in axes)))
    if wrapped and len(axes) > 1:
        found[0] = found[0] % axes[0].extent
    found[-1] = found[-1] + more
    return list(zip(axes, found, strict=True))


def _tiles(extent: int, size: int) -> int:
    return (extent + (size - 1)) // size


def _nest(axes: Sequence[tuple[Axis, str]], body: tuple[Stmt, ...]) -> Stmt:
    for axis, kind in reversed(axes):
        body = (Loop(axis, kind, body),)
    return body[0]


def _step(factor: Factor, axis: Axis) -> int:
    """How far neighbours along an axis are apart in memory, where one load of a factor says so plainly."""
    return next((c for s in factor.loads if (c := s.index.coefficient(axis))), 0)


def _zero(dtype: DType) -> Const:
    return Const(0.0 if dtype.kind in "fh" else False if dtype.kind == "b" else 0, dtype)


def _is_less(a: int, b: int) -> bool:
    return not is_size(a) and (is_size(b) or a < b)


def _guarded(body: tuple[Stmt, ...], guard: Guard, but: str = "") -> tuple[Stmt, ...]:
    """Loads and stores under one more condition, those of one buffer aside."""
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
