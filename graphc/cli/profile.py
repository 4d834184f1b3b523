"""``graphc profile``: the time of each kernel of a model, against what the machine can do."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from graphc.cli import arguments, compile, console, sources, targets
from graphc.cli.entry import add_entry
from graphc.cli.explain import CALL
from graphc.cli.fields import Field, below
from graphc.compiler.profile import KernelTime, Profile, profile
from graphc.compiler.ready import running_target

EXAMPLES = ("graphc profile net.gcm --seconds 0.5",)
JSON = (
    Field("name", "string", "name of the model"),
    *below("calls[].report", CALL),
    Field("calls[].seconds", "number", "time of this call of a kernel", "s"),
    Field("calls[].share", "number", "its share of all"),
    Field("calls[].peak_fraction", "number or null", "its operations as a share of the peak; null if too short"),
    Field("calls[].copy_fraction", "number or null", "its bytes as a share of the bandwidth of a copy"),
    Field("calls[].spread[]", "number", "the best time, and those of the first and third quarter", "s", True),
    Field("calls[].resolved", "boolean", "whether it takes longer than can be told from nothing", optional=True),
    Field("seconds", "number", "time of the whole program", "s"),
    Field("kernels", "number", "time of all calls, one by one", "s", True),
    Field("overhead", "number", "what a call from Python adds", "s", True),
    Field("resolution", "number", "the least that can be told from nothing", "s", True),
    Field("stamp", "number", "what taking the time costs, which is taken off", "s", True),
    Field("rounds", "integer", "how often it was run"),
    Field("machine.flops", "number", "peak of one core, in f32", "1/s"),
    Field("machine.bandwidth", "number", "bandwidth of a copy on one core", "B/s"),
    Field("modules.*", "number", "time by module", "s"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    compile.add_model_arguments(parser, "source")
    compile.add_passes_argument(parser)
    add_entry(parser)
    parser.add_argument("--seconds", type=arguments.seconds, default=1.0, help="about how long to run (default: 1)")
    parser.add_argument("--rounds", type=arguments.count, default=1000, help="most times to run it (default: 1000)")
    arguments.add_machine(parser)
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    with targets.compiling():
        machine = running_target(options.machine)
    source = sources.open_source(options, machine)
    with targets.compiling():
        stages = source.stages(machine, frozen=True)
        inputs, weights = sources.example_arrays(stages, source.weights)
        found = profile(stages, inputs, weights, options.seconds, options.rounds)
    if options.json:
        console.emit_json(found.as_json())
    else:
        console.emit(text(found))
    return console.OK


DISTURBED = 1.25
"""How many times as long as its kernels one by one a call takes at most while nothing else runs on a machine."""
_COLUMNS = (
    *("call", "kernel", "kind", "time", "spread", "share"),
    *("GFLOP/s", "of peak", "GB/s", "of copy", "from", "schedule"),
)


def text(found: Profile) -> str:
    """The table, and the time per module."""
    rows = [
        [
            "call",
            "kernel",
            "kind",
            "time",
            "spread",
            "share",
            "GFLOP/s",
            "of peak",
            "GB/s",
            "of copy",
            "from",
            "schedule",
        ]
    ]
    rows += [_row(call, found) for call in sorted(found.calls, key=lambda c: -c.seconds)]
    modules = [["module", "time", "share"]]
    total = found.kernels or float("inf")
    modules += [
        [name or "(no module)", time_text(spent, found.resolution), f"{spent / total:.1%}"]
        for name, spent in found.by_module().items()
    ]
    return "\n".join([*_head(found), "", console.table(rows), "", console.table(modules)])


def _head(found: Profile) -> list[str]:
    machine, show = found.machine, console.seconds_text
    busy = ["note: the call takes longer than all it calls, so something else ran on this machine: --seconds 10"]
    return [
        f"{found.name}: {show(found.seconds)} on one thread, the middle of {found.rounds} runs; called from Python "
        f"{show(found.overhead)} more",
        f"kernels: {show(found.kernels)} one by one ({found.kernels / (found.seconds or 1.0):.0%} of that), of which "
        "shares are",
        f"clock: its cost ({show(found.stamp)}) is taken off; less than {show(found.resolution)} is not told from "
        "nothing; spread: between the quarters of the runs",
        f"machine: peak {machine.flops / 1e9:.1f} GFLOP/s (f32), copy {machine.bandwidth / 1e9:.1f} GB/s, one core",
        *(busy if found.seconds > DISTURBED * found.kernels else ()),
    ]


def time_text(seconds: float, resolution: float) -> str:
    """A time, or that it is below what can be told from nothing."""
    return console.seconds_text(seconds) if seconds > resolution else f"< {console.seconds_text(resolution)}"


def _row(call: KernelTime, found: Profile) -> Sequence[str]:
    report, spent = call.report, call.seconds or float("inf")
    _, low, high = call.spread
    return [
        str(report.number),
        report.kernel,
        report.kind,
        time_text(call.seconds, found.resolution),
        f"{(high - low) / spent:.1%}" if call.resolved else "-",
        f"{call.share:.1%}" if call.resolved else f"~{call.share:.1%}",
        f"{report.flops / spent / 1e9:.2f}" if call.resolved else "-",
        _percent(call.peak_fraction),
        f"{report.bytes / spent / 1e9:.2f}" if call.resolved else "-",
        _percent(call.copy_fraction),
        ", ".join(report.modules) or report.source,
        report.schedule,
    ]


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction:.1%}"
