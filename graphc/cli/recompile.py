"""What ``graphc compile`` does with a model file or the text of a graph: a model file with other native code."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from graphc.checkpoints.weight_file import read_weights
from graphc.cli import console, targets
from graphc.compiler.compile import compile_graph
from graphc.compiler.freeze import freeze
from graphc.files import model_content
from graphc.files.container import is_container
from graphc.files.model_manifest import ModelManifest
from graphc.files.numpy_file import read_npz
from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.ir.graph.interpret import settle
from graphc.ir.graph.parse import parse_graph
from graphc.models.formats import GCM, format_of
from graphc.models.model_export import machines_of, save_graph, with_code
from graphc.models.model_read import read_model

GRAPH = ".gc"
_OF_TARGETS = ("input", "precision", "passes", "train", "opset", "golden", "device", "no_strict", "weights_entry")


def is_file(options: argparse.Namespace) -> bool:
    """Whether the target is a model file, or the text of a graph as ``graphc ir`` prints it."""
    path = Path(options.target)
    return path.is_file() and (path.suffix == GRAPH or is_container(path))


def write(options: argparse.Namespace, machines: list[str]) -> ModelManifest:
    """Writes the file, with code for machines of these names where ``--native`` asks for it. Raises UsageError for
    arguments that only a model in Python has, ArtifactError and CompileFailure."""
    wrong = [name for name in _OF_TARGETS if getattr(options, name)]
    if options.weights and not options.target.endswith(GRAPH):
        wrong.append("weights")
    if wrong:
        raise console.UsageError(
            f"--{wrong[0].replace('_', '-')} is for a model in Python, and {options.target} is none"
        )
    if format_of(options.output) != GCM:
        raise console.UsageError("files become model files and C libraries", remedy="-o net.gcm, or -o net.so")
    with targets.compiling():
        built = machines_of(machines, strict_order=False, native=True) if options.native else []
        if not options.target.endswith(GRAPH):
            return model_content.save(options.output, with_code(read_model(options.target), built))
        graph = _graph(Path(options.target))
        weights = _weights(graph, options.weights)
        codes = [compile_graph(freeze(settle(graph), weights), target=target) for target in built]
        return save_graph(graph, weights, options.output, native=codes)


def _graph(path: Path) -> Graph:
    """The graph of a text, with large constants in an .npz file beside it."""
    beside = path.with_suffix(".npz")
    data = read_npz(beside) if beside.is_file() else {}
    return parse_graph(path.read_text(encoding="utf-8", errors="replace"), data)


def _weights(graph: Graph, path: str | None) -> dict[str, np.ndarray]:
    """The arrays of a graph's params and states, out of a file of weights."""
    needed = [input_path(v) for v in graph.inputs if input_class(v) != "input"]
    if path is None and needed:
        raise console.UsageError(f"@{graph.name} needs arrays for {', '.join(needed)}", remedy="--weights FILE")
    tree = read_weights(path).tree if path is not None else {}
    return {name: np.asarray(tree[name]) for name in needed if name in tree}
