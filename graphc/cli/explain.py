"""``graphc explain``: what the compiler decided for a model, and why."""

from __future__ import annotations

import argparse
from dataclasses import replace

from graphc.cli import arguments, compile, console, sources, targets
from graphc.codegen.machine.target import named_targets
from graphc.compiler.explain import explain
from graphc.compiler.freeze import freeze_narrow
from graphc.compiler.stages import Stages

EXAMPLES = (
    "graphc explain net.gcm",
    "graphc explain net.py:Net --input x:f32[1,1,28,28] --target avx512 --json",
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    compile.add_model_arguments(parser, "source")
    compile.add_passes_argument(parser)
    arguments.add_entry(parser)
    parser.add_argument("--target", choices=("host", *named_targets()), default="host", help="machine (default: host)")
    arguments.add_device(parser, "the machine is a device")
    compile.add_precision_argument(parser)
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    machine = arguments.target_of(options)
    source = sources.open_source(options, machine, calls_python=True)
    graph, narrowed = source.graph, None
    if options.precision is not None and graph is None:
        raise console.UsageError("--precision is for models and graphs, not for kernels", remedy="without it")
    with targets.compiling():
        if options.precision is not None and graph is not None:
            narrowed = freeze_narrow(graph, source.weights, options.precision, source.pipeline, machine.costs)
        stages = source.stages(machine, frozen=True) if narrowed is None else Stages(narrowed.graph, target=machine)
        found = explain(stages)
    if narrowed is not None:
        found = replace(found, weights=narrowed.decisions)
    if options.json:
        console.emit_json(found.as_json())
    else:
        console.emit(str(found))
    return console.OK
