"""Names of the passes whose results can be printed, for CPUs and GPUs; they import all passes."""

from __future__ import annotations

from graphc.codegen.schedule.gpu_pipeline import GPU_PIPELINE
from graphc.codegen.schedule.pipeline import PIPELINE as SCHEDULE
from graphc.codegen.schedule.steps import STEPS
from graphc.passes.pipeline import PASSES

GRAPH_PASSES = tuple(dict.fromkeys(p.name for p in PASSES))
"""Names of the graph passes. The text of a graph is available after each: after the last of that name."""
PROGRAM_PASSES = tuple(p.name for p in SCHEDULE)
"""Names of the program passes for CPUs. The text of a program is available after each."""
GPU_PASSES = tuple(p.name for p in GPU_PIPELINE)
"""Names of the program passes for GPUs. The text of a program is available after each."""
NEST_STEPS = tuple(s.name for s in STEPS)
"""Names of the steps on a nest."""


def standard_names() -> tuple[str, ...]:
    """Return all names without repetitions."""
    return tuple(dict.fromkeys((*GRAPH_PASSES, *PROGRAM_PASSES, *GPU_PASSES, *NEST_STEPS)))
