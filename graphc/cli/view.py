"""``graphc view``: one page that shows a model, its graph after every pass, and its kernels with their times."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from graphc.base.errors import CompileError
from graphc.cli import arguments, compile, console, sources, targets
from graphc.codegen.machine.target import Target
from graphc.compiler.ready import running_target
from graphc.compiler.profile import Profile, profile
from graphc.compiler.stages import Stages
from graphc.drawing.from_graph import class_names
from graphc.files.container import replacing
from graphc.view import page, view_data

EXAMPLES = (
    "graphc view net.gcm -o net.html",
    "graphc view model.py:Net --input x:f32[1,3,224,224] -o net.html --no-times",
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Gives the command's parser its arguments."""
    compile.add_model_arguments(parser, "source")
    compile.add_passes_argument(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the page to write: an .html")
    parser.add_argument(
        "--profile",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="measure the kernels (default), or leave times out, so that equal models make equal pages",
    )
    parser.add_argument("--no-times", dest="profile", action="store_false", help="the same as --no-profile")
    parser.add_argument("--seconds", type=arguments.seconds, default=2.0, help="about how long to run (default: 2)")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    arguments.add_machine(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    place = Path(options.output)
    if place.suffix not in (".html", ".htm"):
        raise console.UsageError(f"{str(place)!r}: it writes a page", remedy="-o net.html; graphc viz draws an .svg")
    if not place.resolve().parent.is_dir():
        raise console.UsageError(f"there is no folder {str(place.parent)!r} to write {place.name!r} to")
    with targets.compiling():
        machine = running_target(options.machine)
    source = sources.open_source(options, machine, calls_python=not options.profile)
    if source.graph is None:
        raise console.UsageError("a .gck file holds a lowered program, which has no graph to show")
    with targets.compiling():
        data = _data(source, machine, options)
    text = page(data)
    with replacing(place) as file:
        file.write(text.encode())
    console.emit(f"{place}: {_told(data)}, {console.bytes_text(place.stat().st_size)}")
    if options.open:
        webbrowser.open(place.resolve().as_uri())
    return console.OK


def _data(source: sources.Source, machine: Target, options: argparse.Namespace) -> dict[str, Any]:
    def measure(stages: Stages) -> Profile | None:
        inputs, weights = sources.example_arrays(stages, source.weights)
        try:
            return profile(stages, inputs, weights, options.seconds)
        except CompileError as error:
            console.say(f"note: without times: {error.what}")
            return None

    assert source.graph is not None
    classes = class_names(source.module)
    return view_data(
        source.graph, source.weights, machine, source.pipeline, classes, measure if options.profile else None
    )


def _told(data: dict[str, Any]) -> str:
    """What the page shows, in a few words."""
    passes, calls = len(data["passes"]), len(data["kernels"])
    return f"{passes} passes, {calls} kernel calls"
