"""Application of a user's graph passes to a trace, before differentiation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphc.calls.machine import target_for
from graphc.passes.base import Pass
from graphc.passes.pipeline import optimize
from graphc.tracing.trace import Traced


def passed(traced: Traced, passes: Sequence[Pass], target: str = "host") -> Traced:
    """Return the trace after the user's first passes. Passes that compare costs use the costs of ``target``."""
    if not passes:
        return traced
    graph = optimize(traced.graph, passes, target_for(target).costs)
    now = dict(zip(traced.graph.inputs, graph.inputs, strict=True))
    return replace(
        traced,
        graph=graph,
        inputs=tuple(now[v] for v in traced.inputs),
        arguments=tuple(replace(a, value=now[a.value]) for a in traced.arguments),
        reached={now[v]: number for v, number in traced.reached.items()},
    )
