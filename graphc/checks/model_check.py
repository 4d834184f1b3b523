"""Comparison of every stage of compiling a model with the reference semantics of its trace."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

import numpy as np

from graphc.base.errors import ArgumentError, GraphcError
from graphc.checks.check import Report, check_graph, check_narrow
from graphc.checks.check_parts import check_model_passes, checked_part, training_part
from graphc.checks.pass_check import PassReport
from graphc.compiler.freeze import graph_arguments
from graphc.ir.graph.interpret import settle
from graphc.models.model_trace import snapshot
from graphc.steps.step import CompiledStep
from graphc.tensors.structure import flatten
from graphc.tracing.dims import Dims


@overload
def check(
    model: Any,
    *examples: Any,
    rtol: float | None = None,
    atol: float | None = None,
    precision: str | None = None,
    dims: Any = None,
    passes: Literal[False] = False,
    gradients: Literal[False] = False,
    folder: None = None,
) -> Report: ...


@overload
def check(
    model: Any,
    *examples: Any,
    dims: Any = None,
    passes: bool = False,
    gradients: bool = False,
    folder: str | os.PathLike[str] | None = None,
) -> PassReport: ...


def check(
    model: Any,
    *examples: Any,
    rtol: float | None = None,
    atol: float | None = None,
    precision: str | None = None,
    dims: Any = None,
    passes: bool = False,
    gradients: bool = False,
    folder: str | os.PathLike[str] | None = None,
) -> Report | PassReport:
    """Traces a module or function on example tensors or arrays and compares the optimized graph, the kernels and the
    native code with the numpy meaning of the trace, on these examples.

    ``print(report)`` shows the largest differences per stage and the first bad node with the user's line;
    ``report.good`` says whether all is well. With a ``precision`` (``bf16``, ``f16``, ``int8``, ``int4``, ``bf16_dot``,
    ``int8_dot``, ``int4_dot``) the stages are those of the model with its weights stored so, and ``report.precision``
    says how far its outputs are from the model's.

    ``dims`` names sizes of the examples as for ``compile``: the stages are those of the program for all sizes, called
    with those of the examples. Nothing is written to the model. Raises what tracing raises; ArgumentError for an
    unknown precision; UndecidedSize where there is no program for all sizes.

    With ``passes`` there is a line for each graph pass, the lowering, each program pass, each step on nests, and the
    native code. ``gradients`` does the same for the graph with gradients, its two halves and the rules of its ops. The
    model may also be a step of ``compile_step``, or a function that trains: every pass is checked of these, and
    parameters and state are compared after one call, which writes nothing to the model. The first pass that is wrong
    is shown on a graph of few nodes; ``folder`` (with which every pass is checked, too) is where a file with it is
    written, which ``load_case`` and ``graphc check FILE`` read.
    """
    if isinstance(model, CompiledStep) or folder is not None:
        passes = True
    if passes or gradients:
        if precision is not None or rtol is not None or atol is not None:
            raise ArgumentError(
                "check of every pass takes no precision and no tolerances", remedy="call check without passes=True"
            )
        return check_model_passes(model, examples, gradients=gradients, dims=dims, folder=folder)
    try:
        traced = snapshot(model, examples, dims=dims)
    except GraphcError:
        trained = training_part(model, examples, dims)
        if trained is None:
            raise
        return checked_part(trained)
    graph = settle(traced.graph)
    if dims is not None:
        examples, _ = Dims(dims, model).with_numbers(examples, {})
    tensors, _ = flatten((examples, {}))
    arrays = [np.array(t._values(force=True)) for t in tensors]
    state = traced.state()
    if precision is not None:
        return check_narrow(graph, state, arrays, precision, rtol=rtol, atol=atol)
    arguments = graph_arguments(graph, state, arrays)

    return check_graph(graph, arguments, rtol=rtol, atol=atol)
