"""GPU schedule: the program passes on a lowered program for a GPU, in order."""

from __future__ import annotations

from dataclasses import replace

from graphc.base.records import dataclass
from graphc.codegen.machine.cuda.costs import GPU
from graphc.codegen.schedule.base import Context, PassResult, ProgramPass, Scheduled, count_changes
from graphc.codegen.schedule.expansion.expand import expand
from graphc.codegen.schedule.gpu.contraction import describe_tiles, tile_contraction
from graphc.codegen.schedule.gpu.independent import independent_outside
from graphc.codegen.schedule.gpu.long_sums import stretches_of
from graphc.codegen.schedule.gpu.spill import spill_rows
from graphc.codegen.schedule.gpu.threads import give_threads
from graphc.codegen.schedule.gpu_parts import SplitTerms
from graphc.codegen.schedule.gpu_products import LibraryProducts
from graphc.codegen.schedule.loops.distribute import distribute_loops
from graphc.codegen.schedule.loops.transform import drop_trivial
from graphc.codegen.schedule.passes import LoopDistribution, PlanMemory
from graphc.codegen.schedule.reduce.split_reduction import split_reductions
from graphc.ir.kernel.map import Names


@dataclass(frozen=True)
class SplitSums:
    """Split long sums into segments.

    Needs: kernels of one nest each; the kernels for the library and for tiles are chosen. Does: gives long sums with
    few results a kernel for the sums of segments, and one that adds these in order. Leaves: an equivalent program,
    except for the order of rounding, which depends on sizes alone.

    ``y = sum(x[i])`` -> ``t[p] = sum(x[i], i in p); y = sum(t[p])``.
    """

    name: str = "split-sums"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Split where a GPU has more threads than the kernel would use."""
        chosen = {}
        for kernel in scheduled.program.kernels:
            if kernel.threads or kernel.name in scheduled.execution.products:
                continue
            costs = stretches_of(kernel, GPU)
            if costs is not None and tile_contraction(kernel, context.target, Names("g")) is None:
                chosen[kernel.name] = costs
        # Segments of two lengths are two nests.
        program = distribute_loops(split_reductions(scheduled.program, chosen)) if chosen else scheduled.program
        remaining = {k.name: k for k in program.kernels}
        split = (k.name for k in scheduled.program.kernels if remaining.get(k.name) is not k)
        reasons = tuple(f"{name}: few results of long sums; segments of them are summed first" for name in split)
        return PassResult(replace(scheduled, program=program), count_changes(scheduled.program, program), reasons)


@dataclass(frozen=True)
class Threads:
    """Assign loops to GPU threads.

    Needs: kernels of one nest each. Does: assigns each iteration of the outer parallel loops to a thread, a warp or a
    block, whose threads share the inner loops. Leaves: kernels with threads; an equivalent program.

    ``for i parallel: s = sum(x[i, j] for j)`` -> ``for i warp: s = sum(x[i, j] for j lane) over warp``.
    """

    name: str = "threads"

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Give a reason for each kernel."""
        kernels, reasons = [], []
        for kernel in scheduled.program.kernels:
            if kernel.threads:
                kernels.append(expand(kernel))
                continue
            body = drop_trivial(kernel.body, Names("d"))
            interchanged = independent_outside(replace(kernel, body=body))
            tiled = tile_contraction(interchanged, context.target, Names("g"))
            threaded, why = (tiled, describe_tiles(tiled)) if tiled else give_threads(interchanged, GPU)
            kernels.append(expand(threaded))
            reasons.append(f"{kernel.name}: {why}")
        program = spill_rows(replace(scheduled.program, kernels=tuple(kernels)))
        changed = count_changes(scheduled.program, program)
        return PassResult(replace(scheduled, program=program), changed, tuple(reasons))


GPU_PIPELINE: tuple[ProgramPass, ...] = (
    # A nest per kernel: threads of different blocks synchronize only between kernels.
    LoopDistribution(),
    # While sums of products are whole nests.
    LibraryProducts(),
    SplitTerms(),
    # Sums that neither the library nor tiles compute.
    SplitSums(),
    Threads(),
    PlanMemory(),
)
"""Passes on a program for a GPU, from first to last."""
