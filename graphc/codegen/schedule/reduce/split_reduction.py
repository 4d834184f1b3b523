"""Split reductions: long reductions with few results become partial results of segments, and a short final reduction.

The segments depend on the size of the reduction alone, so the result is the same for every number of threads. Where
that size is known only at run time, all segments but the last have a fixed length. A program compiled for that size
alone has segments of nearly equal length, and may round differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from graphc.base.records import dataclass
from graphc.base.sizes.size import hint, is_one
from graphc.codegen.machine.costs import ReductionCosts
from graphc.codegen.schedule.loops.transform import block_index, blocks, merge_loops, wrap
from graphc.codegen.schedule.memory.prepacking import call_invariant_storages
from graphc.codegen.schedule.reduce.column_reduction import Ahead, ColumnSums, is_column_sum, no_statements
from graphc.codegen.schedule.reduce.map_fusion import RowSums, fuse_maps
from graphc.ir.kernel.index import Axis, Index, as_index
from graphc.ir.kernel.map import BodyCopier, Names
from graphc.ir.kernel.statements import (
    Acc,
    Buffer,
    Call,
    Kernel,
    Load,
    Loop,
    Program,
    Read,
    Stmt,
    Storage,
    Store,
    Update,
    identity,
    walk,
)


def split_reductions(program: Program, costs: ReductionCosts | Mapping[str, ReductionCosts]) -> Program:
    """Split long reductions with few results into partial reductions.

    Needs: a lowered program; ``costs`` for all kernels, or by name for the kernels to consider. Does: gives each long
    reduction with few results a kernel for partial results, fused with the kernel before it if both access the same
    rows. Leaves: an equivalent program, except for the order of rounding.
    """
    fixed = call_invariant_storages(program)
    table = costs if isinstance(costs, Mapping) else dict.fromkeys((k.name for k in program.kernels), costs)
    considered = [k for k in program.kernels if k.name in table]
    splitters = {k.name: _KernelSplitter(k, table[k.name], _read_once(program, k, fixed)) for k in considered}
    split = {name: pieces for name, s in splitters.items() if (pieces := s.run()) is not None}
    if not split:
        return program
    row_sums = {name: sums for s in splitters.values() for name, sums in s.row_sums.items()}
    return _Calls(program, split, row_sums).run()


class _Calls:
    """Builder of a program in which the calls of split kernels are replaced by calls of their pieces."""

    def __init__(self, program: Program, split: dict[str, list[Kernel]], row_sums: dict[str, RowSums]):
        self.program = program
        self.split = split
        self.row_sums = row_sums
        self.kernels = {p.name: p for k in program.kernels for p in split.get(k.name, [k])}
        self.joined: dict[tuple[str, str, tuple[int, ...]], str] = {}
        """Names of fused kernels, by both kernels and the positions of the second's arguments in the first's."""
        self.storages = list(program.storages)
        self.names = {s.name for s in program.storages}
        self.calls: list[Call] = []

    def run(self) -> Program:
        """Return the program of the pieces."""
        for call in self.program.calls:
            if call.kernel in self.split:
                self.add_pieces(call)
            else:
                self.calls.append(call)
        called = {c.kernel for c in self.calls}
        kernels = tuple(k for k in self.kernels.values() if k.name in called)
        return replace(self.program, storages=tuple(self.storages), kernels=kernels, calls=tuple(self.calls))

    def add_pieces(self, call: Call) -> None:
        """Append the calls of the pieces of a kernel."""
        bound = dict(zip((b.name for b in self.program.kernel(call.kernel).arguments), call.args, strict=True))
        offsets = {name: call.offset(i) for i, name in enumerate(bound)}
        for piece in self.split[call.kernel]:
            for buffer in piece.arguments:
                if buffer.name not in bound:
                    bound[buffer.name] = _fresh(f"{buffer.name}.{len(self.names)}", self.names)
                    size = call.size(buffer.size)
                    self.storages.append(Storage(bound[buffer.name], buffer.dtype, (size,), "temp"))
            args = tuple(bound[b.name] for b in piece.arguments)
            piece_offsets = tuple(offsets.get(b.name, Index()) for b in piece.arguments) if call.offsets else ()
            self.add(replace(call, kernel=piece.name, args=args, offsets=piece_offsets))

    def add(self, call: Call) -> None:
        """Append a call, or fuse it with the last one."""
        last = self.calls[-1] if self.calls else None
        plain = last is not None and not (last.loops or call.loops or last.offsets or call.offsets)
        if last is not None and plain and call.kernel in self.row_sums:
            joined = fuse_maps(self.program, self.kernels[last.kernel], last, self.row_sums[call.kernel], call)
            if joined is not None:
                shared = tuple(last.args.index(a) if a in last.args else -1 for a in call.args)
                name = self.joined.setdefault(
                    (last.kernel, call.kernel, shared), f"{joined[0].name}_{len(self.joined)}"
                )
                self.kernels.setdefault(name, replace(joined[0], name=name))
                self.calls[-1] = replace(joined[1], kernel=name)
                return
        self.calls.append(call)


def _fresh(name: str, used: set[str]) -> str:
    while name in used:
        name += "x"
    used.add(name)
    return name


class _PlainNames(Names):
    """Generator of names that neither a lowered kernel nor the schedule uses."""

    def axis(self, prefix: str, extent: int) -> Axis:
        return Axis(f"{prefix}r{self._number()}", extent)

    def scalar(self, old: str) -> str:
        return f"{old}r{self._number()}"


@dataclass(frozen=True)
class _Partial:
    """Buffer with the partial results of one accumulator: ``count`` of them for each result."""

    buffer: Buffer
    acc: Acc
    count: int
    stride: int
    """Elements between the partial results of one result, chosen so that elements computed together are contiguous."""

    def index(self, result: Index, number: Index) -> Index:
        """Return the index of partial result ``number`` of a result."""
        return result * self.count + number if is_one(self.stride) else result + number * self.stride


def _read_once(program: Program, kernel: Kernel, fixed: frozenset[str]) -> frozenset[str]:
    """Return the buffers to which no call binds a storage that could be packed once for many calls."""
    calls = program.calls_of(kernel.name)
    packed = {b.name for c in calls for b, a in zip(kernel.arguments, c.args, strict=True) if a in fixed or c.loops}
    return frozenset(b.name for b in kernel.arguments) - packed


class _KernelSplitter:
    def __init__(self, kernel: Kernel, costs: ReductionCosts, once: frozenset[str] = frozenset()):
        self.kernel = kernel
        self.costs = costs
        self.once = once
        """Buffers without a packed copy that is kept from call to call."""
        self.names = _PlainNames()
        self.outer: list[Axis] = []
        self.partials: list[_Partial] = []
        self.row_sums: dict[str, RowSums] = {}
        """Kernels by name that may be fused with a kernel over the same rows."""

    def run(self) -> list[Kernel] | None:
        """Return the kernels of partial results, and the kernel of the rest; None when there is nothing to split."""
        body = self.kernel.body
        while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "parallel":
            self.outer.append(body[0].axis)
            body = body[0].body
        self.many = self.results > self.costs.few_results
        if len(self.kernel.arguments) != len(self.kernel.buffers):
            return None
        kernels: list[Kernel] = []
        statements = list(merge_loops(body, self.names))
        for position, stmt in enumerate(statements):
            if any(isinstance(s, Store) for s, _ in walk((stmt,))):
                break
            if isinstance(stmt, Loop) and stmt.kind == "reduce" and self.is_long(statements, position):
                before = tuple(statements[:position])
                kernels.append(self.partial_kernel(before, stmt, len(kernels)))
                statements[position] = self.combined(stmt)
        if not kernels:
            return None
        rest = wrap([(a, "parallel") for a in self.outer], tuple(statements))
        return [*kernels, self.kernel_of(self.kernel.name, rest)]

    @property
    def results(self) -> int:
        """Number of results, for expected sizes."""
        return hint(prod(a.extent for a in self.outer))

    def is_long(self, statements: Sequence[Stmt], position: int) -> bool:
        """Check whether the reduction at a position is worth splitting.

        A reduction with many results is not, if its rows are read again after it: tile by tile, these reads hit L2.
        """
        loop, rest = statements[position], statements[position + 1 :]
        assert isinstance(loop, Loop)
        trips = _trips((loop,)) * self.results
        if not self.many:
            return hint(loop.axis.extent) > 1 and trips >= self.costs.split_from
        if self.results * self.costs.fewest_rows > self.costs.rows_stretch:
            return False
        again = _loaded((loop,)) & _loaded([s for s in rest if isinstance(s, Loop)])
        once = self.once if len(self.outer) == 1 else frozenset()
        if trips < self.costs.rows_from or again:
            return False
        return is_column_sum(self.outer[-1], statements[:position], loop, self.costs, once)

    def partial_kernel(self, before: tuple[Stmt, ...], loop: Loop, number: int) -> Kernel:
        """Return the kernel that computes the partial results of a loop; record their buffers in ``partials``."""
        results = prod(a.extent for a in self.outer)
        stretch = self.costs.rows_stretch if self.many else self.costs.stretch
        runs = blocks(loop.axis.extent, max(1, stretch // (_trips(loop.body) * self.results)))
        count = sum(n for _, n, _ in runs)
        updated = {s.acc for s, _ in walk(loop.body) if isinstance(s, Update)}
        partials = []
        for acc in (s for s in before if isinstance(s, Acc) and s.name in updated):
            name = f"partial{len(self.partials) + len(partials)}"
            buffer = Buffer(name, acc.dtype, count * results, "out")
            partials.append(_Partial(buffer, acc, count, results if self.many else 1))
        from_identity = tuple(
            replace(s, init=identity(s.combine, s.dtype)) if isinstance(s, Acc) and s.name in updated else s
            for s in before
        )
        self.partials += partials
        body: list[Stmt] = []
        before_run = 0
        name = f"{self.kernel.name}_partial{number}"
        if self.many:
            sums = ColumnSums(self.names, self.outer[-1], from_identity, loop, self.costs)
            return self.row_kernel(name, sums, runs, partials)
        for run in runs:
            body += self.segments(from_identity, loop, run, before_run, partials)
            before_run += run[1]
        return self.kernel_of(name, tuple(body))

    def row_kernel(
        self, name: str, sums: ColumnSums, runs: list[tuple[int, int, int]], partials: list[_Partial]
    ) -> Kernel:
        """Return the same kernel for many results: whole rows are added up."""

        def build(ahead: Ahead) -> Kernel:
            body: list[Stmt] = []
            before_run = 0
            for run in runs:
                body += self.row_segments(replace(sums, ahead=ahead), run, before_run, partials)
                before_run += run[1]
            return self.kernel_of(name, tuple(body), sums.scratch)

        kernel = build(no_statements)
        if len(self.outer) == len(sums.widths) == len(sums.axes) == 1:
            self.row_sums[name] = RowSums(kernel, sums, build)
        return kernel

    def segments(
        self, before: tuple[Stmt, ...], loop: Loop, run: tuple[int, int, int], before_run: int, partials: list[_Partial]
    ) -> tuple[Stmt, ...]:
        """Return the nest over segments of equal length, with ``before_run`` segments before them."""
        start, count, size = run
        stretch, step = self.names.axis("s", count), self.names.axis("k", size)
        outer = {a: self.names.axis("o", a.extent) for a in self.outer}
        position = block_index(start, (stretch, size), (step, 1))
        copier = BodyCopier(self.names, {**outer, loop.axis: position})
        body = [*copier.body(before), Loop(step, "reduce", copier.body(loop.body))]
        result = _flat(outer.values())
        for partial in partials:
            value = self.names.scalar("p")
            body.append(Read(value, copier.renamed[partial.acc.name]))
            body.append(Store(partial.buffer.name, partial.index(result, as_index(stretch) + before_run), value))
        return wrap([(stretch, "parallel"), *((a, "parallel") for a in outer.values())], tuple(body))

    def row_segments(
        self, sums: ColumnSums, run: tuple[int, int, int], before_run: int, partials: list[_Partial]
    ) -> tuple[Stmt, ...]:
        """Return the nest over segments of equal numbers of rows."""
        start, count, size = run
        stretch = self.names.axis("s", count)
        outer = {a: self.names.axis("o", a.extent) for a in self.outer[:-1]}
        by_acc = {p.acc.name: p for p in partials}

        def target(acc: Acc, column: Index) -> tuple[str, Index]:
            result = _flat(outer.values()) * self.outer[-1].extent + column
            return by_acc[acc.name].buffer.name, by_acc[acc.name].index(result, as_index(stretch) + before_run)

        body = sums.nest(outer, block_index(start, (stretch, size)), size, target)
        return wrap([(stretch, "parallel"), *((a, "parallel") for a in outer.values())], body)

    def combined(self, loop: Loop) -> Loop:
        """Return the loop that combines the partial results of a split loop."""
        updated = {s.acc for s, _ in walk(loop.body) if isinstance(s, Update)}
        partials = [p for p in self.partials if p.acc.name in updated]
        number = self.names.axis("k", partials[0].count)
        result = _flat(self.outer)
        body: list[Stmt] = []
        for partial in partials:
            value = self.names.scalar("p")
            body.append(Load(value, partial.buffer.name, partial.index(result, as_index(number)), partial.acc.dtype))
            body.append(Update(partial.acc.name, value))
        return Loop(number, "reduce", tuple(body))

    def kernel_of(self, name: str, body: tuple[Stmt, ...], scratch: Sequence[Buffer] = ()) -> Kernel:
        """Return a kernel with the buffers that its body uses."""
        stored = {s.buffer for s, _ in walk(body) if isinstance(s, Store)}
        used = stored | {s.buffer for s, _ in walk(body) if isinstance(s, Load)}
        buffers = [b if b.name in stored else replace(b, role="in") for b in self.kernel.buffers if b.name in used]
        extra = [p.buffer for p in self.partials if p.buffer.name in used]
        buffers += [b if b.name in stored else replace(b, role="in") for b in extra]
        return Kernel(name, (*buffers, *scratch), body, self.kernel.origin)


def _loaded(body: Sequence[Stmt]) -> set[str]:
    """Return the buffers read by statements."""
    return {s.buffer for s, _ in walk(tuple(body)) if isinstance(s, Load)}


def _trips(body: tuple[Stmt, ...]) -> int:
    """Return the iterations of the longest innermost loop of a nest, for expected sizes."""
    trips = (prod(hint(a.axis.extent) for a in loops) for s, loops in walk(body) if not isinstance(s, Loop))
    return max(trips, default=1)


def _flat(axes: Iterable[Axis]) -> Index:
    """Return the row-major number of a point."""
    index = as_index(0)
    for axis in axes:
        index = index * axis.extent + as_index(axis)
    return index
