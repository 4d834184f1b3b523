"""Application of a user's graph passes to a trace, before differentiation."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.base.lazy import deferred
from graphc.calls.machine import target_for
from graphc.passes.base import Pass
from graphc.tracing.trace import Traced

optimize = deferred("graphc.passes.pipeline:optimize")


def passed(traced: Traced, passes: Sequence[Pass], target: str = "host") -> Traced:
    """Return the trace after the user's first passes. Passes that compare costs use the costs of ``target``."""
    if not passes:
        return traced
    return traced.on(optimize(traced.graph, passes, target_for(target).costs))
