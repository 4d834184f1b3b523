"""SOURCE arguments: read a target, a model file, or the text of a graph, fusion plan or program, to be compiled."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from graphc.base.records import dataclass
from graphc.cli import console, exported, targets
from graphc.cli.commands import compile
from graphc.cli.entry import check_entry
from graphc.codegen.machine.target import Target, host_target
from graphc.compiler.freeze import freeze
from graphc.compiler.stages import Stages
from graphc.files import model_content
from graphc.files.numpy_file import read_npz
from graphc.fusion.text import parse_plan
from graphc.fusion.vertical import FusionPlan
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import settle
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.statements import Program
from graphc.models.model_graph import read_graph
from graphc.models.model_trace import snapshot
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE, Arranged, optimize

SUFFIXES = (".gcm", ".gc", ".gcp", ".gck")


@dataclass(frozen=True)
class Source:
    """A graph with the arrays of its params and states, or a lowered program."""

    graph: Graph | None
    program: Program | None = None
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    """Arrays by qualified name; empty if the file has none."""
    seconds: float = 0.0
    """Seconds spent on tracing or on reading the file."""
    pipeline: Sequence[Pass] = PIPELINE
    """Passes still to run on the graph; the user's first passes have already run."""
    free: frozenset[str] = frozenset()
    """Paths of weights that some entry writes, so that loading the model file does not make them constants."""
    plan: FusionPlan | None = None
    """The graph's fusion plan, if the file has one."""

    def stages(self, machine: Target | None = None, frozen: bool = False) -> Stages:
        """Return the compiler stages for a machine; ``frozen`` turns weights that no entry writes into constants."""
        if self.graph is None:
            return Stages(lowered=self.program, target=machine)
        constants = {path: array for path, array in self.weights.items() if path not in self.free}
        graph = freeze(self.graph, constants) if frozen else self.graph
        plan = self.plan if graph is self.graph else None
        return Stages(graph, target=machine, passes=self.pipeline, plan=plan)


def file_options(path: str, entry: str | None = None) -> argparse.Namespace:
    """Return the options with which ``open_source`` reads a file, or one entry of it."""
    return argparse.Namespace(source=path, input=[], weights=None, train=False, entry=entry)


def open_source(options: argparse.Namespace, machine: Target | None = None, calls_python: bool = False) -> Source:
    """Read what ``options.source`` names; a target is traced with ``--input``, ``--weights`` and ``--train``.

    The user's first passes run here, with the cost model of ``machine`` (None: this machine). ``calls_python`` allows
    the graph to call Python functions, since nothing will run it.

    Raises UsageError, TargetError, UserCodeError, ArtifactError, FileNotFoundError, CompileFailure.
    """
    path = Path(options.source)
    entry = getattr(options, "entry", None)
    if entry is not None and path.suffix != ".gcm":
        raise console.UsageError("--entry names an entry of a .gcm file", remedy="leave out --entry")
    if exported.is_exported(path.name):
        start = time.perf_counter()
        with targets.compiling():
            traced = exported.trace(options.source, options)
        source = Source(traced.graph, None, traced.state())
    elif path.exists() or not targets.is_target(options.source):
        start = time.perf_counter()
        source = _from_file(path, entry)
    else:
        model, examples, dims = compile.prepare(options, "source")
        start = time.perf_counter()
        with targets.compiling():
            traced = targets.guarded(
                lambda: snapshot(model, examples, dims=dims, calls_python=calls_python, by_hints=True),
                f"tracing {options.source}",
            )
        source = Source(traced.graph, None, traced.state())
    source = replace(source, seconds=time.perf_counter() - start)
    passes = getattr(options, "passes", [])
    return _extended(source, targets.resolve_passes(passes, options.source), machine) if passes else source


def _extended(source: Source, passes: Arranged, machine: Target | None) -> Source:
    """Add the user's passes to the source, and run the first ones."""
    if source.graph is None:
        raise console.UsageError("--passes run on graphs, and a .gck file holds a lowered program")
    graph = source.graph
    if passes.first:
        costs = (machine or host_target()).costs
        with targets.compiling():
            graph = optimize(graph, passes.first, costs)
    return replace(source, graph=graph, plan=None, pipeline=passes.pipeline)


def _from_file(path: Path, entry: str | None = None) -> Source:
    if path.suffix not in SUFFIXES:
        raise console.UsageError(
            f"{str(path)!r} is neither a target nor a .gcm, .pt2, .onnx, .mlir, .gc, .gcp or .gck file",
            remedy=targets.FORMS,
        )
    if not path.is_file():
        raise FileNotFoundError(2, "no such file", str(path))
    if path.suffix == ".gcm":
        stored = model_content.load(path)
        if entry is not None:
            check_entry(entry, [e.spec.name for e in stored.entries])
        free = frozenset(t.name for t in stored.manifest.weights if t.free)
        return Source(settle(read_graph(stored, entry)), None, dict(stored.weights), free=free)
    text = path.read_text(encoding="utf-8", errors="replace")
    constants_path = path.with_suffix(".npz")
    data = read_npz(constants_path) if constants_path.is_file() else {}
    with targets.compiling():
        if path.suffix == ".gc":
            return Source(parse_graph(text, data))
        if path.suffix == ".gcp":
            plan = parse_plan(text, data)
            return Source(plan.graph, plan=plan)
        return Source(None, parse_program(text, data))
