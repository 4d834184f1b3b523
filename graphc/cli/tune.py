"""``graphc tune``: times the register blocks of a model's products and remembers the fastest ones on this machine."""

from __future__ import annotations

import argparse

from graphc.cli import arguments, compile, console, sources, targets
from graphc.cli.fields import Field
from graphc.compiler import cache
from graphc.compiler.progress import shown
from graphc.compiler.ready import running_target
from graphc.compiler.tuning import TunedKernel, Tuning, tune

EXAMPLES = ("graphc tune net.gcm --candidates 2 --seconds 0.05",)
JSON = (
    Field("name", "string", "name of the model"),
    Field("before", "number", "time of the program with the estimate's choices", "s"),
    Field("after", "number", "with those that were found", "s"),
    Field("kept", "boolean", "whether they are used from now on"),
    Field("kernels[].kernel", "string", "a kernel", optional=True),
    Field("kernels[].key", "string", "digest of its loop nest"),
    Field("kernels[].calls", "integer", "how often the program calls it"),
    Field("kernels[].candidates", "integer", "how many register blocks were timed"),
    Field("kernels[].estimated", "string", "the block that the estimate chooses"),
    Field("kernels[].chosen", "string", "the block that is fastest"),
    Field("kernels[].estimated_seconds", "number", "time with the former", "s"),
    Field("kernels[].seconds", "number", "time with the latter", "s"),
    Field("kernels[].gain", "number", "the former as a share of the latter"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    compile.add_model_arguments(parser, "source")
    parser.add_argument(
        "--candidates", type=arguments.count, default=6, help="register blocks per kernel that are timed (default: 6)"
    )
    seconds = "about how long to run each candidate each time (default: 0.3)"
    parser.add_argument("--seconds", type=arguments.seconds, default=0.3, help=seconds)
    arguments.add_machine(parser)
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    disk = cache.current()
    if disk is None:
        raise console.UsageError(
            "what is found is kept in the cache of compiled programs, which is not used",
            remedy="without GRAPHC_CACHE=off, GRAPHC_DUMP, GRAPHC_PRINT_AFTER and GRAPHC_VERIFY=pass",
        )
    source = sources.open_source(options)
    with targets.compiling():
        stages = source.stages(running_target(options.machine), frozen=True)
    with targets.compiling(), shown(stages.name) as progress:
        inputs, weights = sources.example_arrays(stages, source.weights)
        found = tune(stages, inputs, weights, disk, options.candidates, options.seconds, progress.tell)
    if options.json:
        console.emit_json(found.as_json())
    else:
        console.emit(text(found))
    return console.OK


def text(found: Tuning) -> str:
    """The table, and what became of it."""
    times = f"{console.seconds_text(found.before)} -> {console.seconds_text(found.after)} on one thread"
    if found.kept:
        end = f"{times}; used from now on (graphc cache --clear forgets it)"
    elif any(k.chosen != k.estimated for k in found.kernels):
        end = f"{times}; the whole is not faster, so nothing is kept"
    else:
        end = "the estimate's choices are the fastest ones, or as fast"
    rows = [["kernel", "calls", "time", "gain", "chosen", "estimate's choice"]]
    rows += [_row(k) for k in sorted(found.kernels, key=lambda k: -k.seconds)]
    return f"{console.table(rows)}\n\n{found.name}: {end}"


def _row(kernel: TunedKernel) -> list[str]:
    same = kernel.chosen == kernel.estimated
    gain = "" if same else f"{kernel.gain:.2f}"
    figures = [kernel.kernel, str(kernel.calls), console.seconds_text(kernel.seconds), gain]
    return [*figures, kernel.chosen, "the same" if same else kernel.estimated]
