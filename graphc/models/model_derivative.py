"""The derivative of an entry of a model file: forward and backward graphs, and one joint graph for callers of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graphc.files.model_manifest import BACKWARD, FORWARD, DerivativeSpec
from graphc.files.structure import Structure
from graphc.ir.graph.graph import Graph, Value, input_class, input_path
from graphc.ir.graph.interpret import assumed
from graphc.models.model_entries import TracedEntry
from graphc.ops.autodiff import split_forward_backward, vjp_graph
from graphc.passes.scans import MergeScans

VJP = "vjp"
"""Name of the joint entry, which returns outputs and gradients. With several entries, suffix of the entry's name."""


class DerivativeGraph(NamedTuple):
    """A graph that becomes an entry of its own."""

    name: str
    graph: Graph
    structure: Structure = None


class Derived(NamedTuple):
    """The additions of an entry's derivative to a file."""

    spec: DerivativeSpec
    parts: tuple[DerivativeGraph, ...]


def derive(entry: TracedEntry, alone: bool) -> Derived | None:
    """Return the derivative of an entry, or None where none was requested. ``alone`` is true for the only entry."""
    differentiated = entry.differentiated
    if differentiated is None:
        return None
    graph = entry.graph
    plain = [v for v in graph.inputs if input_class(v) == "input"]
    params = {input_path(v): v for v in graph.inputs}
    sources = [*(plain[i] for i in differentiated.inputs), *(params[path] for path in differentiated.params)]
    with assumed(graph):
        joint = MergeScans().run(vjp_graph(graph, sources, differentiated.outputs)).graph
        split = split_forward_backward(joint, len(graph.inputs), len(graph.outputs))
    for derived_graph in (joint, split.forward, split.backward):
        derived_graph.assumptions = graph.assumptions
    position = {v: i for i, v in enumerate(plain)}
    saved_inputs = tuple(position[graph.inputs[i]] for i in split.kept if graph.inputs[i] in position)
    spec = DerivativeSpec(
        split.residuals, saved_inputs, differentiated.outputs, differentiated.inputs, differentiated.params
    )
    graphs = [
        DerivativeGraph(VJP if alone else f"{entry.name}_{VJP}", joint, _structure(entry, sources)),
        DerivativeGraph(f"{entry.name}.{FORWARD}", split.forward),
        DerivativeGraph(f"{entry.name}.{BACKWARD}", split.backward),
    ]
    return Derived(spec, tuple(graphs))


def _structure(entry: TracedEntry, sources: Sequence[Value]) -> Structure:
    """Return the structure of the joint entry: outputs, and gradients by the names of inputs and params."""
    count = len(entry.graph.outputs)
    outputs = entry.structure
    if outputs is None:
        outputs = 0 if count == 1 else {"tuple": list(range(count))}
    gradients = [[input_path(v) or v.name, count + i] for i, v in enumerate(sources)]
    return {"dict": [["outputs", outputs], ["gradients", {"dict": gradients}]]}
