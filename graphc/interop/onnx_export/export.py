"""Export of models to ONNX files: trace, write the graph as operators, check the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.host_parts import check_numeric, host_parts_of
from graphc.base.sizes.named_dims import size_of
from graphc.base.sizes.size import is_size, terms
from graphc.base.sizes.size_limits import limits
from graphc.base.sizes.size_terms import Dimension
from graphc.calls.graph_module import GraphModule
from graphc.files.model_manifest import ModelManifest
from graphc.interop.onnx_export.calls import ExportedCall, observed
from graphc.interop.onnx_export.protobuf import check_opset, write
from graphc.interop.onnx_export.records import GraphRecord
from graphc.interop.onnx_export.sizes import Sizes
from graphc.interop.onnx_export.table import RULES, call_rules
from graphc.interop.onnx_export.writer import GraphWriter, Model, unsupported
from graphc.ir.graph.graph import Graph, input_class, input_equals, input_path
from graphc.ir.op import Trait
from graphc.models.model_export import manifest_of
from graphc.models.model_trace import nesting, snapshot
from graphc.tensors.placement import on_host

CallsOf = Callable[[Graph], Sequence[ExportedCall]]


def export_model(
    model: Any,
    examples: Sequence[Any],
    keyword_examples: Mapping[str, Any],
    path: str | os.PathLike[str],
    dims: Any = None,
    opset: int | None = None,
) -> ModelManifest:
    """Export to ``.onnx`` for ``graphc.export``: trace a module or function, or take a graph, and write it.

    A call of a function with an operator in the opset becomes that operator. All other nodes are written one by one.
    Raises what tracing raises; UnsupportedError, with the user's line, where ONNX lacks operators for a computation;
    ArgumentError for an unknown opset or without the package ``onnx``; VerifyError, OSError.
    """
    opset = check_opset(opset)
    if isinstance(model, Graph):
        graph = GraphModule(model).graph
        state = {name: on_host(tensor._data) for name, tensor in graph.bound.items()}
        manifest = manifest_of(graph, state)
        record = graph_record(graph, state, [s.name for s in manifest.first.outputs], opset, lambda graph: ())
    else:
        check_numeric(host_parts_of(model), "an ONNX file that graphc writes")
        with observed(call_rules(opset)) as observer:
            traced = snapshot(model, examples, keyword_examples, dims)
        graph, state = traced.graph, traced.state()
        manifest = manifest_of(graph, state, nesting(traced.structure))
        record = graph_record(graph, state, [s.name for s in manifest.first.outputs], opset, observer.of)
    assumed = {"pkg.graphc.assumptions": "\n".join(map(str, graph.assumptions))} if graph.assumptions else {}
    write(path, record, opset, assumed)
    return manifest


def graph_record(
    graph: Graph, state: Mapping[str, np.ndarray], outputs: Sequence[str], opset: int, calls_of: CallsOf
) -> GraphRecord:
    """Return a graph, with the arrays of its params and states, as operators of an opset. ``outputs`` names its
    outputs.

    Raises UnsupportedError where the opset lacks operators for the graph, and where the graph writes to states.
    """
    for node in graph.nodes():
        if node.op.has(Trait.STATE_WRITE):
            raise unsupported(node, "the model changes its buffers, and ONNX has no mutable buffers")
    model = Model(opset, RULES, call_rules(opset), calls_of, _fixed_dimensions(graph))
    writer = GraphWriter(model)
    inputs = []
    for value in graph.inputs:
        is_input = input_class(value) == "input"
        name = model.unique(value.name if is_input else input_path(value))
        writer.bind([value], [name])
        if is_input:
            inputs.append(value)
        else:
            model.initializers[name] = state[input_path(value)]
    named = [(writer.value(v), v) for v in inputs]
    numbers = [(name, writer.at(input_equals(v))) for name, v in named if input_equals(v) is not None]
    shapes = [(name, writer.at(v.shape)) for name, v in named]
    writer.sizes = Sizes(writer.add, writer.model.constant, shapes, numbers)
    formal = [writer.record(name, v.dtype, v.shape) for name, v in named]
    writer.run(graph)
    writer.module = ""
    record = writer.finish(graph.name, formal, [(writer.value(v), v) for v in graph.outputs])
    record.initializers = model.initializers
    _name_outputs(record, outputs, model)
    record.prune()
    return record


def _name_outputs(record: GraphRecord, outputs: Sequence[str], model: Model) -> None:
    """Rename the outputs. A value that already has such a name gets another one."""
    computed = {name for node in record.nodes for name in node.outputs}
    names = {v.name: target for v, target in zip(record.outputs, outputs, strict=True)}
    clashes = {
        target: model.unique(f"{target}_value") for target in outputs if target in computed and target not in names
    }
    reserved = {v.name for v in record.inputs} | record.initializers.keys()
    names = {old: new if new not in reserved else model.unique(new) for old, new in names.items()}
    record.rename(clashes | names)
    record.outputs = [type(v)(names[v.name], v.dtype, v.shape) for v in record.outputs]


def _fixed_dimensions(graph: Graph) -> dict[Dimension, Any]:
    """Return the values of dimensions which, by assumption of the trace, equal a number or another dimension."""
    dims, fixed = graph.dims, {}
    for name, size in limits(graph.assumptions, dims).items():
        if not is_size(size):
            fixed[dims[name]] = size
            continue
        atoms = [atom for monomial, _ in terms(size) for atom, _ in monomial]
        other = dims.get(getattr(atoms[0], "name", ""))
        if len(atoms) == 1 and other is not None and size == size_of(other) and other is not dims[name]:
            fixed[dims[name]] = size_of(other)
    return {d: fixed.get(d, size_of(d)) for d in dims.values()} if fixed else {}
