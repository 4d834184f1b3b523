"""``graphc check``: compare results after every compiler pass with the model's, or rerun a file that a check wrote."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from graphc.checks.check_case import COMPILE, OPERATOR, CheckCase, is_case, load_case
from graphc.checks.check_parts import check_model_passes, checked_part
from graphc.checks.pass_check import CheckedGraph, PassReport
from graphc.cli import comparison, console, exported, sources, targets
from graphc.cli.commands import compile
from graphc.cli.entry import add_entry
from graphc.cli.fields import Field, below
from graphc.compiler.example_arrays import random_array
from graphc.files.manifest import TensorSpec
from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE

EXAMPLES = (
    "graphc check net.py:Net --input x:f32[1,1,28,28] --gradients",
    "graphc check net.gcm",
)
JSON = (
    Field("good", "boolean", "whether every pass is right"),
    Field("passes[].part", "string", "which graph: forward, backward ...", optional=True),
    Field("passes[].kind", "string", "graph or program"),
    Field("passes[].pass", "string", "name of the pass"),
    Field("passes[].changed", "integer", "number of changes it made"),
    Field("passes[].difference", "number or null", "largest difference of results; null if none were compared"),
    Field("passes[].good", "boolean", "whether the difference is within bounds"),
    *below("passes[]", comparison.JSON),
    Field("passes[].note", "string", "remark, such as why nothing was compared"),
    Field("faults[]", "any", "a wrong pass: where, what, and the file that reproduces it", optional=True),
    Field("kind", "string", "rerun of a file: graph, program, native, gradient, compile or operator", optional=True),
    Field("pass", "string", "rerun of a file: the pass", optional=True),
    Field("what", "string", "rerun of a file: what is wrong now; empty if nothing is", optional=True),
    Field("was", "string", "rerun of a file: what was wrong when it was written", optional=True),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    compile.add_model_arguments(parser, "source")
    compile.add_passes_argument(parser)
    add_entry(parser)
    parser.add_argument(
        "--gradients", action="store_true", help="check the backward graphs too (only for a model in Python)"
    )
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", default=".", help="folder for files that reproduce a fault (default: .)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    path = Path(options.source)
    if is_case(path):
        return _case(load_case(path), options)
    if Path(options.output).exists() and not Path(options.output).is_dir():
        raise console.UsageError(f"{options.output!r} is not a folder", remedy="pass -o FOLDER")
    report = _checked(options, path)
    if options.json:
        console.emit_json(report.as_json())
    else:
        console.emit(str(report))
    return console.OK if report.good else console.WRONG


def _case(case: CheckCase, options: argparse.Namespace) -> int:
    """Rerun the pass of a file that reproduces a fault."""
    passes: Sequence[Pass] = PIPELINE
    if options.passes:
        arranged = targets.resolve_passes(options.passes, "")
        passes = (*arranged.first, *arranged.pipeline)
    with targets.compiling():
        fault = case.fault(passes)
    if options.json:
        kind, name = case.point.kind, case.point.name
        console.emit_json({"good": not fault, "kind": kind, "pass": name, "what": fault, "was": case.what})
    else:
        names = {COMPILE: "compilation", OPERATOR: f"operator {case.point.name}"}
        name = names.get(case.point.kind, f"{case.point.kind} pass {case.point.name}")
        console.emit(f"{name}: " + (f"BAD: {fault}" if fault else "ok"))
    return console.WRONG if fault else console.OK


def _checked(options: argparse.Namespace, path: Path) -> PassReport:
    if not path.exists() and targets.is_target(options.source) and not exported.is_exported(path.name):
        if options.passes:
            return _checked_graph(options)
        model, examples, dims = compile.prepare(options, "source")
        with targets.compiling():

            def check() -> PassReport:
                gradients = options.gradients
                return check_model_passes(model, examples, gradients=gradients, dims=dims, folder=options.output)

            return targets.guarded(check, f"checking {options.source}")
    if options.gradients:
        raise console.UsageError("--gradients needs a model in Python", remedy=targets.FORMS)
    return _checked_graph(options)


def _checked_graph(options: argparse.Namespace) -> PassReport:
    """Check a graph from a file, or with the user's passes. Missing arguments are random."""
    if options.gradients:
        raise console.UsageError("--gradients does not go with --passes", remedy="choose one of the two")
    source = sources.open_source(options)
    if source.graph is None:
        raise console.UsageError("a .gck file holds a lowered program, without the graph to compare it with")
    arguments = _arguments(source.graph, source.weights)
    with targets.compiling():
        return checked_part(CheckedGraph("forward", source.graph, arguments, source.pipeline), options.output)


def _arguments(graph: Graph, weights: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    arrays = []
    for i, value in enumerate(graph.inputs):
        path = input_path(value)
        if input_class(value) != "input" and path in weights:
            arrays.append(np.array(weights[path]))
        else:
            arrays.append(random_array(TensorSpec(value.name, value.dtype.name, value.shape), i))
    return tuple(arrays)
