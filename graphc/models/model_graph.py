"""Graphs from model files: parse and verify them, and compare them with the manifest."""

from __future__ import annotations

import graphc.ops.registry  # noqa: F401  (fills REGISTRY)
from graphc.base.errors import ArgumentError, ArtifactError, GraphcError
from graphc.base.sizes.assumptions import holding
from graphc.base.sizes.named_dims import chosen_sizes
from graphc.base.sizes.size import bounds
from graphc.compiler.freeze import written_states
from graphc.files.container import MAX_BYTES
from graphc.files.manifest import TensorSpec
from graphc.files.model_content import Artifact, check_weights
from graphc.files.model_manifest import EntrySpec
from graphc.ir.graph.graph import Graph, Value, input_class, input_equals, input_path
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import REGISTRY


def read_graph(stored: Artifact, name: str | None = None) -> Graph:
    """Return the verified graph of an entry, of the first one without a name, after comparing it with the manifest.

    Raise ArtifactError, and ArgumentError for an entry that is a chain of programs.
    """
    entry = stored.first if name is None else stored.entry(name)
    spec = entry.spec
    if spec.segments:
        raise ArgumentError(
            f"{spec.name} reads sizes from values in each call, so it is {len(spec.segments)} graphs, not one",
            remedy=f"name one of {', '.join(spec.programs)}; graphc.load and graphc run call all of them",
        )
    unknown = sorted(set(spec.ops) - set(REGISTRY))
    if unknown:
        raise ArtifactError(
            f"the graph uses {', '.join(unknown)}, which this graphc does not know",
            remedy="import the module that defines it with graphc.define_op, or install a newer graphc",
        )
    assumptions = [assumption.known() for assumption in spec.assumptions]
    try:
        with holding(assumptions, chosen_sizes({d.name: d for d in spec.dims}, {})):
            graph = parse_graph(entry.text, entry.data)
            verify_graph(graph)
    except RecursionError:
        raise ArtifactError("the graph is nested too deeply") from None
    except GraphcError as error:
        raise ArtifactError(f"the graph is not valid: {error.what}", where=error.where, remedy=error.remedy) from error
    for value in (v for node in graph.nodes() for v in node.results):
        if bounds(value.type.nbytes)[0] > MAX_BYTES:
            raise ArtifactError(f"%{value.name} takes {value.type.nbytes} bytes, at most {MAX_BYTES} are allowed")
    _compare(stored, spec, graph)
    graph.assumptions, graph.classes = assumptions, spec.classes
    return graph


def _compare(stored: Artifact, spec: EntrySpec, graph: Graph) -> None:
    """Raise ArtifactError unless the manifest describes the graph correctly."""
    own = [v for v in graph.inputs if input_class(v) != "input"]
    check_weights(stored, [(input_path(v), v.dtype.name, v.shape) for v in own])
    inputs = tuple(tensor_spec(v.name, v) for v in graph.inputs if input_class(v) == "input")
    outputs = [(v.dtype.name, v.shape) for v in graph.outputs]
    if inputs != spec.inputs or outputs != [(s.dtype, s.shape) for s in spec.outputs]:
        raise ArtifactError("the graph has other inputs or outputs than the manifest")
    if (tuple(map(input_path, own)), _writes(graph)) != (spec.uses, spec.writes):
        raise ArtifactError("the graph takes or writes other params and states than the manifest says")


def _writes(graph: Graph) -> tuple[str, ...]:
    return tuple(sorted(map(input_path, written_states(graph))))


def tensor_spec(name: str, value: Value) -> TensorSpec:
    """Return the manifest's record of an input or output."""
    return TensorSpec(name, value.dtype.name, value.shape, equals=input_equals(value))
