"""``graphc viz``: draw the graph of a model as an SVG, a PNG or an HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from graphc.cli import console, exported, targets
from graphc.cli.commands.compile import add_model_arguments, prepare
from graphc.files import model_content
from graphc.files.numpy_file import read_npz
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.parse import parse_graph
from graphc.models.model_graph import read_graph
from graphc.models.model_trace import snapshot
from graphc.nn.module import Module
from graphc.pages.show import SUFFIXES, picture

EXAMPLES = (
    "graphc viz net.gcm -o net.svg",
    "graphc viz net.py:Net --input x:f32[1,1,28,28] --depth 1 -o net.html",
)


def add_to(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="picture to write: net.svg, net.png, or net.html with groups that open and close",
    )
    parser.add_argument(
        "--depth",
        type=int,
        metavar="N",
        help="draw each module at nesting depth N as one box (default: each layer is one box, with few boxes in all)",
    )
    parser.add_argument("--detail", action="store_true", help="draw every op, not each layer as one box")
    parser.add_argument(
        "--autograd",
        action="store_true",
        help="draw the autograd graph of one call instead (only for a model in Python)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    output = Path(options.output)
    if output.suffix not in SUFFIXES:
        raise console.UsageError(f"{str(output)!r} is not a picture file", remedy="write to a .svg, .png or .html file")
    if options.depth is not None and options.depth < 1:
        raise console.UsageError(f"--depth {options.depth} is below 1")
    if not output.resolve().parent.is_dir():
        raise console.UsageError(f"there is no folder {str(output.parent)!r} to write {output.name!r} to")
    subject, module = _subject(options)
    picture(subject, output, module=module, depth=options.depth, detail=options.detail)
    count = f"{len(subject)} nodes, " if isinstance(subject, Graph) else ""
    console.emit(f"{output}: {count}{console.bytes_text(output.stat().st_size)}")
    return console.OK


def _subject(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the graph or tensor to draw, and the module that names its parameters."""
    path = Path(options.target)
    if not (targets.is_target(options.target) or exported.is_exported(options.target)):
        if options.autograd:
            raise console.UsageError("--autograd needs a model in Python", remedy=targets.FORMS)
        return _stored(path), None
    model, examples, dims = prepare(options)
    doing = f"tracing {options.target}"
    if not options.autograd:
        with targets.compiling():
            traced = targets.guarded(
                lambda: snapshot(model, examples, dims=dims, calls_python=True, by_hints=True), doing
            )
            return traced.graph, model if isinstance(model, Module) else None
    with targets.compiling():
        result = targets.guarded(lambda: model(*examples), f"running {options.target}")
    return result, model if isinstance(model, Module) else None


def _stored(path: Path) -> Graph:
    if path.suffix not in (".gcm", ".gc"):
        raise console.UsageError(f"{str(path)!r} is neither a target nor a .gcm or .gc file", remedy=targets.FORMS)
    if not path.is_file():
        raise FileNotFoundError(2, "no such file", str(path))
    if path.suffix == ".gcm":
        return read_graph(model_content.load(path))
    constants_path = path.with_suffix(".npz")
    data = read_npz(constants_path) if constants_path.is_file() else {}
    with targets.compiling():
        return parse_graph(path.read_text(encoding="utf-8", errors="replace"), data)
