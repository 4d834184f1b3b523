"""``graphc tune``: search for a faster schedule of a model, and remember it on this machine."""

from __future__ import annotations

import argparse

from graphc.cli import arguments, console, sources, targets
from graphc.cli.commands import compile
from graphc.cli.fields import Field
from graphc.compiler import cache
from graphc.compiler.example_arrays import example_arrays
from graphc.compiler.progress import shown
from graphc.compiler.ready import running_target
from graphc.compiler.tuning import BUDGET, TunedKernel, TunedSetting, Tuning, tune

EXAMPLES = ("graphc tune net.gcm --seconds 5 --candidates 2",)
JSON = (
    Field("name", "string", "name of the model"),
    Field("key", "string", "key of its settings in the cache; empty for a program without a graph"),
    Field("before", "number", "time of a call with the choices of the cost model", "s"),
    Field("after", "number", "time of a call with the choices that won", "s"),
    Field("kept", "boolean", "whether compiles use these choices from now on"),
    Field("changes", "string", "the kept changes of costs; empty for none"),
    Field("blocks", "boolean", "whether register blocks are among the choices"),
    Field("untried", "integer", "candidates that --seconds left no time for"),
    Field("seconds", "number", "time of the search", "s"),
    Field("settings[].setting", "string", "name of a setting", optional=True),
    Field("settings[].changes", "string", "the costs that it changes"),
    Field("settings[].outcome", "string", "kept, not faster, no change (the program is the same), or not tried"),
    Field("settings[].gain", "number or null", "speedup of the whole program; null where it was not timed"),
    Field("settings[].wins", "integer", "rounds in which the program was 3% faster"),
    Field("settings[].rounds", "integer", "rounds"),
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
    seconds = f"seconds after which no further candidate is tried (default: {BUDGET:.0f})"
    parser.add_argument("--seconds", type=arguments.seconds, default=BUDGET, help=seconds)
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
        inputs, weights = example_arrays(stages, source.weights)
        tuning = tune(stages, inputs, weights, disk, options.candidates, options.seconds, progress.tell)
    if options.json:
        console.emit_json(tuning.as_json())
    else:
        console.emit(text(tuning))
    return console.OK


def text(tuning: Tuning) -> str:
    """Format the tables of settings and kernels, and whether the choices are kept."""
    tables = []
    if tuning.settings:
        rows = [["setting", "costs", "result", "gain", "rounds won"]]
        tables.append(console.table([*rows, *map(_setting_row, tuning.settings)]))
    if tuning.kernels:
        rows = [["kernel", "calls", "time", "gain", "fastest block", "cost model's choice"]]
        rows += [_kernel_row(k) for k in sorted(tuning.kernels, key=lambda k: -k.seconds)]
        tables.append(console.table(rows))
    lines = [f"{tuning.name}: {_conclusion(tuning)}"]
    if tuning.untried:
        lines.append(f"{tuning.untried} candidates not tried in {tuning.seconds:.0f} s: pass more --seconds")
    return "\n\n".join([*tables, "\n".join(lines)])


def _conclusion(tuning: Tuning) -> str:
    now = console.seconds_text(tuning.before)
    if tuning.kept:
        times = f"{now} -> {console.seconds_text(tuning.after)} a call"
        return f"{times}; used from now on (graphc cache --clear forgets it)"
    nothing_won = not any(s.outcome == "kept" for s in tuning.settings) and not tuning.blocks
    if nothing_won:
        return f"{now} a call; nothing to gain, so the cost model's choices stay"
    return f"{now} a call; the choices did not win a second time, so nothing is kept"


def _setting_row(setting: TunedSetting) -> list[str]:
    gain = "" if setting.gain is None else f"{setting.gain:.2f}"
    rounds = f"{setting.wins} of {setting.rounds}" if setting.rounds else ""
    return [setting.setting, setting.changes, setting.outcome, gain, rounds]


def _kernel_row(kernel: TunedKernel) -> list[str]:
    same = kernel.chosen == kernel.estimated
    gain = "" if same else f"{kernel.gain:.2f}"
    figures = [kernel.kernel, str(kernel.calls), console.seconds_text(kernel.seconds), gain]
    return [*figures, kernel.chosen, "the same" if same else kernel.estimated]
