"""``graphc ir``: the text of any stage between a model and its machine code."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from graphc import artifact
from graphc.cli import compile, console, targets
from graphc.codegen.target import NAMED, target_named
from graphc.compiler.freeze import freeze
from graphc.compiler.stages import STAGES, Stages
from graphc.ir.kernel_parse import parse_program
from graphc.ir.parse import parse_graph
from graphc.model_file import read_graph, snapshot
from graphc.numpy_file import read_npz


def add_to(commands: Any) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser("ir", help="print a stage of the compiler", description=__doc__)
    compile.add_model_arguments(parser, "source")
    parser.add_argument("--stage", choices=STAGES, default="traced", help="which text (default: traced)")
    parser.add_argument(
        "--target", choices=("host", *NAMED), default="host", help="machine of scheduled, llvm and asm (default: host)"
    )
    parser.add_argument("--freeze", action="store_true", help="make weights constants, as when a model file is loaded")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command."""
    machine = target_named(options.target)
    path = Path(options.source)
    if path.exists() or not targets.is_target(options.source):
        stages = _from_file(path, machine, options.freeze)
    else:
        model, examples = compile.prepare(options, "source")
        with targets.compiling():
            traced = targets.guarded(lambda: snapshot(model, examples), f"tracing {options.source}")
        graph = freeze(traced.graph, traced.state()) if options.freeze else traced.graph
        stages = Stages(graph, target=machine)
    with targets.compiling():
        console.emit(stages.text(options.stage))
    return console.OK


def _from_file(path: Path, machine: Any, frozen: bool) -> Stages:
    """The stages after a model file, or after the text of a graph (.gc) or of a program (.gck)."""
    if path.suffix not in (".gcm", ".gc", ".gck"):
        raise console.UsageError(
            f"{str(path)!r} is neither a target nor a .gcm, .gc or .gck file", remedy=targets.FORMS
        )
    if not path.is_file():
        raise FileNotFoundError(2, "no such file", str(path))
    if path.suffix == ".gcm":
        stored = artifact.load(path)
        return Stages(freeze(read_graph(stored), stored.weights) if frozen else read_graph(stored), target=machine)
    text = path.read_text(encoding="utf-8", errors="replace")
    data: dict[str, np.ndarray] = {}
    beside = path.with_suffix(".npz")
    if beside.is_file():
        data = read_npz(beside)
    with targets.compiling():
        if path.suffix == ".gc":
            return Stages(parse_graph(text, data), target=machine)
        return Stages(lowered=parse_program(text, data), target=machine)
