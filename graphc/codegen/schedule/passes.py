"""Program passes over more than one kernel: loops around calls, memory, threads."""

from __future__ import annotations

from dataclasses import replace

from graphc.base.records import dataclass
from graphc.codegen.schedule.base import Context, PassResult, Scheduled, count_changes
from graphc.codegen.schedule.blocks.tile_and_fuse import tile_and_fuse
from graphc.codegen.schedule.loops.distribute import distribute_loops
from graphc.codegen.schedule.loops.double_buffering import double_buffer
from graphc.codegen.schedule.loops.loop_kernels import make_loop_kernels
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.codegen.schedule.memory.non_temporal import non_temporal_buffers
from graphc.codegen.schedule.memory.prepacking import call_invariant_first, split_prepacking
from graphc.codegen.schedule.reduce.split_reduction import split_reductions
from graphc.codegen.schedule.threads.plan import plan_threads
from graphc.codegen.schedule.threads.polls import find_polls
from graphc.ir.kernel.statements import Program


@dataclass(frozen=True)
class CallInvariantFirst:
    """Move call-invariant calls to the front.

    Needs: a lowered program. Does: moves calls that depend on weights and constants alone before all others, if the
    program has weights. Leaves: an equivalent program with all call-invariant calls first.

    ``@a(x, t); @b(w, u); @c(t, u, y)`` -> ``@b(w, u); @a(x, t); @c(t, u, y)``.
    """

    name: str = "call-invariant-first"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Keep the order among the moved calls, and among the others."""
        return _changed(scheduled, call_invariant_first(scheduled.program))


@dataclass(frozen=True)
class TileAndFuse:
    """Run neighbouring kernels tile by tile.

    Needs: kernels without lanes. Does: puts loops around neighbouring calls whose kernels share outer parallel loops,
    where a temporary between them is too large for a cache. Leaves: an equivalent program in which only a tile of such
    a temporary exists at a time.

    ``@a(x, t); @b(t, y)`` -> ``for i in 0..8: @a(x[i], t); @b(t, y[i])``.
    """

    name: str = "tile-and-fuse"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Give a reason for each group of calls that gets a loop, and for each that cannot."""
        skipped: list[str] = []
        program = tile_and_fuse(scheduled.program, context.target, skipped)
        old = {call.loops for call in scheduled.program.calls}
        groups: dict[tuple, list[str]] = {}
        for call in program.calls:
            if call.loops not in old:
                groups.setdefault(call.loops, []).append(call.kernel)
        reasons = tuple(
            f"{', '.join(names)}: {' x '.join(str(a.extent) for a in loops)} tiles, as a temporary between them is "
            f"larger than half of the L2 cache ({context.target.l2_bytes // 2} bytes)"
            for loops, names in groups.items()
        )
        return _changed(scheduled, program, (*reasons, *skipped))


@dataclass(frozen=True)
class LoopDistribution:
    """Split kernels of several nests.

    Needs: kernels without lanes. Does: splits a kernel whose nests write one buffer one after the other into a kernel
    per nest. Leaves: kernels in which one nest owns each written buffer, so that threads share it without waiting.

    ``kernel @k: for i: y[i] = 0; for j: y[p[j]] += x[j]`` -> ``kernel @k_0: for i: y[i] = 0`` and ``kernel @k_1``.
    """

    name: str = "loop-distribution"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Split kernels, and each of their calls."""
        return _changed(scheduled, distribute_loops(scheduled.program))


@dataclass(frozen=True)
class SplitReductions:
    """Split long reductions into partial reductions.

    Needs: kernels without lanes. Does: gives long reductions with few results a kernel of partial results, fused with
    the map before it if both have the same rows. Leaves: an equivalent program, except for the order of rounding,
    which is the same for every number of threads.

    ``y = sum(x[i] for i in 0..n)`` -> ``t[j] = sum(x[j * m + i] for i in 0..m); y = sum(t[j])``.
    """

    name: str = "split-reductions"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Split by the size of the reduction alone; split nothing in strict order."""
        if context.target.costs.strict_order:
            return PassResult(scheduled, 0)
        program = split_reductions(scheduled.program, context.target.costs.reduction)
        # The rest of a split kernel keeps its name. A kernel that is missing now was fused with partial sums.
        remaining = {kernel.name: kernel for kernel in program.kernels}
        split = (k.name for k in scheduled.program.kernels if remaining.get(k.name, k) is not k)
        reasons = tuple(f"{name}: few results of long sums; segments of them are summed first" for name in split)
        return _changed(scheduled, program, reasons)


@dataclass(frozen=True)
class LoopKernels:
    """Move loops around calls into kernels.

    Needs: a scheduled program without memory plan. Does: makes one kernel of a loop in which all calls compute scalars.
    Leaves: an equivalent program; carries of such a loop are accumulators, and its temporaries are not stored.

    ``repeat r: @a(c, t); @b(t, c, y[r])`` -> ``@loop(c, y): acc c; for r: ...; y[r] = ...; update c``.
    """

    name: str = "loop-kernels"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Leave loops of many statements alone, which would take long to compile."""
        return _changed(scheduled, make_loop_kernels(scheduled.program, context.target.costs.loops))


@dataclass(frozen=True)
class DoubleBuffering:
    """Remove copies of states in loops around calls.

    Needs: a scheduled program without memory plan. Does: where a step of a counted loop ends in a copy to a state, runs
    two steps in an iteration, from one buffer to the other one and back. Leaves: an equivalent program.

    ``repeat r=0..7: @a(s, t); @copy(t, s)`` -> ``repeat r=0..3: @a(s, t); @a(t, s)``.
    """

    name: str = "double-buffering"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Leave loops alone that go on while a flag is set."""
        return _changed(scheduled, double_buffer(scheduled.program))


@dataclass(frozen=True)
class Prepacking:
    """Split call-invariant calls off into a separate program.

    Needs: a scheduled program without memory plan. Does: moves the calls that depend on weights and constants alone
    into a separate program. Leaves: that program as ``prepacking``, to run once for many calls; its outputs are weights
    of the main program.

    ``@k_pack(w, t); @k(x, t, y)`` -> ``@k(x, t, y)`` with the weight ``t``, prepared by ``@k_pack(w, t)``.
    """

    name: str = "prepacking"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Split the program in two if it has such calls."""
        main, prepacking = split_prepacking(scheduled.program)
        if prepacking is None:
            return PassResult(scheduled, 0)
        count = sum(s.cls == "output" for s in prepacking.storages)
        reason = f"{len(prepacking.calls)} calls depend on weights alone; they make {count} arrays for all calls"
        changed = count_changes(scheduled.program, main)
        return PassResult(replace(scheduled, program=main, prepacking=prepacking), changed, (reason,))


@dataclass(frozen=True)
class PlanMemory:
    """Plan the arena.

    Needs: scheduled kernels. Does: places temporaries by best fit, and keeps the smallest arena. Leaves: an offset in
    the arena for every temporary, the kernels' scratch at its end. Later passes must not move calls.

    ``temp t: f32[64]``, ``temp u: f32[64]`` with disjoint lifetimes -> both at offset 0.
    """

    name: str = "memory-plan"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Count the placed temporaries as changes."""
        program = plan_memory(scheduled.program, context.target.costs.memory)
        placed = sum(a is not b for a, b in zip(scheduled.program.storages, program.storages, strict=True))
        return PassResult(replace(scheduled, program=program), placed)


@dataclass(frozen=True)
class NonTemporalStores:
    """Choose non-temporal stores.

    Needs: kernels with lanes and a memory plan. Does: finds results whose stores would only evict other data from the
    caches. Leaves: their buffers in ``execution.non_temporal``; the program unchanged.

    ``@k(x, y)`` whose ``y`` is an output of 64 MB that nothing reads -> ``non_temporal = {k: {y}}``.
    """

    name: str = "non-temporal-stores"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Count the non-temporal buffers as changes."""
        non_temporal = non_temporal_buffers(scheduled.program, context.target)
        reasons = tuple(
            f"{kernel}: stores to {', '.join(sorted(buffers))} would evict more data from the caches than later calls "
            f"would reuse (from {context.target.costs.memory.non_temporal_bytes} bytes on)"
            for kernel, buffers in non_temporal.items()
        )
        execution = replace(scheduled.execution, non_temporal=non_temporal)
        return PassResult(replace(scheduled, execution=execution), sum(map(len, non_temporal.values())), reasons)


@dataclass(frozen=True)
class PlanThreads:
    """Distribute loops over threads.

    Needs: a memory plan, because kernels that use the same bytes wait for each other. Does: chooses the kernels whose
    loops are worth sharing, and the positions of barriers. Leaves: ``execution.threads``; the program unchanged.

    ``@a(x, t); @b(t, y)`` of 1 ms each -> both are shared, with a barrier before call 1.
    """

    name: str = "thread-plan"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Count shared kernels and barriers as changes."""
        plan = plan_threads(scheduled.program, context.target)
        reasons = ()
        if plan.chunked:
            reasons = (
                f"{len(plan.chunked)} of {len(scheduled.program.kernels)} kernels are worth sharing, by {plan.most} "
                f"threads at most, with barriers before {len(plan.barriers)} of {len(scheduled.program.calls)} calls",
            )
        execution = replace(scheduled.execution, threads=plan)
        return PassResult(replace(scheduled, execution=execution), len(plan.chunked) + len(plan.barriers), reasons)


@dataclass(frozen=True)
class Polls:
    """Choose the calls before which the program polls for Ctrl-C.

    Needs: a thread plan, because threads poll only at barriers. Does: finds calls about a millisecond apart before the
    first write to the caller's memory. Leaves: ``execution.polls``; the program unchanged.

    A program of 40 calls of 1 ms each -> polls before calls 1 to 39.
    """

    name: str = "polls"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Count polls as changes."""
        polls = find_polls(scheduled.program, scheduled.execution.threads, context.target)
        reasons = (f"polls before {len(polls)} of {len(scheduled.program.calls)} calls: long enough for Ctrl-C",)
        execution = replace(scheduled.execution, polls=polls)
        return PassResult(replace(scheduled, execution=execution), len(polls), reasons if polls else ())


def _changed(scheduled: Scheduled, program: Program, reasons: tuple[str, ...] = ()) -> PassResult:
    return PassResult(replace(scheduled, program=program), count_changes(scheduled.program, program), reasons)
