"""SOURCE arguments: a target, a model file, or the text of a graph or program, as the start of a compile."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from graphc.cli import compile, console, exported, targets
from graphc.cli.arrays import random_array
from graphc.cli.entry import check_entry
from graphc.codegen.machine.target import Target, host_target
from graphc.compiler.freeze import freeze
from graphc.compiler.stages import Stages
from graphc.files.manifest import TensorSpec
from graphc.files.numpy_file import read_npz
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import settle
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.statements import Program
from graphc.models.model_graph import read_graph
from graphc.models.model_read import read_model
from graphc.models.model_trace import snapshot
from graphc.nn.module import Module
from graphc.passes.base import Pass
from graphc.passes.pipeline import PIPELINE, Arranged, optimize

SUFFIXES = (".gcm", ".gc", ".gck")


@dataclass(frozen=True)
class Source:
    """A traced graph with the arrays of its params and states, or a lowered program."""

    graph: Graph | None
    program: Program | None = None
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    """By qualified name; empty where they are not known."""
    seconds: float = 0.0
    """How long tracing took, or reading the file."""
    pipeline: tuple[Pass, ...] = PIPELINE
    """What the graph goes through; passes of a user that come before are behind it."""
    free: frozenset[str] = frozenset()
    """Paths of weights that are no constants when a model file is loaded, as some entry writes them."""
    module: Any = None
    """The Module that was traced, where it is one."""

    def stages(self, machine: Target | None = None, frozen: bool = False) -> Stages:
        """The compile for a machine; ``frozen``: what the graph only reads becomes part of the code."""
        if self.graph is None:
            return Stages(lowered=self.program, target=machine)
        constants = {path: array for path, array in self.weights.items() if path not in self.free}
        graph = freeze(self.graph, constants) if frozen else self.graph
        return Stages(graph, target=machine, passes=self.pipeline)


def asked(path: str, entry: str | None = None) -> argparse.Namespace:
    """The options with which ``open_source`` reads a file, or an entry of it."""
    return argparse.Namespace(source=path, input=[], weights=None, train=False, entry=entry)


def open_source(options: argparse.Namespace, machine: Target | None = None, calls_python: bool = False) -> Source:
    """What ``options.source`` names, a target together with ``--input``, ``--weights`` and ``--train``; a user's passes
    that run first do so here, by the costs of the machine (None: this one). ``calls_python``: nothing is run, so that
    the graph may call Python functions.

    Raises UsageError, TargetError, UserCodeError, ArtifactError, FileNotFoundError, CompileFailure.
    """
    path = Path(options.source)
    entry = getattr(options, "entry", None)
    if entry is not None and path.suffix != ".gcm":
        raise console.UsageError("--entry names an entry of a .gcm file", remedy="without --entry")
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
                lambda: snapshot(model, examples, dims=dims, calls_python=calls_python), f"tracing {options.source}"
            )
        source = Source(traced.graph, None, traced.state(), module=model if isinstance(model, Module) else None)
    source = replace(source, seconds=time.perf_counter() - start)
    passes = getattr(options, "passes", [])
    return _extended(source, targets.resolve_passes(passes, options.source), machine) if passes else source


def _extended(source: Source, passes: Arranged, machine: Target | None) -> Source:
    """The source with passes of a user."""
    if source.graph is None:
        raise console.UsageError("--passes are passes on graphs, and a .gck file holds a lowered program")
    graph = source.graph
    if passes.first:
        costs = (machine or host_target()).costs
        with targets.compiling():
            graph = optimize(graph, passes.first, costs)
    return replace(source, graph=graph, pipeline=passes.pipeline)


def _from_file(path: Path, entry: str | None = None) -> Source:
    if path.suffix not in SUFFIXES:
        raise console.UsageError(
            f"{str(path)!r} is neither a target nor a .gcm, .pt2, .onnx, .gc or .gck file", remedy=targets.FORMS
        )
    if not path.is_file():
        raise FileNotFoundError(2, "no such file", str(path))
    if path.suffix == ".gcm":
        stored = read_model(path)
        if entry is not None:
            check_entry(entry, [e.spec.name for e in stored.entries])
        free = frozenset(t.name for t in stored.manifest.weights if t.free)
        return Source(settle(read_graph(stored, entry)), None, dict(stored.weights), free=free)
    text = path.read_text(encoding="utf-8", errors="replace")
    beside = path.with_suffix(".npz")
    data = read_npz(beside) if beside.is_file() else {}
    with targets.compiling():
        if path.suffix == ".gc":
            return Source(parse_graph(text, data))
        return Source(None, parse_program(text, data))


def example_arrays(stages: Stages, weights: dict[str, np.ndarray]) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Random inputs, and weights by path, random ones where they are not known."""
    inputs: list[np.ndarray] = []
    known = dict(weights)
    for i, storage in enumerate(stages.scheduled.storages):
        if storage.cls in ("input", "param", "state", "weight"):
            type = storage.outside
            spec = TensorSpec(storage.name, type.dtype.name, type.shape, equals=storage.equals)
            if storage.cls == "input":
                inputs.append(random_array(spec, i))
            else:
                known.setdefault(storage.path, random_array(spec, i))
    return inputs, known
