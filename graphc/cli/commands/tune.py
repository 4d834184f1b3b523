"""``graphc tune``: time the register blocks of a model's products and remember the fastest ones on this machine."""

from __future__ import annotations

import argparse

from graphc.cli import arguments, console, sources, targets
from graphc.cli.commands import compile
from graphc.cli.fields import Field
from graphc.compiler import cache
from graphc.compiler.progress import shown
from graphc.compiler.ready import running_target
from graphc.compiler.tuning import TunedKernel, Tuning, tune

EXAMPLES = ("graphc tune net.gcm --candidates 2 --seconds 0.05",)
JSON = (
    Field("name", "string", "name of the model"),
    Field("before", "number", "time of the program with the blocks that the cost model chose", "s"),
    Field("after", "number", "time of the program with the fastest blocks", "s"),
    Field("kept", "boolean", "whether compiles use the fastest blocks from now on"),
    Field("kernels[].kernel", "string", "name of a kernel", optional=True),
    Field("kernels[].key", "string", "digest of its loop nest"),
    Field("kernels[].calls", "integer", "calls of it in one run of the program"),
    Field("kernels[].candidates", "integer", "number of register blocks timed"),
    Field("kernels[].estimated", "string", "the block that the cost model chose"),
    Field("kernels[].chosen", "string", "the fastest block"),
    Field("kernels[].estimated_seconds", "number", "time with the cost model's block", "s"),
    Field("kernels[].seconds", "number", "time with the fastest block", "s"),
    Field("kernels[].gain", "number", "speedup: estimated_seconds divided by seconds"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    compile.add_model_arguments(parser, "source")
    parser.add_argument(
        "--candidates", type=arguments.count, default=6, help="register blocks to time for each kernel (default: 6)"
    )
    seconds = "seconds to run each candidate, each time (default: 0.3)"
    parser.add_argument("--seconds", type=arguments.seconds, default=0.3, help=seconds)
    arguments.add_machine(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    disk = cache.current()
    if disk is None:
        raise console.UsageError(
            "graphc tune stores its choices in the cache of compiled programs, and the cache is off",
            remedy="unset GRAPHC_CACHE=off, GRAPHC_DUMP, GRAPHC_PRINT_AFTER and GRAPHC_VERIFY=pass",
        )
    source = sources.open_source(options)
    with targets.compiling():
        stages = source.stages(running_target(options.machine), frozen=True)
    with targets.compiling(), shown(stages.name) as progress:
        inputs, weights = sources.example_arrays(stages, source.weights)
        tuning = tune(stages, inputs, weights, disk, options.candidates, options.seconds, progress.tell)
    if options.json:
        console.emit_json(tuning.as_json())
    else:
        console.emit(text(tuning))
    return console.OK


def text(tuning: Tuning) -> str:
    """Format the table of kernels, and whether the choices are kept."""
    times = f"{console.seconds_text(tuning.before)} -> {console.seconds_text(tuning.after)} on one thread"
    if tuning.kept:
        end = f"{times}; used from now on (graphc cache --clear forgets it)"
    elif any(k.chosen != k.estimated for k in tuning.kernels):
        end = f"{times}; the program as a whole is not faster, so nothing is kept"
    else:
        end = "the cost model's choices are already the fastest"
    rows = [["kernel", "calls", "time", "gain", "chosen", "cost model's choice"]]
    rows += [_row(k) for k in sorted(tuning.kernels, key=lambda k: -k.seconds)]
    return f"{console.table(rows)}\n\n{tuning.name}: {end}"


def _row(kernel: TunedKernel) -> list[str]:
    same = kernel.chosen == kernel.estimated
    gain = "" if same else f"{kernel.gain:.2f}"
    figures = [kernel.kernel, str(kernel.calls), console.seconds_text(kernel.seconds), gain]
    return [*figures, kernel.chosen, "the same" if same else kernel.estimated]
