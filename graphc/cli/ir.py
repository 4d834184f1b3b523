"""``graphc ir``: the text of any stage between a model and its machine code."""

from __future__ import annotations

import argparse

from graphc.cli import compile, console, sources, targets
from graphc.codegen.machine.target import named_targets, target_named
from graphc.compiler.stages import GRAPH_PASSES, PROGRAM_PASSES, STAGES


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    compile.add_model_arguments(parser, "source")
    compile.add_passes_argument(parser)
    parser.add_argument(
        "--stage",
        choices=(*STAGES, *GRAPH_PASSES, *PROGRAM_PASSES),
        default="traced",
        metavar="STAGE",
        help=f"which text (default: traced): {', '.join(STAGES)}; or what a pass leaves: "
        f"{', '.join((*GRAPH_PASSES, *PROGRAM_PASSES))}",
    )
    parser.add_argument(
        "--target",
        choices=("host", *named_targets()),
        default="host",
        help="machine of scheduled, llvm and asm (default: host)",
    )
    parser.add_argument("--freeze", action="store_true", help="make weights constants, as when a model file is loaded")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    machine = target_named(options.target)
    stages = sources.open_source(options, machine).stages(machine, options.freeze)
    with targets.compiling():
        console.emit(stages.text(options.stage))
    return console.OK
