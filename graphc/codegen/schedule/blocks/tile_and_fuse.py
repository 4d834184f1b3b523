"""Tile-and-fuse: kernels with large temporaries between them run tile by tile, and each tile stays in L2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from math import log, prod
from typing import NamedTuple

from graphc.base.records import dataclass
from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.size import UndecidedSize, always, hint, is_one, is_size
from graphc.codegen.machine.costs import MemoryCosts
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.loops.transform import wrap
from graphc.codegen.schedule.memory.prepacking import call_invariant_storages
from graphc.ir.kernel.access import GATHERED, UNIFORM, access
from graphc.ir.kernel.dims import dims_of_program
from graphc.ir.kernel.expected import ample
from graphc.ir.kernel.index import Axis, Index, as_index, axes_of
from graphc.ir.kernel.index_range import guarded_bounds
from graphc.ir.kernel.map import BodyCopier, Names, substitute_axes
from graphc.ir.kernel.statements import Buffer, Call, Guard, IndexLet, Kernel, Load, Loop, Program, Store, walk


def tile_and_fuse(program: Program, target: Target, skipped: list[str] | None = None) -> Program:
    """Put loops around neighbouring calls so that only a tile of a large temporary between them exists at a time.

    Needs: a lowered program. Does: finds sequences of calls whose kernels share outer parallel loops and pass each
    other temporaries too large for a cache. Leaves: an equivalent program; every element is computed as before.

    A loop over a size known only at run time needs a proof, for all sizes, that its iterations are disjoint. It runs
    one iteration at a time, or in tiles of a fixed number of iterations; the same calls then follow for the last tile,
    of one iteration up to a full tile. Reasons against a loop are appended to ``skipped``.
    """
    tiler = _Tiler(program, target.l2_bytes // 2, target.costs.memory)
    tiled = tiler.run()
    if skipped is not None:
        skipped += dict.fromkeys(tiler.skipped)
    return tiled


class _Steps:
    """Strides of a kernel's accesses along its outermost loops."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.outer: list[Axis] = []
        """Axes of the parallel loops around the whole body, outermost first."""
        body = kernel.body
        while len(body) == 1 and isinstance(loop := body[0], Loop) and loop.kind == "parallel":
            self.outer.append(loop.axis)
            body = loop.body
        self.accesses: dict[str, list[tuple[Index, Guard]]] = {}
        pinned: set[Axis] = set()
        for stmt, _ in walk(kernel.body):
            if isinstance(stmt, Load | Store):
                self.accesses.setdefault(stmt.buffer, []).append((stmt.index, stmt.guard))
                for bound in stmt.guard:
                    pinned |= axes_of(bound.index)
            elif isinstance(stmt, IndexLet):
                pinned |= axes_of(stmt.index)
        self.steps = {a: steps for a in self.outer if a not in pinned and (steps := self._steps(a)) is not None}
        """For the axes that may become loops around calls: the stride of each buffer per iteration."""

    def _steps(self, axis: Axis) -> dict[str, int] | None:
        """Return the stride of each buffer along an axis; None if accesses to one buffer differ or are not strided."""
        scratch = {b.name for b in self.kernel.buffers if b.role == "scratch"}
        strides: dict[str, int] = {}
        for buffer, accesses in self.accesses.items():
            walks = {access(index, axis, ()) for index, _ in accesses}
            walk = walks.pop()
            backwards = not always("<=", 0, walk.stride)
            if walks or walk == GATHERED or backwards or (buffer in scratch and walk != UNIFORM):
                return None
            strides[buffer] = walk.stride
        return strides

    def reach(self, buffer: str, axes: Iterable[Axis]) -> int:
        """Return the end (exclusive) of the used elements of a buffer while ``axes`` stay at 0.

        Raises UndecidedSize where that depends on the sizes of a call.
        """
        still = dict.fromkeys(axes, 0)
        ends = [guarded_bounds(substitute_axes(i, still), g)[1] + 1 for i, g in self.accesses.get(buffer, [])]
        return max(ends, default=0)


@dataclass(frozen=True)
class _Loop:
    """A candidate loop around a sequence: one axis of every kernel, in tiles of ``size`` iterations.

    If the number of iterations is known only at run time and tiles have several, ``tiles`` does not count the last
    tile, which may be partial.
    """

    axes: tuple[Axis, ...]
    """Axes, one per call of the sequence."""
    size: int = 1

    @property
    def extent(self) -> int:
        """Number of iterations of the kernels' loops."""
        return self.axes[0].extent

    @property
    def is_open(self) -> bool:
        """True if a last, perhaps partial tile follows the loop."""
        return is_size(self.extent) and self.size != 1

    @property
    def tiles(self) -> int:
        """Number of iterations of the loop around the calls."""
        return (self.extent - 1) // self.size if self.is_open else self.extent // self.size

    @property
    def last(self) -> int:
        """Iterations of the kernels' loops in the tile after the loop: 1 to ``size``."""
        return self.extent - self.tiles * self.size


class _Argument(NamedTuple):
    """Argument of a call for one of the kernel's buffers."""

    buffer: Buffer
    name: str
    """Name of the storage."""
    start: int
    """The element of the storage with which the buffer begins."""

    @property
    def location(self) -> tuple[str, int]:
        """Storage and first element: equal for buffers at the same location; others do not overlap."""
        return self.name, self.start


def _arguments(program: Program, call: Call) -> list[_Argument]:
    starts = [offset.constant for offset in call.offsets] or [0] * len(call.args)
    return list(map(_Argument, program.kernel(call.kernel).arguments, call.args, starts))


def _overlap(subviews: Sequence[_Argument], arguments: Iterable[Sequence[_Argument]]) -> bool:
    """Check whether one of the ``subviews`` overlaps an argument that begins elsewhere in the same storage."""
    divided = {subview.name for subview in subviews}
    ends: dict[tuple[str, int], int] = {}
    for argument in (a for each in arguments for a in each if a.name in divided):
        ends[argument.location] = max(ends.get(argument.location, 0), argument.start + argument.buffer.size)
    return any(a[0] == b[0] and ends[a] > b[1] for a, b in pairwise(sorted(ends)))


class _Sequence:
    """Neighbouring calls with their common loops."""

    def __init__(
        self,
        program: Program,
        facts: Mapping[str, _Steps],
        calls: Sequence[Call],
        arguments: Sequence[Sequence[_Argument]],
        inner: Sequence[str],
        costs: MemoryCosts,
    ):
        self.program = program
        self.costs = costs
        self.calls = calls
        self.arguments = arguments
        """Arguments, per call of the sequence."""
        self.facts = [facts[c.kernel] for c in calls]
        self.inner = inner
        """Temporaries that only these calls use, so that one tile at a time suffices."""
        self.obstacle = ""
        """The reason why the calls get no loop, if sizes known only at run time are that reason."""
        self.value: Callable[[int], int] = hint
        """Current evaluation of sizes: ``hint`` (expected) or ``ample`` (large)."""
        self.shared = self._shared()
        self.loops = self._common_loops()

    def _shared(self) -> set[tuple[str, int]]:
        """Return the locations in storages through which the calls depend on each other."""
        users: dict[tuple[str, int], set[int]] = {}
        written: set[tuple[str, int]] = set()
        for number, arguments in enumerate(self.arguments):
            for argument in arguments:
                users.setdefault(argument.location, set()).add(number)
                if argument.buffer.role != "in":
                    written.add(argument.location)
        return {location for location in written if len(users[location]) > 1}

    def _common_loops(self) -> list[_Loop]:
        """Return the loops with equal strides of all calls through their shared locations, largest strides first."""
        candidates_by_step: list[tuple[int, _Loop]] = []
        for first in self.facts[0].steps:
            moves: dict[tuple[str, int], int] = {}
            axes: list[Axis] = []
            for number, facts in enumerate(self.facts):
                candidates = facts.steps if number else [first]
                axis = next((a for a in candidates if self._fits(number, a, first, moves)), None)
                if axis is None:
                    break
                axes.append(axis)
                moves.update(self._moves(number, axis))
            else:
                candidates_by_step.append((max(self.ample(moves[name, 0]) for name in self.inner), _Loop(tuple(axes))))
        return [loop for _, loop in sorted(candidates_by_step, key=lambda item: -item[0])]

    def _moves(self, number: int, axis: Axis) -> dict[tuple[str, int], int]:
        """Return the stride of a call through each shared location; 0 where its buffers disagree."""
        steps = self.facts[number].steps[axis]
        strides: dict[tuple[str, int], int] = {}
        for argument in self.arguments[number]:
            if argument.location in self.shared:
                step = steps.get(argument.buffer.name, 0)
                strides[argument.location] = step if strides.get(argument.location, step) == step else 0
        return strides

    def _fits(self, number: int, axis: Axis, first: Axis, moves: Mapping[tuple[str, int], int]) -> bool:
        """Check whether a call's axis has the same strides through shared locations as the calls before it."""
        if axis.extent != first.extent:
            return False
        mine = self._moves(number, axis)
        linked = [name for name in mine if name in moves]
        return (not number or bool(linked)) and all(mine.values()) and all(mine[n] == moves[n] for n in linked)

    def ample(self, size: int) -> int:
        """Evaluate a size for the largest calls."""
        return ample(size, self.costs.tile_dimension)

    def choose(self, limit: int) -> list[_Loop]:
        """Choose the loops around the calls and their tiles; empty when tiling does not pay.

        If an iteration takes more memory the larger the sizes are (as over queries of attention), the tiles are those
        for the largest calls, because calls of one tile lose nothing by that. Otherwise expected sizes decide.
        """
        self.value = self.ample
        loops = self._tiles(limit)
        if _has_open_tiles(loops) and self._grows(loops[-1]):
            return loops
        self.value = hint
        return self._tiles(limit)

    def _tiles(self, limit: int) -> list[_Loop]:
        """Choose loops whose tiles of all inner temporaries take about ``limit`` bytes.

        The target is larger if every iteration reads more bytes again; it may be missed by a factor of ``tile_step``.
        """
        rest = sum(self.value(self.program.storage(name).nbytes) for name in self.inner)
        chosen: list[_Loop] = []
        for loop in self.loops:
            tile_bytes, extent = max(limit, self._reread_bytes(loop)), self.value(loop.extent)
            if rest <= limit or not self._are_disjoint([*chosen, loop]):
                break
            if rest // extent >= tile_bytes:
                chosen.append(loop)
                rest //= extent
                continue
            size = self._iterations(loop, rest, tile_bytes)
            if (
                size < extent
                and tile_bytes / self.costs.tile_step <= rest * size / extent <= tile_bytes * self.costs.tile_step
            ):
                tile = replace(loop, size=size)
                rereads = tile_bytes > limit and not self._grows(tile)
                self.obstacle = self._why_not_open(tile, rereads) if tile.is_open else ""
                chosen += [] if self.obstacle else [tile]
            break
        return chosen

    def _grows(self, loop: _Loop) -> bool:
        """Check whether an iteration uses more shared memory the larger the sizes are."""
        return any(is_size(step) for step in self._moves(0, loop.axes[0]).values())

    def _why_not_open(self, tile: _Loop, rereads: bool) -> str:
        """Return the reason against tiles whose number is known only at run time, or ""."""
        if not always("<=", 1, tile.extent):
            return f"a loop of {tile.extent} iterations may be empty and cannot be cut into tiles"
        if rereads:
            return f"tiles of {tile.extent} iterations, a number known at run time, would each read more than they hold"
        return ""

    def _iterations(self, loop: _Loop, rest: int, tile_bytes: int) -> int:
        """Return the iterations of a tile of about ``tile_bytes`` bytes, where all iterations take ``rest`` bytes."""
        extent = self.value(loop.extent)
        if not is_size(loop.extent):
            return extent // min(_divisors(extent), key=lambda n: abs(log(rest / n / tile_bytes)))
        if rest / extent >= tile_bytes / self.costs.tile_single:
            return 1
        return -(-extent // max(1, round(rest / tile_bytes)))

    def _reread_bytes(self, loop: _Loop) -> int:
        """Return the bytes that every iteration of a loop reads again."""
        nbytes = 0
        around = list(takewhile(lambda other: other.axes != loop.axes, self.loops))
        for number, arguments in enumerate(self.arguments):
            steps = self.facts[number].steps
            for argument in arguments:
                buffer = argument.buffer
                if argument.location not in self.shared and not steps[loop.axes[number]].get(buffer.name, 0):
                    slices = prod(self.value(x.extent) for x in around if steps[x.axes[number]].get(buffer.name, 0))
                    nbytes += self.value(buffer.size * buffer.dtype.itemsize) // slices
        return nbytes

    def _are_disjoint(self, loops: Sequence[_Loop]) -> bool:
        """Check whether different iterations use disjoint elements of all shared locations."""
        for location in self.shared:
            width, steps = 0, []
            for number, arguments in enumerate(self.arguments):
                for argument in arguments:
                    if argument.location == location:
                        buffer = argument.buffer
                        axes = [loop.axes[number] for loop in loops]
                        width = max(width, self.facts[number].reach(buffer.name, axes))
                        steps = [(self.facts[number].steps[a][buffer.name], a.extent) for a in axes]
            for step, extent in sorted(steps, key=lambda x: (hint(x[0]), hint(x[1]))):
                if not always("<=", width, step):
                    return False
                width = step * extent
        return True


def _has_open_tiles(loops: Sequence[_Loop]) -> bool:
    """Check whether the innermost loop runs over tiles whose number is known only at run time."""
    return bool(loops) and loops[-1].is_open


def _divisors(extent: int) -> list[int]:
    return [n for n in range(1, extent + 1) if extent % n == 0]


class _Tiler:
    def __init__(self, program: Program, limit: int, costs: MemoryCosts):
        self.program = program
        self.limit = limit
        self.costs = costs
        self.facts: dict[str, _Steps] = {}
        self.kernels: dict[tuple, Kernel] = {}
        """Memo of the kernels of one tile, by kernel, sizes of tiles and sizes of buffers."""
        self.storages = {s.name: s for s in program.storages}
        self.loops = 0
        self.skipped: list[str] = []
        """Reasons for leaving calls unchanged because of sizes known only at run time."""
        self.loop_names = {axis.name for call in program.calls for axis in call.loops}
        self.dims = dims_of_program(program)

    def run(self) -> Program:
        """Return the program with loops around its sequences."""
        sequences = self.sequences()
        if not sequences:
            return self.program
        calls: list[Call] = []
        number = 0
        for start, stop in sorted(sequences):
            sequence, loops = sequences[start, stop]
            calls += [*self.program.calls[number:start], *self.tiled(sequence, loops)]
            number = stop
        calls += self.program.calls[number:]
        called = {c.kernel for c in calls}
        kernels = [k for k in (*self.program.kernels, *self.kernels.values()) if k.name in called]
        return replace(self.program, storages=tuple(self.storages.values()), kernels=tuple(kernels), calls=tuple(calls))

    def sequences(self) -> dict[tuple[int, int], tuple[_Sequence, list[_Loop]]]:
        """Return the disjoint sequences worth tiling, by (first call, call after the last).

        Shorter spans of temporaries come first; a span that overlaps sequences is merged with them if that pays.
        """
        spans = self.spans()
        sequences: dict[tuple[int, int], tuple[_Sequence, list[_Loop]]] = {}
        for first, last in sorted(spans.values(), key=lambda span: (span[1] - span[0], span)):
            start, stop = first, last + 1
            overlapping = [span for span in sequences if span[0] < stop and start < span[1]]
            start, stop = min([start, *(s for s, _ in overlapping)]), max([stop, *(e for _, e in overlapping)])
            inner = [name for name, (a, b) in spans.items() if start <= a and b < stop]
            merged = self.sequence(start, stop, inner)
            if merged is not None and (
                _has_open_tiles(merged[1]) or not any(_has_open_tiles(sequences[span][1]) for span in overlapping)
            ):
                for span in overlapping:
                    del sequences[span]
                sequences[start, stop] = merged
        return sequences

    def spans(self) -> dict[str, tuple[int, int]]:
        """Return the first and last call of each temporary too large for a cache.

        Leaves out temporaries whose calls are far apart, and call-invariant ones, which are computed only once.
        """
        spans: dict[str, tuple[int, int]] = {}
        invariant = call_invariant_storages(self.program)
        for number, call in enumerate(self.program.calls):
            for name in call.args:
                storage = self.storages[name]
                large = ample(storage.nbytes, self.costs.tile_dimension) > self.limit
                if large and storage.cls == "temp" and not storage.alias and name not in invariant:
                    spans[name] = spans.get(name, (number, number))[0], number
        return {name: (a, b) for name, (a, b) in spans.items() if a < b < a + self.costs.tile_calls}

    def sequence(self, start: int, stop: int, inner: Sequence[str]) -> tuple[_Sequence, list[_Loop]] | None:
        """Return a sequence of calls with the loops to put around it; None if there are none."""
        calls = self.program.calls[start:stop]
        if any(c.loops for c in calls) or any(self.storages[a].alias for c in calls for a in c.args):
            return None
        arguments = [_arguments(self.program, call) for call in calls]
        subviews = [argument for each in arguments for argument in each if argument.start]
        if any(subview.name in inner for subview in subviews) or _overlap(subviews, arguments):
            return None
        for call in calls:
            if call.kernel not in self.facts:
                self.facts[call.kernel] = _Steps(self.program.kernel(call.kernel))
        sequence = _Sequence(self.program, self.facts, calls, arguments, inner, self.costs)
        try:
            loops = sequence.choose(self.limit)
            self.inner_sizes(sequence, loops)
        except UndecidedSize as error:
            loops, sequence.obstacle = [], error.what
        if sequence.obstacle:
            self.skipped.append(f"{', '.join(c.kernel for c in calls)}: no loop around them, for {sequence.obstacle}")
        return (sequence, loops) if loops else None

    def tiled(self, sequence: _Sequence, loops: Sequence[_Loop]) -> list[Call]:
        """Return the calls of a sequence inside loops; shrink the inner temporaries to a tile."""
        around = tuple(Axis(self.loop_name(), loop.tiles) for loop in loops)
        sizes = self.inner_sizes(sequence, loops)
        for name, size in sizes.items():
            self.storages[name] = replace(self.storages[name], shape=(size,))
        starts = [as_index(axis) * loop.size for axis, loop in zip(around, loops, strict=True)]
        tile = loops[-1]
        if not tile.is_open:
            return self.calls_of_tile(sequence, loops, around, starts, sizes)
        rows = self.new_tile_size(tile.size, min(tile.size, max(1, hint(tile.extent))))
        (dimension,) = dimensions([rows]).values()
        open_loops = [*loops[:-1], replace(tile, size=rows)]
        calls = self.calls_of_tile(sequence, open_loops, around, starts, sizes)
        starts[-1] = as_index(tile.tiles * tile.size)
        last = self.calls_of_tile(sequence, open_loops, around[:-1], starts, sizes)
        full = [replace(call, sizes=((dimension, tile.size),)) for call in calls]
        return [*full, *(replace(call, sizes=((dimension, tile.last),)) for call in last)]

    def new_tile_size(self, high: int, expected: int) -> int:
        """Return a new dimension for the size of a tile, 1 to ``high`` iterations; calls bind it for their kernels."""
        name = f"tile_{high}_{expected}"
        while name in self.dims:
            name += "_"
        return Dim(name, 1, high, expected)

    def calls_of_tile(
        self,
        sequence: _Sequence,
        loops: Sequence[_Loop],
        around: tuple[Axis, ...],
        starts: Sequence[Index],
        sizes: Mapping[str, int],
    ) -> list[Call]:
        """Return the calls of a sequence for a tile that begins at iterations ``starts`` of the kernels' loops."""
        calls = []
        for number, call in enumerate(sequence.calls):
            facts = sequence.facts[number]
            tiles = {loop.axes[number]: loop.size for loop in loops}
            offsets: list[Index] = []
            buffers: list[Buffer] = []
            for buffer, name, start in sequence.arguments[number]:
                offset, size = Index(), sizes.get(name, buffer.size)
                if name in sizes and loops[-1].is_open:
                    size = _reach(facts, buffer.name, tiles)
                if name not in sizes:
                    for loop, iteration in zip(loops, starts, strict=True):
                        offset = offset + iteration * facts.steps[loop.axes[number]].get(buffer.name, 0)
                if offset != Index():
                    size = _reach(facts, buffer.name, tiles)
                offsets.append(offset + start)
                buffers.append(replace(buffer, size=size))
            kernel = self.tile_kernel(facts.kernel, tiles, buffers)
            calls.append(replace(call, kernel=kernel.name, loops=around, offsets=tuple(offsets)))
        return calls

    def inner_sizes(self, sequence: _Sequence, loops: Sequence[_Loop]) -> dict[str, int]:
        """Return the elements of a tile of each inner temporary."""
        sizes: dict[str, int] = {}
        for number, arguments in enumerate(sequence.arguments):
            tiles = {loop.axes[number]: loop.size for loop in loops}
            for buffer, name, _ in arguments:
                if name in sequence.inner:
                    sizes[name] = max(sizes.get(name, 0), _reach(sequence.facts[number], buffer.name, tiles))
        return sizes

    def tile_kernel(self, kernel: Kernel, tiles: Mapping[Axis, int], buffers: Sequence[Buffer]) -> Kernel:
        """Return the kernel of one tile, whose outer loops run over the tile's iterations only."""
        key = (kernel.name, tuple(tiles.items()), tuple(b.size for b in buffers))
        if key not in self.kernels:
            names = Names("c")
            axes: dict[Axis, Axis | int] = {}
            outer: list[tuple[Axis, str]] = []
            body = kernel.body
            while set(tiles) - set(axes):
                loop = body[0]
                assert isinstance(loop, Loop)
                axis = names.axis("i", tiles.get(loop.axis, loop.axis.extent))
                axes[loop.axis] = 0 if is_one(axis.extent) else axis
                outer.append((axis, loop.kind))
                body = loop.body
            inside = wrap(outer, BodyCopier(names, axes).body(body))
            scratch = tuple(b for b in kernel.buffers if b.role == "scratch")
            name = f"{kernel.name}_block{len(self.kernels)}"
            self.kernels[key] = Kernel(name, (*buffers, *scratch), inside, kernel.origin)
        return self.kernels[key]

    def loop_name(self) -> str:
        """Return a name that no other loop around calls has."""
        while f"r{self.loops}" in self.loop_names:
            self.loops += 1
        self.loop_names.add(f"r{self.loops}")
        return f"r{self.loops}"


def _reach(facts: _Steps, buffer: str, tiles: Mapping[Axis, int]) -> int:
    """Return the end (exclusive) of the elements of a buffer that one tile uses."""
    inside = sum(facts.steps[a].get(buffer, 0) * (size - 1) for a, size in tiles.items())
    return facts.reach(buffer, tiles) + inside
