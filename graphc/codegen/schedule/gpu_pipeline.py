"""The GPU schedule: the program passes that a lowered program goes through for a GPU, in order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphc.codegen.machine.cuda.costs import GPU
from graphc.codegen.schedule.base import Context, PassResult, ProgramPass, Scheduled, count_changes
from graphc.codegen.schedule.expansion.expand import expand
from graphc.codegen.schedule.gpu.contraction import describe_tiles, tile_contraction
from graphc.codegen.schedule.gpu.independent import independent_outside
from graphc.codegen.schedule.gpu.spill import spill_rows
from graphc.codegen.schedule.gpu.threads import give_threads
from graphc.codegen.schedule.gpu_parts import SplitTerms
from graphc.codegen.schedule.gpu_products import LibraryProducts
from graphc.codegen.schedule.gpu_sums import SplitSums
from graphc.codegen.schedule.loops.transform import drop_trivial
from graphc.codegen.schedule.passes import LoopDistribution, PlanMemory
from graphc.ir.kernel.map import Names


@dataclass(frozen=True)
class Threads:
    """Needs: kernels of one nest each. Does: gives the iterations of outer parallel loops threads, warps or blocks of
    their own, and lets these share the loops inside. Leaves: kernels with threads; an equivalent program.

    ``for i parallel: s = sum(x[i, j] for j)`` -> ``for i warp: s = sum(x[i, j] for j lane) over warp``."""

    name: str = "threads"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Gives a reason for each kernel."""
        kernels, reasons = [], []
        for kernel in given.program.kernels:
            if kernel.threads:
                kernels.append(expand(kernel))
                continue
            body = drop_trivial(kernel.body, Names("d"))
            whole = independent_outside(replace(kernel, body=body))
            tiled = tile_contraction(whole, context.target, Names("g"))
            found, why = (tiled, describe_tiles(tiled)) if tiled else give_threads(whole, GPU)
            kernels.append(expand(found))
            reasons.append(f"{kernel.name}: {why}")
        program = spill_rows(replace(given.program, kernels=tuple(kernels)))
        changed = count_changes(given.program, program)
        return PassResult(replace(given, program=program), changed, tuple(reasons))


GPU_PIPELINE: tuple[ProgramPass, ...] = (
    # A nest per kernel: threads of different blocks meet between kernels only.
    LoopDistribution(),
    # While sums of products are whole nests.
    LibraryProducts(),
    SplitTerms(),
    # What neither the library nor tiles compute.
    SplitSums(),
    Threads(),
    PlanMemory(),
)
"""What a program goes through for a GPU, top to bottom."""
