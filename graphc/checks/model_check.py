"""Comparison of every stage of compiling a model with the reference semantics of its trace."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from graphc.base.errors import ArgumentError, GraphcError
from graphc.checks.check import ChecksItself, Report, check_graph, check_narrow
from graphc.checks.check_parts import check_model_passes, checked_part, read_parts, training_part
from graphc.checks.narrow_model import Accuracy, with_model_figures
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
    accuracy: Accuracy | None = None,
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
    accuracy: Accuracy | None = None,
    dims: Any = None,
    passes: bool = False,
    gradients: bool = False,
    folder: str | os.PathLike[str] | None = None,
) -> Report | PassReport:
    """Compare the native code of a model, stage by stage, with the numpy reference on example arguments.

    Nothing is written to the model.

    Args:
        model: a Module, a function, a step of ``compile_step``, or a stream and whole sequences for its model.
        examples: example tensors or arrays.
        rtol, atol: relative and absolute tolerance (default: by element type).
        precision: check the model with its weights in this form, as for ``compile``; ``report.precision`` compares
            its outputs with the model's, and has the signal-to-noise ratio of each layer.
        accuracy: function of a model that returns a number, as for ``quantize``. It runs with ``precision`` only: on
            the model, and on the model compiled with narrow weights. Modules are copied, and are in evaluation mode.
        dims: names of sizes that vary; the program for all sizes is checked.
        passes: check every graph pass, lowering step and program pass by itself.
        gradients: the same for the graph with gradients, its two halves and the rules of its ops.
        folder: folder for a file with the smallest failing case, which ``load_case`` and ``graphc check FILE`` read.

    Returns:
        A Report, or a PassReport with ``passes``, ``gradients`` or ``folder``. ``report.good`` says whether all stages
        agree; ``print(report)`` shows the largest difference of each and the first bad node with its line.

    Raises:
        ArgumentError: an unknown precision, tolerances together with ``passes``, or ``accuracy`` without ``precision``.
        UndecidedSize: there is no program for all sizes of ``dims``.

    Example:
        >>> import graphc as gc
        >>> report = gc.check(gc.nn.Softmax(dim=-1), gc.tensor([[1.0, 2.0, 3.0]]))
        >>> report.good
        True
        >>> model, x = gc.nn.Sequential(gc.nn.Linear(64, 64, bias=False)), gc.ones(2, 64)
        >>> report = gc.check(model, x, precision="int8", accuracy=lambda model: (model(x) < 100).float().mean())
        >>> [(layer.name, layer.snr > 20) for layer in report.precision.layers], report.precision.accuracy
        ([('0.weight', True)], 1.0)
    """
    _check_accuracy(accuracy, precision)
    if isinstance(model, ChecksItself):
        _refuse_others(passes, gradients, precision, dims, folder)
        return model.check(*examples, rtol=rtol, atol=atol)
    if passes or gradients or isinstance(model, CompiledStep) or folder is not None:
        if not rtol is atol is precision is None:
            raise ArgumentError("checks of passes take no precision and no tolerances", remedy="leave out passes=True")
        return check_model_passes(model, examples, gradients=gradients, dims=dims, folder=folder)
    report = _check_stages(model, examples, dims, precision, rtol, atol)
    if precision is None or not isinstance(report, Report):
        return report
    return with_model_figures(report, model, examples, precision, accuracy)


def _refuse_others(*arguments: Any) -> None:
    if any(x is not None and x is not False for x in arguments):
        raise ArgumentError(
            "check compares a stream with its model: it takes sequences, rtol and atol",
            remedy="leave out other arguments",
        )


def _check_accuracy(accuracy: Any, precision: str | None) -> None:
    if accuracy is None:
        return
    if not callable(accuracy):
        raise ArgumentError(
            f"check: accuracy= is {type(accuracy).__name__}, not a function",
            remedy="pass a function that takes a model and returns a number",
        )
    if precision is None:
        raise ArgumentError(
            "check: accuracy= compares full weights with narrow ones",
            remedy='pass precision= too, such as precision="int8"',
        )


def _check_stages(
    model: Any, examples: tuple[Any, ...], dims: Any, precision: str | None, rtol: float | None, atol: float | None
) -> Report | PassReport:
    """Compare the stages of a model with its trace; check a function that trains pass by pass."""
    try:
        traced = snapshot(model, examples, dims=dims, reads_sizes=True)
    except GraphcError:
        trained = training_part(model, examples, dims)
        if trained is None:
            raise
        return checked_part(trained)
    if dims is not None:
        examples, _ = Dims(dims, model).with_numbers(examples, {})
    tensors, _ = flatten((examples, {}))
    arrays = [np.array(t._values(force=True)) for t in tensors]
    if traced.reads:
        if precision is not None:
            raise ArgumentError(
                "check of narrow weights: the model reads sizes from values, so it is several graphs",
                remedy="call check without precision=",
            )
        reports = [check_graph(*part, rtol=rtol, atol=atol) for part in read_parts(traced, arrays)]
        return Report(tuple([replace(s, stage=f"{i} {s.stage}") for i, r in enumerate(reports) for s in r.stages]))
    graph, state = settle(traced.graph), traced.state()
    if precision is not None:
        return check_narrow(graph, state, arrays, precision, rtol=rtol, atol=atol)
    return check_graph(graph, graph_arguments(graph, state, arrays), rtol=rtol, atol=atol)
