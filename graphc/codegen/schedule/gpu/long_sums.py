"""Long sums of which there are too few to keep a GPU busy: into what stretches they are cut."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from graphc.base.sizes.size import hint
from graphc.codegen.machine.costs import DEFAULT, ReductionCosts
from graphc.codegen.machine.cuda.costs import GpuCosts
from graphc.codegen.schedule.gpu.threads import has_single_threads, outer_band
from graphc.ir.kernel.statements import WARP, Kernel, Loop, Stmt, Store, walk

_ALL = 1 << 62
"""More results than a kernel has."""


def stretches_of(kernel: Kernel, costs: GpuCosts) -> ReductionCosts | None:
    """How ``split_reductions`` cuts the first sums of a lowered kernel; None where its threads are enough, or are done
    soon. That depends on sizes alone."""
    band, inside = outer_band(kernel.body)
    results = hint(prod(loop.axis.extent for loop in band))
    terms = _terms(inside)
    if results == 0:
        return None
    alone = bool(band) and has_single_threads(kernel, costs)
    together = 1 if alone else WARP if band and terms <= costs.warp_row else costs.threads
    parts = min(costs.resident // (results * together), terms // (together * costs.stretch_steps), costs.most_stretches)
    if terms // together < costs.long_sum or parts < 2:
        return None
    # A power of two, so that lengths that are one are cut into stretches of one length.
    stretch = -(-terms // (1 << (parts.bit_length() - 1))) * results
    return replace(DEFAULT.reduction, split_from=1, stretch=stretch, few_results=_ALL)


def _terms(inside: tuple[Stmt, ...]) -> int:
    """Terms of the longest sum before anything is stored."""
    longest = 0
    for stmt in inside:
        if any(isinstance(s, Store) for s, _ in walk((stmt,))):
            break
        if isinstance(stmt, Loop) and stmt.kind == "reduce":
            axes = [[s.axis, *(x.axis for x in loops)] for s, loops in walk((stmt,)) if isinstance(s, Loop)]
            longest = max(longest, *(hint(prod(x.extent for x in some)) for some in axes))
    return longest
