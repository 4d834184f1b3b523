"""``graphc compile`` for a model file or the text of a graph: write a model file with new native code."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from graphc.checkpoints.weight_file import read_weights
from graphc.cli import console, targets
from graphc.files import model_content
from graphc.files.container import is_container
from graphc.files.model_manifest import ModelManifest
from graphc.files.numpy_file import read_npz
from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.ir.graph.parse import parse_graph
from graphc.models.formats import GCM, format_of
from graphc.models.model_export import codes_for, machines_of, save_graph, with_code

GRAPH = ".gc"
_OF_TARGETS = ("input", "precision", "passes", "train", "opset", "golden", "device", "no_strict", "weights_entry")


def is_file(options: argparse.Namespace) -> bool:
    """Check whether the target is a model file, or the text of a graph as ``graphc ir`` prints it."""
    path = Path(options.target)
    return path.is_file() and (path.suffix == GRAPH or is_container(path))


def write(options: argparse.Namespace, machines: list[str]) -> ModelManifest:
    """Write the model file, with native code for ``machines`` if ``--native`` is given.

    Raises UsageError for options that only apply to a Python model, ArtifactError and CompileFailure.
    """
    wrong = [name for name in _OF_TARGETS if getattr(options, name)]
    if options.weights and not options.target.endswith(GRAPH):
        wrong.append("weights")
    if wrong:
        raise console.UsageError(
            f"--{wrong[0].replace('_', '-')} applies only to a Python model, and {options.target} is a file"
        )
    if format_of(options.output) != GCM:
        raise console.UsageError(
            "a compiled file can only become a model file or a C library", remedy="pass -o net.gcm or -o net.so"
        )
    with targets.compiling():
        machine_targets = machines_of(machines, strict_order=False, native=True) if options.native else []
        if not options.target.endswith(GRAPH):
            return model_content.save(options.output, with_code(model_content.load(options.target), machine_targets))
        graph = _graph(Path(options.target))
        weights = _weights(graph, options.weights)
        codes = codes_for(graph, weights, machine_targets)
        return save_graph(graph, weights, options.output, native=codes)


def _graph(path: Path) -> Graph:
    """Parse the text of a graph; its large constants are in an .npz file of the same name."""
    constants_path = path.with_suffix(".npz")
    data = read_npz(constants_path) if constants_path.is_file() else {}
    return parse_graph(path.read_text(encoding="utf-8", errors="replace"), data)


def _weights(graph: Graph, path: str | None) -> dict[str, np.ndarray]:
    """Read the arrays of a graph's parameters and states from a weights file."""
    needed = [input_path(v) for v in graph.inputs if input_class(v) != "input"]
    if path is None and needed:
        raise console.UsageError(f"@{graph.name} needs arrays for {', '.join(needed)}", remedy="pass --weights FILE")
    tree = read_weights(path).tree if path is not None else {}
    return {name: np.asarray(tree[name]) for name in needed if name in tree}
