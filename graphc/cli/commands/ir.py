"""``graphc ir``: print the text of any compiler stage between a model and its machine code."""

from __future__ import annotations

import argparse

from graphc.cli import arguments, console, sources, targets
from graphc.cli.commands import compile
from graphc.cli.entry import add_entry
from graphc.compiler.pass_names import GPU_PASSES, GRAPH_PASSES, PROGRAM_PASSES
from graphc.compiler.stages import GPU_STAGES, STAGES

TEXTS = tuple(dict.fromkeys((*STAGES, *GPU_STAGES)))
PASSES = tuple(dict.fromkeys((*GRAPH_PASSES, *PROGRAM_PASSES, *GPU_PASSES)))

EXAMPLES = (
    "graphc ir net.py:Net --input x:f32[1,1,28,28] --stage lowered",
    "graphc ir net.gcm --stage asm --target avx2",
)


def add_to(parser: argparse.ArgumentParser) -> None:
    compile.add_model_arguments(parser, "source")
    compile.add_passes_argument(parser)
    add_entry(parser)
    parser.add_argument(
        "--stage",
        choices=(*TEXTS, *PASSES),
        default="traced",
        metavar="STAGE",
        help=f"stage to print (default: traced): {', '.join(TEXTS)}; or the graph after a pass: {', '.join(PASSES)}",
    )
    parser.add_argument(
        "--target",
        choices=arguments.machines(),
        default="host",
        metavar="NAME",
        help="machine that stages scheduled, llvm, asm and cuda are for (default: host): "
        f"{', '.join(arguments.machines())}",
    )
    arguments.add_device(parser, "compile for a device")
    parser.add_argument(
        "--freeze", action="store_true", help="turn weights into constants first, as loading a model file does"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    machine = arguments.target_of(options)
    stages = sources.open_source(options, machine).stages(machine, options.freeze)
    names = (*stages.names, *GRAPH_PASSES, *stages.program_passes)
    if options.stage not in names:
        raise console.UsageError(
            f"there is no stage {options.stage!r} for {options.device or options.target}",
            remedy="pass --target sm_90"
            if options.stage in (*GPU_STAGES, *GPU_PASSES)
            else "leave out --target and --device",
        )
    with targets.compiling():
        console.emit(stages.text(options.stage))
    return console.OK
