"""``graphc explain``: what the compiler decided for a model, and why."""

from __future__ import annotations

import argparse

from graphc.cli import compile, console, sources, targets
from graphc.codegen.machine.target import named_targets, target_named
from graphc.compiler.explain import explain


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    compile.add_model_arguments(parser, "source")
    compile.add_passes_argument(parser)
    parser.add_argument("--target", choices=("host", *named_targets()), default="host", help="machine (default: host)")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    stages = sources.open_source(options).stages(target_named(options.target), frozen=True)
    with targets.compiling():
        found = explain(stages)
    if options.json:
        console.emit_json(found.as_json())
    else:
        console.emit(str(found))
    return console.OK
