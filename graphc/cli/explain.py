"""``graphc explain``: what the compiler decided for a model, and why."""

from __future__ import annotations

import argparse
from dataclasses import replace

from graphc.cli import arguments, compile, console, sources, targets
from graphc.cli.entry import add_entry
from graphc.cli.fields import Field, below
from graphc.compiler.explain import explain
from graphc.compiler.freeze import freeze_narrow
from graphc.compiler.realtime import prove_realtime
from graphc.compiler.stages import Stages

EXAMPLES = (
    "graphc explain net.gcm",
    "graphc explain net.py:Net --input x:f32[1,1,28,28] --target avx512 --json",
)
CALL = (
    Field("number", "integer", "its place in the program", optional=True),
    Field("kernel", "string", "name of the kernel"),
    Field("kind", "string", "what it mainly is: contraction, elementwise, copy ..."),
    Field("ops[]", "string", "an op of the graph that it computes", optional=True),
    Field("modules[]", "string", "a module that it comes from", optional=True),
    Field("source", "string", "the line that it comes from"),
    Field("reads[]", "string", "a value that it reads, with its type", optional=True),
    Field("writes[]", "string", "a value that it writes, with its type", optional=True),
    Field("schedule", "string", "how it is computed"),
    Field("packed", "boolean", "whether weights lie in another order"),
    Field("lanes", "integer", "elements of a vector"),
    Field("copies", "any", "how often loops are unrolled"),
    Field("scratch", "any", "memory of its own"),
    Field("flops", "integer", "operations on numbers"),
    Field("bytes", "integer", "what it reads and writes", "B"),
    Field("loops", "any", "choices by loop"),
    Field("versions", "integer", "versions of it for different sizes"),
    Field("device", "any", "the way that it takes on a device; null on the CPU"),
    Field("home", "string", "the module for which its time counts", optional=True),
)
JSON = (
    Field("name", "string", "name of the model"),
    *below("calls[]", CALL),
    Field("unfused[].value", "string", "a value that is stored between two kernels", optional=True),
    Field("unfused[].producer", "integer", "the call that makes it"),
    Field("unfused[].reader", "integer", "the call that reads it"),
    Field("unfused[].reason", "string", "why they are not one kernel"),
    Field("layout", "string or null", "the layout of images that was chosen"),
    Field("layouts.*", "number", "estimated cost of each layout", optional=True),
    Field("memory", "any", "bytes of arena, scratch, constants, and a formula of sizes"),
    Field("passes[].name", "string", "a pass", optional=True),
    Field("passes[].changed", "integer", "how much it has changed"),
    Field("passes[].seconds", "number", "how long it took", "s"),
    Field("passes[].reasons", "any", "why"),
    Field("passes[].steps", "any", "what it consists of"),
    Field("dims[]", "string", "a named dimension with its range", optional=True),
    Field("weights", "any", "with --precision: what became of each weight"),
    Field("held", "any", "values that are kept for the backward pass, and why"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    compile.add_model_arguments(parser, "source")
    compile.add_passes_argument(parser)
    add_entry(parser)
    parser.add_argument(
        "--target",
        choices=arguments.machines(),
        default="host",
        metavar="NAME",
        help=f"machine (default: host): {', '.join(arguments.machines())}",
    )
    arguments.add_device(parser, "the machine is a device")
    compile.add_precision_argument(parser)
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="prove from the machine code that a call takes no memory, lock or system call, and print its stack, "
        "arena, code and most instructions; exit code 6 where that fails",
    )
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
    if options.realtime:
        report = prove_realtime(stages)
        console.emit(report.to_json() if options.json else str(report))
        return console.OK
    if narrowed is not None:
        found = replace(found, weights=narrowed.decisions)
    if options.json:
        console.emit_json(found.as_json())
    else:
        console.emit(str(found))
    return console.OK
