"""Segment lengths for long sums, where too few results would leave a GPU idle."""

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
    """Return the costs by which ``split_reductions`` cuts the first sums of a lowered kernel.

    Returns None where the kernel has enough threads, or its sums are short. The result depends on sizes alone.
    """
    band, inside = outer_band(kernel.body)
    results = hint(prod(loop.axis.extent for loop in band))
    terms = _terms(inside)
    if results == 0:
        return None
    alone = bool(band) and has_single_threads(kernel, costs)
    together = 1 if alone else WARP if band and terms <= costs.warp_row else costs.threads
    segments = min(
        costs.resident // (results * together), terms // (together * costs.stretch_steps), costs.most_stretches
    )
    if terms // together < costs.long_sum or segments < 2:
        return None
    # A power of two, so that lengths that are powers of two are cut into equal segments.
    stretch = -(-terms // (1 << (segments.bit_length() - 1))) * results
    return replace(DEFAULT.reduction, split_from=1, stretch=stretch, few_results=_ALL)


def _terms(inside: tuple[Stmt, ...]) -> int:
    """Return the terms of the longest sum before the first store."""
    longest = 0
    for stmt in inside:
        if any(isinstance(s, Store) for s, _ in walk((stmt,))):
            break
        if isinstance(stmt, Loop) and stmt.kind == "reduce":
            axes = [[s.axis, *(x.axis for x in loops)] for s, loops in walk((stmt,)) if isinstance(s, Loop)]
            longest = max(longest, *(hint(prod(x.extent for x in some)) for some in axes))
    return longest
