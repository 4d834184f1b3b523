"""Text form of the parts of a model that run in Python: ONNX operators as JSON, in model files."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArtifactError, GraphcError
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import is_size
from graphc.interop.onnx.elements import STRING, Element, element_of_code
from graphc.interop.onnx.graph import ABSENT, OnnxGraph, OnnxNode, Port, TensorAttribute, captured
from graphc.interop.onnx.run import check_rules

MOST_NODES = 100_000
"""Operators of the parts of one model."""


def write_parts(
    ports: Sequence[Port],
    outputs: Sequence[str],
    before: OnnxGraph,
    after: OnnxGraph,
    program_inputs: Sequence[str],
    program_outputs: Sequence[str],
) -> str:
    """Return the inputs and results of a model, its parts in Python, and the names that connect them with the
    program, as JSON."""
    record = {
        "inputs": [_port(p) for p in ports],
        "outputs": list(outputs),
        "before": _graph(before),
        "after": _graph(after),
        "program": [list(program_inputs), list(program_outputs)],
    }
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)


def read_parts(text: str) -> tuple[list[Port], list[str], OnnxGraph, OnnxGraph, list[str], list[str]]:
    """Return what ``write_parts`` wrote. Raises ArtifactError for anything else, UnsupportedError for operators
    without a rule."""
    try:
        record = json.loads(text)
        before, after = _read_graph(record["before"], {}), _read_graph(record["after"], {})
        inputs, outputs = record["program"]
        ports, results = [_read_port(p, {}) for p in record["inputs"]], _names(record["outputs"])
        values = {p.name for p in ports}
        for graph, more in ((before, _names(outputs)), (after, ())):
            _check_names(graph, values)
            values |= {p.name for p in graph.outputs} | set(more)
        if not {*_names(inputs), *results} <= values:
            raise ArtifactError("a result is never computed")
    except GraphcError as error:
        error.what = f"the text operators of the file: {error.what}"
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"the text operators of the file are damaged: {type(error).__name__}: {error}"[:300]
        ) from None
    for graph in (before, after):
        check_rules(graph)
    return ports, results, before, after, _names(inputs), _names(outputs)


def _check_names(graph: OnnxGraph, values: set[str]) -> None:
    """Raise ArtifactError where a node reads a value that is not computed before."""
    defined = {p.name for p in graph.inputs} | graph.constants.keys()
    if not {p.name for p in graph.inputs} <= values or len(graph.nodes) > MOST_NODES:
        raise ArtifactError("an input is never computed, or there are too many operators")
    for node in graph.nodes:
        reads = {*node.inputs, *(n for g in node.graphs() for n in captured(g))} - {ABSENT}
        if not reads <= defined:
            raise ArtifactError(f"{node.title[:80]} reads a value that is not computed before")
        defined |= set(node.outputs)
    if not {p.name for p in graph.outputs} <= defined:
        raise ArtifactError("a result is never computed")


# ---- to JSON


def _graph(graph: OnnxGraph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "inputs": [_port(p) for p in graph.inputs],
        "outputs": [_port(p) for p in graph.outputs],
        "nodes": [_node(n) for n in graph.nodes],
        "constants": {name: _tensor(constant) for name, constant in graph.constants.items()},
    }


def _port(port: Port) -> dict[str, Any]:
    shape = None if port.shape is None else [str(n) if is_size(n) else n for n in port.shape]
    return {"name": port.name, "kind": port.kind, "element": _element(port.element), "shape": shape}


def _element(element: Element | None) -> int | None:
    return None if element is None else element.code


def _node(node: OnnxNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "op": node.op,
        "domain": node.domain,
        "version": node.version,
        "inputs": list(node.inputs),
        "outputs": list(node.outputs),
        "attributes": {name: _value(value) for name, value in node.attributes.items()},
        "types": [[t.code] if isinstance(t, Element) else t for t in node.types],
        "body": None if node.body is None else _graph(node.body),
    }


def _value(value: Any) -> Any:
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, TensorAttribute):
        return {"tensor": _tensor(value)}
    if isinstance(value, OnnxGraph):
        return {"graph": _graph(value)}
    return list(map(_value, value)) if isinstance(value, tuple) else value


def _tensor(tensor: TensorAttribute) -> list[Any]:
    array = tensor.array
    if tensor.element is STRING:
        return [STRING.code, list(array.shape), list(map(str, array.reshape(-1).tolist()))]
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return [tensor.element.code, list(array.shape), base64.b64encode(data).decode()]


# ---- from JSON


def _names(values: Any) -> list[str]:
    if type(values) is not list or not all(type(v) is str for v in values):
        raise TypeError("names are texts")
    return values


def _read_graph(record: Any, dims: dict[str, Any]) -> OnnxGraph:
    constants = {name: _read_tensor(value) for name, value in record["constants"].items()}
    inputs, outputs = ([_read_port(p, dims) for p in record[name]] for name in ("inputs", "outputs"))
    return OnnxGraph(str(record["name"]), inputs, outputs, [_read_node(n) for n in record["nodes"]], constants)


def _read_port(record: Mapping[str, Any], dims: dict[str, Any]) -> Port:
    element = None if record["element"] is None else element_of_code(record["element"])
    shape = record["shape"]
    sizes = None if shape is None else tuple([_read_size(n, dims) for n in shape])
    name, kind = _names([record["name"], record["kind"]])
    return Port(name, kind, element, sizes)


def _read_size(value: Any, dims: dict[str, Any]) -> Any:
    if type(value) is str:
        return dims.setdefault(value, Dim(value, min=0))
    if type(value) is not int or value < 0:
        raise ValueError(f"size {value!r}")
    return value


def _read_node(record: Mapping[str, Any]) -> OnnxNode:
    types = [element_of_code(t[0]) if type(t) is list else t for t in record["types"]]
    name, operator, domain = _names([record["name"], record["op"], record["domain"]])
    body = None if record["body"] is None else _read_graph(record["body"], {})
    attributes = {name: _read_value(value) for name, value in record["attributes"].items()}
    inputs, outputs = tuple(_names(record["inputs"])), tuple(_names(record["outputs"]))
    version = int(record["version"])
    return OnnxNode(name, operator, domain, version, inputs, outputs, attributes, tuple(types), body)


def _read_value(value: Any) -> Any:
    if type(value) is list:
        return tuple(map(_read_value, value))
    if type(value) is not dict:
        return value
    ((kind, inner),) = value.items()
    read = {"float": float.fromhex, "tensor": _read_tensor, "graph": lambda record: _read_graph(record, {})}
    return read[kind](inner)


def _read_tensor(record: Any) -> TensorAttribute:
    code, shape, data = record
    element = element_of_code(code)
    if element is STRING:
        array = np.empty(len(_names(data)), object)
        array[:] = data
    else:
        raw = np.frombuffer(base64.b64decode(data, validate=True), element.numpy.newbyteorder("<"))
        array = raw.astype(element.numpy)
    return TensorAttribute(array.reshape([int(n) for n in shape]), element)
