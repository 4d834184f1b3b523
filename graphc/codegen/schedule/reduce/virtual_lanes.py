"""Sums in virtual lanes: the one order of long reductions in strict order, which vectors of every width can follow.

Lane ``l`` of LANES adds the terms ``l``, ``l + LANES``, ``l + 2 * LANES`` and so on; then the upper half of the lanes
is added to the lower half until one is left. The program says so itself, so it means the same on every machine::

    acc s = 0                                acc s = 0
    for i in n reduce { s += f(i) }    ->    for l in 32 parallel {
                                               acc p = 0
                                               for j in n / 32 reduce { p += f(32 * j + l) }
                                               lanes[l] = p
                                             }
                                             for l in 16 parallel { lanes[l] += lanes[l + 16] }
                                             ...                     # 8, 4, 2, and 1
                                             s += lanes[0]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from graphc.base.sizes.size import bounds
from graphc.codegen.machine.costs import ReductionCosts
from graphc.codegen.schedule.loops.transform import block_index, merge_loops, wrap
from graphc.codegen.schedule.memory.prepacking import call_invariant_storages
from graphc.codegen.schedule.reduce.column_reduction import leaf
from graphc.codegen.schedule.reduce.split_reduction import split_reductions
from graphc.ir.kernel.access import UNIT, access
from graphc.ir.kernel.index import Axis, Index, as_index, axes_of
from graphc.ir.kernel.map import BodyCopier, Names, chain_of
from graphc.ir.kernel.products import FACTORS
from graphc.ir.kernel.statements import (
    Acc,
    Buffer,
    IndexLet,
    Kernel,
    Let,
    Load,
    Loop,
    Program,
    Read,
    Stmt,
    Store,
    Update,
    identity,
)

LANES = 32
"""Two vectors of AVX-512, eight of SSE2: enough sums at once to hide the latency of additions."""
FEWEST_TERMS = 2 * LANES
"""Terms from which a reduction has lanes. One whose number of terms is known only at run time has them if it may have
that many."""
FEW_RESULTS = 8
"""Contiguous results from which lanes of a vector hold results instead of terms."""


def canonical_sums(program: Program) -> Program:
    """Give the sums of a lowered program the order that strict order promises.

    Long sums with few results are split as by default, since their segments depend on sizes alone. Then reductions get
    virtual lanes, unless vectors can hold neighbouring results, or the sum is a matrix product. Sums of integers stay.
    """
    program = split_reductions(program, ReductionCosts())
    fixed = call_invariant_storages(program) | {s.name for s in program.storages if s.cls == "param"}
    kernels = [_Kernel(k, _call_invariant(program, k, fixed)).run() for k in program.kernels]
    return replace(program, kernels=tuple(kernels))


def _call_invariant(program: Program, kernel: Kernel, fixed: frozenset[str]) -> frozenset[str]:
    """Return the buffers that all calls bind to weights, or to what depends on weights alone."""
    calls = program.calls_of(kernel.name)
    varying = {b.name for c in calls for b, a in zip(kernel.arguments, c.args, strict=True) if a not in fixed}
    return frozenset(b.name for b in kernel.arguments) - varying


class _Kernel:
    """Builder of one kernel with virtual lanes."""

    def __init__(self, kernel: Kernel, fixed: frozenset[str]):
        self.kernel = kernel
        self.fixed = fixed
        self.names = Names("w")
        self.scratch: dict[str, Buffer] = {}

    def run(self) -> Kernel:
        """Return the kernel, the same one if no reduction needs lanes."""
        body = self.body(merge_loops(self.kernel.body, self.names), (), {})
        if not self.scratch:
            return self.kernel
        return replace(self.kernel, buffers=(*self.kernel.buffers, *self.scratch.values()), body=body)

    def body(self, body: tuple[Stmt, ...], parallel: tuple[Axis, ...], accs: Mapping[str, Acc]) -> tuple[Stmt, ...]:
        """Return statements with lanes in their reductions, given the parallel loops and accumulators around them."""
        accs = {**accs, **{s.name: s for s in body if isinstance(s, Acc)}}
        statements: list[Stmt] = []
        for stmt in body:
            if not isinstance(stmt, Loop):
                statements.append(stmt)
            elif (axis := self.lane_axis(stmt, parallel, accs)) is not None:
                statements += self.in_lanes(stmt, axis, accs)
            else:
                around = (*parallel, stmt.axis) if stmt.kind == "parallel" else parallel
                statements.append(replace(stmt, body=self.body(stmt.body, around, accs)))
        return tuple(statements)

    def lane_axis(self, loop: Loop, parallel: tuple[Axis, ...], accs: Mapping[str, Acc]) -> Axis | None:
        """Return the axis of a nest of reductions whose terms to distribute over lanes; None for other loops."""
        if loop.kind != "reduce":
            return None
        loops, body = chain_of(loop)
        plain = all(isinstance(s, Let | IndexLet | Load | Store | Update) for s in body)
        if not plain or any(inner.until for inner in loops):
            return None
        updated = [accs[s.acc].dtype.kind for s in body if isinstance(s, Update)]
        if not updated or any(kind != "f" for kind in updated) or any(isinstance(s, Store) and s.combine for s in body):
            return None
        long = [inner.axis for inner in loops if bounds(inner.axis.extent)[1] >= FEWEST_TERMS]
        if not long or self.has_neighbours(body, parallel) or self.is_product(body):
            return None
        return long[-1]

    def has_neighbours(self, body: Sequence[Stmt], parallel: tuple[Axis, ...]) -> bool:
        """Check whether vectors can hold contiguous results, each with a sum of its own."""
        for axis in parallel:
            found = [access(s.index, axis) for s in body if isinstance(s, Load)]
            if bounds(axis.extent)[1] >= FEW_RESULTS and UNIT in found and all(a.plain for a in found):
                return True
        return False

    def is_product(self, body: Sequence[Stmt]) -> bool:
        """Check whether a body sums products of matrices, or of a vector and weights."""
        lets = {s.name: s for s in body if isinstance(s, Let)}
        products = [lets[str(s.value)] for s in body if isinstance(s, Update) and s.value in lets]
        if len(products) != 1 or products[0].op not in FACTORS:
            return False
        loads = {s.name: s for s in body if isinstance(s, Load)}
        first, second = ({*_loads(x, lets, loads)} for x in products[0].args)
        axes = [{a for name in names for a in axes_of(loads[name].index)} for names in (first, second)]
        own = axes[0] - axes[1], axes[1] - axes[0]
        if all(own):
            return True
        matrix = first if own[0] else second if own[1] else set()
        return bool(matrix) and all(loads[name].buffer in self.fixed for name in matrix)

    def in_lanes(self, loop: Loop, axis: Axis, accs: Mapping[str, Acc]) -> Iterator[Stmt]:
        """Yield the statements that replace a reduction."""
        updated = dict.fromkeys(s.acc for s in leaf(loop)[1] if isinstance(s, Update))
        sums = [(accs[name], self.buffer(accs[name], number)) for number, name in enumerate(updated)]
        full, rest = axis.extent // LANES, axis.extent % LANES
        lane, step = self.names.axis("l", LANES), self.names.axis("j", full)
        yield from self.lanes(loop, axis, lane, block_index(0, (step, LANES), (lane, 1)), step, sums)
        if bounds(rest)[1]:
            tail = self.names.axis("t", rest)
            yield from self.lanes(loop, axis, tail, block_index(full * LANES, (tail, 1)), None, sums)
        for acc, buffer in sums:
            width = LANES // 2
            while width:
                half = self.names.axis("h", width)
                value = self.names.scalar(acc.name)
                load = Load(value, buffer.name, as_index(half) + width, acc.dtype)
                store = Store(buffer.name, as_index(half), value, combine=acc.combine)
                yield from wrap([(half, "parallel")], (load, store))
                width //= 2
            total = self.names.scalar(acc.name)
            yield Load(total, buffer.name, as_index(0), acc.dtype)
            yield Update(acc.name, total)

    def lanes(
        self, loop: Loop, axis: Axis, lane: Axis, position: Index, step: Axis | None, sums: Sequence[tuple[Acc, Buffer]]
    ) -> tuple[Stmt, ...]:
        """Return the loop over lanes; without ``step`` each has one more term, which is added to its sum."""
        copier = BodyCopier(self.names, {axis: position})
        body: list[Stmt] = []
        for acc, _ in sums:
            name = copier.define(acc.name)
            body.append(Acc(name, acc.dtype, acc.combine, identity(acc.combine, acc.dtype)))
        nest: list[tuple[Axis, str]] = []
        for inner in leaf(loop)[0]:
            if inner is axis:
                nest += [(step, "reduce")] if step is not None else []
            else:
                nest.append((self.names.axis("i", inner.extent), "reduce"))
                copier.axes[inner] = nest[-1][0]
        body += wrap(nest, copier.body(leaf(loop)[1]))
        for acc, buffer in sums:
            value = self.names.scalar(acc.name)
            combine = acc.combine if step is None else None
            body += [Read(value, copier.renamed[acc.name]), Store(buffer.name, as_index(lane), value, combine=combine)]
        return wrap([(lane, "parallel")], tuple(body))

    def buffer(self, acc: Acc, number: int) -> Buffer:
        """Return the scratch buffer for the lanes of the ``number``-th accumulator of a loop."""
        name = f"lanes{number}_{acc.dtype}"
        return self.scratch.setdefault(name, Buffer(name, acc.dtype, LANES, "scratch"))


def _loads(ref: object, lets: Mapping[str, Let], loads: Mapping[str, Load]) -> Iterator[str]:
    """Yield the loads from which an operand is computed."""
    pending, seen = [ref], set()
    while pending:
        name = pending.pop()
        if not isinstance(name, str) or name in seen:
            continue
        seen.add(name)
        if name in loads:
            yield name
        elif name in lets:
            pending += lets[name].args
