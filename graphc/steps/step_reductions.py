"""Reductions over processes in a training step: of which modules, and when they are impossible."""

from __future__ import annotations

from graphc.base.errors import ArgumentError, GradientError
from graphc.nn.parallel import DistributedDataParallel
from graphc.nn.parallel.graph_reductions import GraphReductions
from graphc.steps.step_options import StepOptions
from graphc.tracing.trace import modules_of


def reductions_of(options: StepOptions) -> GraphReductions:
    """Return the reductions of a step's modules. Raise ArgumentError for options that several processes cannot have."""
    roots = [*modules_of(options.model), *(() if options.loss is None else modules_of(options.loss))]
    every = {id(m): m for _, root in roots for m in root.modules() if isinstance(m, DistributedDataParallel)}
    reductions = GraphReductions([module for module in every.values() if module.channel.group.size > 1])
    if reductions.modules and options.first_nan:
        raise ArgumentError(
            "compile_step: first_nan stops the step of one process while the others go on",
            remedy="use loss_scale='dynamic', which all processes follow alike; or run first_nan with one process",
        )
    return reductions


def check_reductions(reductions: GraphReductions) -> None:
    """Raise GradientError inside ``no_sync``, where a step would give the processes different weights."""
    if any(not module.require_backward_grad_sync for module in reductions.modules):
        raise GradientError(
            "compile_step: a step inside no_sync() updates the weights of each process differently",
            remedy="use compile_step(..., accumulate=N), which reduces the sums of N micro-batches once",
        )
