"""Pass ``split-sums``: cut long sums with few results into segments for threads of many blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphc.codegen.machine.cuda.costs import GPU
from graphc.codegen.schedule.base import Context, PassResult, Scheduled, count_changes
from graphc.codegen.schedule.gpu.contraction import tile_contraction
from graphc.codegen.schedule.gpu.long_sums import stretches_of
from graphc.codegen.schedule.loops.distribute import distribute_loops
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
