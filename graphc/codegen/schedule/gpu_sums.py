"""The pass that cuts long sums with few results into stretches, which threads of many blocks compute."""

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
    """Needs: kernels of one nest each; those of the library and those of tiles are chosen. Does: gives long sums with
    few results a kernel for the sums of stretches, and one that adds these in order. Leaves: an equivalent program but
    for the order in which sums are rounded, which depends on sizes alone.

    ``y = sum(x[i])`` -> ``t[p] = sum(x[i], i in p); y = sum(t[p])``."""

    name: str = "split-sums"

    def run(self, given: Scheduled, context: Context) -> PassResult:
        """Splits where a GPU has more threads than the kernel would use."""
        chosen = {}
        for kernel in given.program.kernels:
            if kernel.threads or kernel.name in given.execution.products:
                continue
            found = stretches_of(kernel, GPU)
            if found is not None and tile_contraction(kernel, context.target, Names("g")) is None:
                chosen[kernel.name] = found
        # Stretches of two lengths are two nests.
        program = distribute_loops(split_reductions(given.program, chosen)) if chosen else given.program
        left = {k.name: k for k in program.kernels}
        split = (k.name for k in given.program.kernels if left.get(k.name) is not k)
        reasons = tuple(f"{name}: few results of long sums; stretches of them are summed first" for name in split)
        return PassResult(replace(given, program=program), count_changes(given.program, program), reasons)
