"""Reductions over processes in a training step: the modules, and the error inside ``no_sync``."""

from __future__ import annotations

from graphc.base.errors import GradientError
from graphc.nn.parallel import DistributedDataParallel
from graphc.nn.parallel.graph_reductions import GraphReductions
from graphc.steps.step_options import StepOptions
from graphc.tracing.trace import modules_of


def reductions_of(options: StepOptions) -> GraphReductions:
    """Return the reductions of a step's modules."""
    roots = [*modules_of(options.model), *(() if options.loss is None else modules_of(options.loss))]
    every = {id(m): m for _, root in roots for m in root.modules() if isinstance(m, DistributedDataParallel)}
    return GraphReductions([module for module in every.values() if module.channel.group.size > 1])


def check_reductions(reductions: GraphReductions) -> None:
    """Raise GradientError inside ``no_sync``, where a step would give the processes different weights."""
    if any(not module.require_backward_grad_sync for module in reductions.modules):
        raise GradientError(
            "compile_step: a step inside no_sync() updates the weights of each process differently",
            remedy="use compile_step(..., accumulate=N), which reduces the sums of N micro-batches once",
        )
