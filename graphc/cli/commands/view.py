"""``graphc view``: write an HTML page with a model, its graph after every pass, and its kernels with their times."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from graphc.base.errors import CompileError
from graphc.cli import arguments, console, sources, targets
from graphc.cli.commands import compile
from graphc.cli.entry import add_entry
from graphc.cli.fields import Field
from graphc.codegen.machine.target import Target
from graphc.compiler.example_arrays import example_arrays
from graphc.compiler.profile import Profile, profile
from graphc.compiler.ready import running_target
from graphc.compiler.stages import Stages
from graphc.files.container import replacing
from graphc.ir.graph.graph import Graph
from graphc.pages.model_data import view_data
from graphc.pages.model_page import page

EXAMPLES = (
    "graphc view net.gcm -o net.html",
    "graphc view net.py:Net --input x:f32[1,1,28,28] -o net.html --no-times",
)
JSON = (
    Field("path", "string", "the page"),
    Field("bytes", "integer", "its size", "B"),
    Field("passes", "integer", "number of graphs on the page: as traced, frozen, and after each pass"),
    Field("nodes", "integer", "nodes of the compiled graph, including weights and inputs"),
    Field("kernels", "integer", "number of kernel calls"),
    Field("seconds", "number or null", "time of the whole call on one thread; null without times", "s"),
)


def add_to(parser: argparse.ArgumentParser) -> None:
    compile.add_model_arguments(parser, "source")
    compile.add_passes_argument(parser)
    add_entry(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="page to write: net.html")
    parser.add_argument(
        "--profile",
        dest="times",
        action="store_true",
        default=True,
        help="measure the times of the kernels (the default)",
    )
    parser.add_argument(
        "--no-times", dest="times", action="store_false", help="leave out times, so that equal models give equal pages"
    )
    parser.add_argument(
        "--seconds", type=arguments.seconds, default=2.0, help="seconds to measure, approximately (default: 2)"
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    arguments.add_machine(parser)
    parser.add_argument("--json", action="store_true", help="print a report on the page as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    output = Path(options.output)
    if output.suffix not in (".html", ".htm"):
        raise console.UsageError(
            f"graphc view writes an .html page, not {str(output)!r}",
            remedy="pass -o net.html; graphc viz draws an .svg",
        )
    if not output.resolve().parent.is_dir():
        raise console.UsageError(f"there is no folder {str(output.parent)!r} to write {output.name!r} to")
    with targets.compiling():
        machine = running_target(options.machine)
    source = sources.open_source(options, machine, calls_python=not options.times)
    if source.graph is None:
        raise console.UsageError("a .gck file holds a lowered program, which has no graph to show")
    with targets.compiling():
        data = _data(source, source.graph, machine, options)
    with replacing(output) as file:
        file.write(page(data).encode())
    facts = _facts(output, data)
    if options.json:
        console.emit_json(facts)
    else:
        counts = f"{facts['passes']} passes, {facts['nodes']} nodes, {facts['kernels']} kernel calls"
        console.emit(f"{output}: {counts}, {console.bytes_text(facts['bytes'])}")
    if options.open:
        webbrowser.open(output.resolve().as_uri())
    return console.OK


def _data(source: sources.Source, graph: Graph, machine: Target, options: argparse.Namespace) -> dict[str, Any]:
    def measure(stages: Stages) -> Profile | None:
        inputs, weights = example_arrays(stages, source.weights)
        try:
            return profile(stages, inputs, weights, options.seconds)
        except CompileError as error:
            console.say(f"note: without times: {error.what}")
            return None

    return view_data(graph, source.weights, machine, source.pipeline, measure=measure if options.times else None)


def _facts(output: Path, data: dict[str, Any]) -> dict[str, Any]:
    """Count the graphs, nodes and kernels on the page."""
    last = data["graphs"][data["passes"][-1]["graph"]]
    facts = {"path": str(output), "bytes": output.stat().st_size, "passes": len(data["passes"]), "nodes": len(last)}
    spent = data["profile"] and data["profile"]["seconds"]
    return {**facts, "kernels": len(data["kernels"]), "seconds": spent}
