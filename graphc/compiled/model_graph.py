"""Graphs out of model files: read, verified, and compared with what the file says of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from graphc.base.assumptions import holding
from graphc.base.errors import ArgumentError, ArtifactError, GraphcError
from graphc.base.named_dims import chosen_sizes
from graphc.base.size import bounds
from graphc.compiled.model_trace import tensor_spec
from graphc.compiler.freeze import written_states
from graphc.files import model_content
from graphc.files.container import MAX_BYTES
from graphc.files.model_content import Artifact
from graphc.files.model_manifest import EntrySpec
from graphc.ir.graph.graph import Graph, input_class, input_path
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import REGISTRY
from graphc.ops import registry

assert registry.FAMILIES, "reading a graph needs every op to be defined"


def read_model(path: str | os.PathLike[str]) -> Artifact:
    """A model file, of whose entries everything is known: of files of the first format what their graph says. Raises
    ArtifactError and OSError."""
    stored = model_content.load(path)
    if not stored.is_old:
        return stored
    try:
        graph = read_graph(stored)
    except ArtifactError as error:
        error.what = f"{os.fspath(path)}: {error.what}"
        raise
    own = [v for v in graph.inputs if input_class(v) != "input"]
    spec = replace(stored.first.spec, uses=tuple(map(input_path, own)), writes=_writes(graph))
    params = [input_path(v) for v in own if input_class(v) == "param"]
    entry = replace(stored.first, spec=spec)
    found = model_content.assemble([entry], stored.weights, stored.manifest.versions, params=params)
    return replace(found, digest=stored.digest)


def entry_name(stored: Artifact, name: str | None) -> str:
    """The name of an entry, that of the first one for None; raises ArgumentError where there is none."""
    names = [spec.name for spec in stored.manifest.public]
    if name is not None and name not in names:
        raise ArgumentError(f"the model has no entry {name!r}", remedy=f"one of {', '.join(names)}")
    return names[0] if name is None else name


def read_graph(stored: Artifact, name: str | None = None) -> Graph:
    """The graph of an entry of a model file, of the first one without a name, verified and compared with the manifest;
    raises ArtifactError."""
    entry = stored.first if name is None else stored.entry(name)
    spec = entry.spec
    unknown = sorted(set(spec.ops) - set(REGISTRY))
    if unknown:
        raise ArtifactError(
            f"the graph uses {', '.join(unknown)}, which this graphc does not know",
            remedy="import the module that defines it with graphc.define_op; a newer graphc",
        )
    assumptions = [known.known() for known in spec.assumptions]
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
    graph.assumptions = assumptions
    return graph


def _compare(stored: Artifact, spec: EntrySpec, graph: Graph) -> None:
    """Raises ArtifactError unless the manifest says of the graph what it is."""
    own = [v for v in graph.inputs if input_class(v) != "input"]
    check_weights(stored, [(input_path(v), v.dtype.name, v.shape) for v in own])
    inputs = tuple(tensor_spec(v.name, v) for v in graph.inputs if input_class(v) == "input")
    outputs = [(v.dtype.name, v.shape) for v in graph.outputs]
    if inputs != spec.inputs or outputs != [(s.dtype, s.shape) for s in spec.outputs]:
        raise ArtifactError("the graph has other inputs or outputs than the manifest")
    if not stored.is_old and (tuple(map(input_path, own)), _writes(graph)) != (spec.uses, spec.writes):
        raise ArtifactError("the graph takes or writes other params and states than the manifest says")


def _writes(graph: Graph) -> tuple[str, ...]:
    return tuple(sorted(map(input_path, written_states(graph))))


def check_weights(stored: Artifact, wanted: Sequence[tuple[str, str, tuple[int, ...]]]) -> None:
    """Raises ArtifactError unless the file holds weights of these paths and types."""
    held = {t.name: (t.dtype, t.shape) for t in stored.manifest.weights}
    for path, dtype, shape in wanted:
        if held.get(path) != (dtype, shape):
            found = "is missing" if path not in held else f"is {held[path][0]}{list(held[path][1])}"
            raise ArtifactError(f"weight {path!r} {found}, the graph takes {dtype}{list(shape)}")
