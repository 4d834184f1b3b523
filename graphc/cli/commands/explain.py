"""``graphc explain``: report the compiler's decisions for a model, and the reasons."""

from __future__ import annotations

import argparse
from dataclasses import replace

from graphc.cli import arguments, console, sources, targets
from graphc.cli.commands import compile
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
    Field("number", "integer", "index of the call in the program", optional=True),
    Field("kernel", "string", "name of the kernel"),
    Field("kind", "string", "dominant kind of work: contraction, elementwise, copy ..."),
    Field("ops[]", "string", "an op of the graph that the kernel computes", optional=True),
    Field("modules[]", "string", "a module that the kernel belongs to", optional=True),
    Field("source", "string", "source line that it was traced from"),
    Field("reads[]", "string", "a value that the kernel reads, with its type", optional=True),
    Field("writes[]", "string", "a value that the kernel writes, with its type", optional=True),
    Field("schedule", "string", "schedule of the kernel: blocks, lanes, threads"),
    Field("packed", "boolean", "whether weights are prepacked"),
    Field("lanes", "integer", "elements in a vector register"),
    Field("copies", "any", "unroll factors of its loops"),
    Field("scratch", "any", "scratch memory of the kernel"),
    Field("flops", "integer", "arithmetic operations"),
    Field("bytes", "integer", "bytes read and written", "B"),
    Field("loops", "any", "choices for each loop"),
    Field("versions", "integer", "number of versions for different sizes"),
    Field("device", "any", "how a device computes it; null on the CPU"),
    Field("home", "string", "the module that its time is attributed to", optional=True),
)
JSON = (
    Field("name", "string", "name of the model"),
    *below("calls[]", CALL),
    Field("unfused[].value", "string", "a value that is stored between two kernels", optional=True),
    Field("unfused[].producer", "integer", "the call that computes it"),
    Field("unfused[].reader", "integer", "the call that reads it"),
    Field("unfused[].reason", "string", "why the two are not fused"),
    Field("layout", "string or null", "memory layout chosen for images"),
    Field("layouts.*", "number", "estimated cost of each layout", optional=True),
    Field("memory", "any", "bytes of arena, scratch and constants, and a formula in the named dimensions"),
    Field("passes[].name", "string", "name of a pass", optional=True),
    Field("passes[].changed", "integer", "number of changes it made"),
    Field("passes[].seconds", "number", "time it took", "s"),
    Field("passes[].reasons", "any", "reasons for its changes"),
    Field("passes[].steps", "any", "the steps of a composite pass"),
    Field("dims[]", "string", "a named dimension with its range", optional=True),
    Field("weights", "any", "with --precision: the stored form of each weight"),
    Field("held", "any", "values saved for the backward pass, and why"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    compile.add_model_arguments(parser, "source")
    compile.add_passes_argument(parser)
    add_entry(parser)
    parser.add_argument(
        "--target",
        choices=arguments.machines(),
        default="host",
        metavar="NAME",
        help=f"machine to compile for (default: host): {', '.join(arguments.machines())}",
    )
    arguments.add_device(parser, "compile for a device")
    compile.add_precision_argument(parser)
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="prove from the machine code: a call allocates no memory, takes no lock and makes no system call, and "
        "print its stack, arena and code size and its largest instruction count; exit code 6 if the proof fails",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    machine = arguments.target_of(options)
    source = sources.open_source(options, machine, calls_python=True)
    graph, narrowed = source.graph, None
    if options.precision is not None and graph is None:
        raise console.UsageError(
            "--precision applies to models and graphs, not to a .gck program", remedy="leave out --precision"
        )
    with targets.compiling():
        if options.precision is not None and graph is not None:
            narrowed = freeze_narrow(graph, source.weights, options.precision, source.pipeline, machine.costs)
        stages = source.stages(machine, frozen=True) if narrowed is None else Stages(narrowed.graph, target=machine)
        explanation = explain(stages)
    if options.realtime:
        report = prove_realtime(stages)
        console.emit(report.to_json() if options.json else str(report))
        return console.OK
    if narrowed is not None:
        explanation = replace(explanation, weights=narrowed.decisions)
    if options.json:
        console.emit_json(explanation.as_json())
    else:
        console.emit(str(explanation))
    return console.OK
