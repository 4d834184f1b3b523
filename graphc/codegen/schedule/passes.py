"""The program passes that look at more than one kernel: loops around calls, memory, threads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphc.codegen.schedule.base import Context, PassResult, Scheduled, count_changes
from graphc.codegen.schedule.blocks.tile_and_fuse import tile_and_fuse
from graphc.codegen.schedule.loops.distribute import distribute_loops
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.codegen.schedule.memory.non_temporal import non_temporal_buffers
from graphc.codegen.schedule.memory.prepacking import call_invariant_first, split_prepacking
from graphc.codegen.schedule.reduce.split_reduction import split_reductions
from graphc.codegen.schedule.threads.plan import plan_threads
from graphc.codegen.schedule.threads.polls import find_polls
from graphc.ir.kernel.statements import Program


@dataclass(frozen=True)
class CallInvariantFirst:
    """Needs: a lowered program. Does: moves calls that depend on weights and constants alone before all others, where
    there are weights. Leaves: an equivalent program whose call-invariant calls are neighbours.

    ``@a(x, t); @b(w, u); @c(t, u, y)`` -> ``@b(w, u); @a(x, t); @c(t, u, y)``."""

    name: str = "call-invariant-first"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Keeps the order among the moved calls, and among the others."""
        return _changed(given, call_invariant_first(given.program))


@dataclass(frozen=True)
class TileAndFuse:
    """Needs: kernels without lanes. Does: puts loops around neighbouring calls whose kernels share outer parallel
    loops, where what they hand each other is too large for a cache. Leaves: an equivalent program in which only a tile
    of such a temporary exists at a time.

    ``@a(x, t); @b(t, y)`` -> ``for i in 0..8: @a(x[i], t); @b(t, y[i])``."""

    name: str = "tile-and-fuse"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Gives a reason for each group of calls that a loop was put around."""
        skipped: list[str] = []
        program = tile_and_fuse(given.program, context.target, skipped)
        old = {call.loops for call in given.program.calls}
        groups: dict[tuple, list[str]] = {}
        for call in program.calls:
            if call.loops not in old:
                groups.setdefault(call.loops, []).append(call.kernel)
        reasons = tuple(
            f"{', '.join(names)}: {' x '.join(str(a.extent) for a in loops)} tiles, for a temporary between them is "
            f"larger than half of the L2 cache ({context.target.l2_bytes // 2} bytes)"
            for loops, names in groups.items()
        )
        return _changed(given, program, (*reasons, *skipped))


@dataclass(frozen=True)
class LoopDistribution:
    """Needs: kernels without lanes. Does: makes kernels of the nests of a kernel that write one buffer one after the
    other. Leaves: kernels in which a written buffer belongs to one nest, so that threads share it without waiting.

    ``kernel @k: for i: y[i] = 0; for j: y[p[j]] += x[j]`` -> ``kernel @k_0: for i: y[i] = 0`` and ``kernel @k_1``."""

    name: str = "loop-distribution"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Splits kernels, and each of their calls."""
        return _changed(given, distribute_loops(given.program))


@dataclass(frozen=True)
class SplitReductions:
    """Needs: kernels without lanes. Does: gives long reductions with few results a kernel of partial results, which
    goes along with the map before it where that has the same rows. Leaves: an equivalent program but for the order in
    which sums are rounded, which is the same for every number of threads.

    ``y = sum(x[i] for i in 0..n)`` -> ``t[j] = sum(x[j * m + i] for i in 0..m); y = sum(t[j])``."""

    name: str = "split-reductions"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Splits by the size of the reduction alone; nothing in strict order."""
        if context.target.costs.strict_order:
            return PassResult(given, 0)
        program = split_reductions(given.program, context.target.costs.reduction)
        # What is left of a split kernel has its name. One that is not there any more goes along with partial sums.
        left = {kernel.name: kernel for kernel in program.kernels}
        split = (k.name for k in given.program.kernels if left.get(k.name, k) is not k)
        reasons = tuple(f"{name}: few results of long sums; stretches of them are summed first" for name in split)
        return _changed(given, program, reasons)


@dataclass(frozen=True)
class Prepacking:
    """Needs: a scheduled program without memory plan. Does: moves the calls that depend on weights and constants alone
    into a program of their own. Leaves: what is run once for many calls as ``prepacking``, whose outputs are weights
    of the rest.

    ``@k_pack(w, t); @k(x, t, y)`` -> ``@k(x, t, y)`` with the weight ``t``, prepared by ``@k_pack(w, t)``."""

    name: str = "prepacking"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Splits the program in two, or leaves it."""
        main, prepacking = split_prepacking(given.program)
        if prepacking is None:
            return PassResult(given, 0)
        made = sum(s.cls == "output" for s in prepacking.storages)
        reason = f"{len(prepacking.calls)} calls depend on weights alone; they make {made} arrays for all calls"
        changed = count_changes(given.program, main)
        return PassResult(replace(given, program=main, prepacking=prepacking), changed, (reason,))


@dataclass(frozen=True)
class PlanMemory:
    """Needs: scheduled kernels. Does: places temporaries by best fit, and keeps the smallest arena. Leaves: an offset
    in the arena for every temporary, the kernels' scratch at its end. Later passes move no call.

    ``temp t: f32[64]``, ``temp u: f32[64]`` that are not alive together -> both at offset 0."""

    name: str = "memory-plan"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Counts the temporaries that are placed."""
        program = plan_memory(given.program, context.target.costs.memory)
        placed = sum(a is not b for a, b in zip(given.program.storages, program.storages, strict=True))
        return PassResult(replace(given, program=program), placed)


@dataclass(frozen=True)
class NonTemporalStores:
    """Needs: kernels with lanes and a memory plan. Does: finds results that would only push others out of the caches.
    Leaves: their buffers in ``execution.non_temporal``; the program as it is.

    ``@k(x, y)`` whose ``y`` is an output of 64 MB that nothing reads -> ``non_temporal = {k: {y}}``."""

    name: str = "non-temporal-stores"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Counts buffers."""
        found = non_temporal_buffers(given.program, context.target)
        reasons = tuple(
            f"{kernel}: {', '.join(sorted(buffers))} would push more out of the caches than it "
            f"leaves there for others (from {context.target.costs.memory.non_temporal_bytes} bytes on)"
            for kernel, buffers in found.items()
        )
        execution = replace(given.execution, non_temporal=found)
        return PassResult(replace(given, execution=execution), sum(map(len, found.values())), reasons)


@dataclass(frozen=True)
class PlanThreads:
    """Needs: a memory plan, for kernels that use the same bytes wait for each other. Does: chooses the kernels whose
    loops are worth sharing, and where barriers stand. Leaves: ``execution.threads``; the program as it is.

    ``@a(x, t); @b(t, y)`` of 1 ms each -> both are shared, with a barrier before call 1."""

    name: str = "thread-plan"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Counts shared kernels and barriers."""
        plan = plan_threads(given.program, context.target)
        reasons = ()
        if plan.chunked:
            reasons = (
                f"{len(plan.chunked)} of {len(given.program.kernels)} kernels are worth sharing, by {plan.most} "
                f"threads at most, with barriers before {len(plan.barriers)} of {len(given.program.calls)} calls",
            )
        execution = replace(given.execution, threads=plan)
        return PassResult(replace(given, execution=execution), len(plan.chunked) + len(plan.barriers), reasons)


@dataclass(frozen=True)
class Polls:
    """Needs: a thread plan, for threads poll only at barriers. Does: finds places about a millisecond apart before
    the first write to anything of the caller's. Leaves: ``execution.polls``; the program as it is.

    A program of 40 calls of 1 ms each -> polls before calls 1 to 39."""

    name: str = "polls"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Counts polls."""
        found = find_polls(given.program, given.execution.threads, context.target)
        reasons = (f"{len(found)} of {len(given.program.calls)} calls: the program takes long enough for Ctrl-C",)
        execution = replace(given.execution, polls=found)
        return PassResult(replace(given, execution=execution), len(found), reasons if found else ())


def _changed(given: Scheduled, program: Program, reasons: tuple[str, ...] = ()) -> PassResult:
    return PassResult(replace(given, program=program), count_changes(given.program, program), reasons)
