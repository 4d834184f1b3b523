"""``graphc profile``: measure each kernel of a model and compare it with the peak of the machine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import nullcontext

from graphc.cli import arguments, console, sources, targets
from graphc.cli.commands import compile
from graphc.cli.commands.explain import CALL
from graphc.cli.entry import add_entry
from graphc.cli.fields import Field, below
from graphc.compiler.example_arrays import example_arrays
from graphc.compiler.profile import KernelTime, Profile, profile
from graphc.compiler.ready import running_target
from graphc.monitor import profile as trace

EXAMPLES = ("graphc profile net.gcm --seconds 0.5", "graphc profile net.gcm --seconds 0.5 --trace trace.json")
TRACED_CALLS = 5
"""Number of calls in a trace."""
JSON = (
    Field("name", "string", "name of the model"),
    Field("sizes.*", "integer", "sizes of named dimensions"),
    *below("calls[].report", CALL),
    Field("calls[].seconds", "number", "time of this call of a kernel", "s"),
    Field("calls[].share", "number", "its fraction of the time of all calls"),
    Field(
        "calls[].peak_fraction",
        "number or null",
        "its operations per second as a fraction of the peak; null if the call is too short to tell",
    ),
    Field("calls[].copy_fraction", "number or null", "its bytes per second as a fraction of the bandwidth of a copy"),
    Field("calls[].spread[]", "number", "the best time, and the first and third quartile", "s", True),
    Field("calls[].resolved", "boolean", "whether it takes longer than the resolution of the clock", optional=True),
    Field("seconds", "number", "time of the whole program", "s"),
    Field("kernels", "number", "sum of the times of all calls", "s", True),
    Field("overhead", "number", "time that a call from Python adds", "s", True),
    Field("resolution", "number", "the shortest time that can be measured", "s", True),
    Field("stamp", "number", "cost of reading the clock, which is subtracted", "s", True),
    Field("rounds", "integer", "number of runs"),
    Field("machine.flops", "number", "peak of one core, in f32", "1/s"),
    Field("machine.bandwidth", "number", "bandwidth of a copy on one core", "B/s"),
    Field("modules.*", "number", "time of each module", "s"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    compile.add_model_arguments(parser, "source")
    compile.add_passes_argument(parser)
    add_entry(parser)
    parser.add_argument(
        "--seconds", type=arguments.seconds, default=1.0, help="seconds to measure, approximately (default: 1)"
    )
    parser.add_argument("--rounds", type=arguments.count, default=1000, help="largest number of runs (default: 1000)")
    arguments.add_machine(parser)
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help=f"also write the compile and {TRACED_CALLS} calls as a trace for Perfetto and chrome://tracing (JSON)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with targets.compiling():
        machine = running_target(options.machine)
    with nullcontext() if options.trace is None else trace.profile(options.trace) as session:
        source = sources.open_source(options, machine)
        with targets.compiling():
            stages = source.stages(machine, frozen=True)
            inputs, weights = example_arrays(stages, source.weights)
            if session is not None:
                session.call(stages, inputs, weights, TRACED_CALLS)
    with targets.compiling():
        result = profile(stages, inputs, weights, options.seconds, options.rounds)
    if options.json:
        console.emit_json(result.as_json())
    else:
        console.emit(text(result))
    return console.OK


DISTURBED = 1.25
"""Largest ratio of a call's time to the sum of its kernels' times on an otherwise idle machine."""


def text(result: Profile) -> str:
    """Format the table of kernels, and the time of each module."""
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
    rows += [_row(call, result) for call in sorted(result.calls, key=lambda c: -c.seconds)]
    modules = [["module", "time", "share"]]
    total = result.kernels or float("inf")
    modules += [
        [name or "(no module)", time_text(spent, result.resolution), f"{spent / total:.1%}"]
        for name, spent in result.by_module().items()
    ]
    head = console.wrap("\n".join(_head(result)))
    return "\n".join([head, "", console.table(rows, USES), "", console.table(modules, modules[0])])


USES = (
    "kernel",
    "time",
    "share",
    "kind",
    "from",
    "of peak",
    "GFLOP/s",
    "call",
    "spread",
    "of copy",
    "GB/s",
    "schedule",
)
"""Headings, the most useful first: narrow terminals show the first ones."""


def _head(result: Profile) -> list[str]:
    machine, show = result.machine, console.seconds_text
    title = console.with_sizes(result.name, result.sizes)
    busy = ["note: the call took longer than its kernels, so something else ran on this machine: try --seconds 10"]
    return [
        f"{title}: {show(result.seconds)} on one thread, median of {result.rounds} runs; a call from Python adds "
        f"{show(result.overhead)}",
        f"kernels: {show(result.kernels)} in all ({result.kernels / (result.seconds or 1.0):.0%} of that); shares are "
        "fractions of this sum",
        f"clock: its cost ({show(result.stamp)}) is subtracted; times below {show(result.resolution)} cannot be "
        "measured; spread: interquartile range of the runs",
        f"machine: peak {machine.flops / 1e9:.1f} GFLOP/s (f32), copy {machine.bandwidth / 1e9:.1f} GB/s, one core",
        *(busy if result.seconds > DISTURBED * result.kernels else ()),
    ]


def time_text(seconds: float, resolution: float) -> str:
    """Format a time, or ``< resolution`` if it is too short to measure."""
    return console.seconds_text(seconds) if seconds > resolution else f"< {console.seconds_text(resolution)}"


def _row(call: KernelTime, result: Profile) -> Sequence[str]:
    report, spent = call.report, call.seconds or float("inf")
    _, low, high = call.spread
    return [
        str(report.number),
        report.kernel,
        report.kind,
        time_text(call.seconds, result.resolution),
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
