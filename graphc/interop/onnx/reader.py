"""Reads ONNX models: from a path, bytes or a ModelProto to an OnnxGraph with functions written out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphc.base.errors import ArtifactError, GraphcError, UnsupportedError
from graphc.interop.onnx.external import External
from graphc.interop.onnx.graph import Node, OnnxGraph, Port
from graphc.interop.onnx.package import Schema, onnx_package, schema
from graphc.interop.onnx.protos import Dims, read_attribute, read_port_type, read_tensor
from graphc.interop.onnx.table import find
from graphc.interop.onnx.version_6 import modern

MOST_NODES = 1_000_000
"""Of a model, those of functions counted where they are applied."""
MOST_DEPTH = 64
"""Of graphs within graphs, and of functions that functions apply."""
MOST_BYTES = 2**31 - 1
"""Of a file: what protobuf allows."""
OLDEST = 6
"""The oldest version of the operators of the default domain that is read; of those before, operators that are still the
same in it."""


@dataclass(frozen=True, slots=True)
class Model:
    """What an ONNX file holds."""

    graph: OnnxGraph
    path: str
    """Where it was read, empty for bytes and protos."""
    producer: str


def read_model(source: Any) -> Model:
    """A model from a path, bytes, or a ModelProto.

    Raises ArtifactError for what is no model of ONNX or is damaged, UnsupportedError for what graphc has no rule for,
    ArgumentError without the ``onnx`` package; OSError."""
    package = onnx_package()
    path = ""
    if isinstance(source, package.ModelProto):
        proto, folder = source, None
    elif isinstance(source, (bytes, bytearray, memoryview)):
        proto, folder = _parsed(package, bytes(source), "the bytes"), None
    else:
        path = os.fspath(source)
        proto, folder = _parsed(package, _content(path), path), os.path.dirname(path)
    try:
        return Model(_Reader(proto, External(folder)).graph(), path, f"{proto.producer_name}"[:80])
    except GraphcError as error:
        if path and not error.what.startswith(path):
            error.what = f"{path}: {error.what}"
        raise


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            raise ArtifactError(f"{path} has more than {MOST_BYTES} bytes, which no ONNX file can have")
        return file.read(MOST_BYTES + 1)


def _parsed(package: Any, data: bytes, title: str) -> Any:
    proto = package.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception as error:  # NOTE: protobuf's DecodeError has another class with each of its back ends.
        raise ArtifactError(f"{title}: it is no ONNX model: {type(error).__name__}") from None
    if not proto.HasField("graph") or not proto.opset_import:
        raise ArtifactError(f"{title}: it is no ONNX model: there is no graph, or no version of operators")
    return proto


class _Reader:
    """Reads the graphs of one model."""

    def __init__(self, proto: Any, external: External):
        self.proto = proto
        self.external = external
        self.versions = _versions(proto.opset_import)
        self.functions = {(f.domain, f.name, f.overload): f for f in proto.functions}
        self.dims = Dims()
        self.count = 0

    def graph(self) -> OnnxGraph:
        """The main graph."""
        return self._graph(self.proto.graph, self.versions, {}, 0)

    def _graph(self, proto: Any, versions: Mapping[str, int], given: Mapping[str, Any], depth: int) -> OnnxGraph:
        """``given`` are the attributes of a function that is written out."""
        _check_depth(depth)
        dims = self.dims if depth == 0 else None
        constants = {t.name: read_tensor(t, self.external) for t in proto.initializer}
        for sparse in proto.sparse_initializer:
            wrapped = onnx_package().AttributeProto(name="sparse", type=11, sparse_tensor=sparse)
            constants[sparse.values.name] = read_attribute(wrapped, self.external, lambda g: g)
        inputs = [read_port_type(v.name, v.type, dims) for v in proto.input if v.name not in constants]
        outputs = [read_port_type(v.name, v.type, None) for v in proto.output]
        nodes = self._nodes(proto.node, versions, given, depth)
        return OnnxGraph(proto.name, inputs, outputs, nodes, constants)

    def _nodes(
        self, protos: Sequence[Any], versions: Mapping[str, int], given: Mapping[str, Any], depth: int
    ) -> list[Node]:
        self.count += len(protos)
        if self.count > MOST_NODES:
            raise ArtifactError(f"the model has more than {MOST_NODES} operators")
        return [part for node in protos for part in modern(self._node(node, versions, given, depth))]

    def _node(self, proto: Any, versions: Mapping[str, int], given: Mapping[str, Any], depth: int) -> Node:
        domain = _domain(proto.domain)
        local = self.functions.get((proto.domain, proto.op_type, proto.overload))
        attributes = self._attributes(proto.attribute, versions, given, depth)
        name = proto.name or f"{proto.op_type}_{self.count}"
        inputs, outputs = tuple(proto.input), tuple(proto.output)
        if local is not None:
            body = self._function(local, attributes, len(outputs), depth)
            return Node(name, proto.op_type, domain, 0, inputs, outputs, attributes, (), body)
        if domain not in versions:
            raise UnsupportedError(
                f"operator {proto.op_type} of the domain {domain[:60]!r}, of which the model imports no version",
                where=f"{proto.op_type} {name}"[:200],
            )
        version = versions[domain]
        found = schema(domain, proto.op_type, version)
        if domain == "" and version < OLDEST:
            _check_unchanged(proto, found, version)
        types = () if found is None else found.types(len(inputs), len(outputs))
        if found is not None:
            missing = {n: d for n, d in found.defaults.items() if n not in attributes}
            attributes |= {n: read_attribute(d, self.external, lambda g: g) for n, d in missing.items()}
        node = Node(name, proto.op_type, domain, version, inputs, outputs, attributes, types)
        if find(domain, proto.op_type, version) is not None or found is None:
            return node
        return self._written_out(node, proto, found.raw, depth)

    def _written_out(self, node: Node, proto: Any, raw: Any, depth: int) -> Node:
        """An operator that graphc has no rule for, by the function that its schema says it is."""
        function = None
        if raw.has_function:
            function = raw.function_body
        if function is None:
            return node
        body = self._function(function, dict(node.attributes), len(node.outputs), depth)
        return Node(
            *(node.name, node.op, node.domain, node.version, node.inputs, node.outputs, node.attributes, node.types),
            body=body,
        )

    def _function(self, proto: Any, attributes: dict[str, Any], results: int, depth: int) -> OnnxGraph:
        """A function with these attributes as a graph."""
        _check_depth(depth + 1)
        given = dict(attributes)
        for default in proto.attribute_proto:
            given.setdefault(default.name, read_attribute(default, self.external, lambda g: g))
        nodes = self._nodes(proto.node, _versions(proto.opset_import) or self.versions, given, depth + 1)
        inputs = [Port(name, "other", None, None) for name in proto.input]
        outputs = [Port(name, "other", None, None) for name in proto.output[:results]]
        return OnnxGraph(proto.name, inputs, outputs, nodes, {})

    def _attributes(
        self, protos: Sequence[Any], versions: Mapping[str, int], given: Mapping[str, Any], depth: int
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for proto in protos:
            if proto.ref_attr_name:
                if proto.ref_attr_name in given:
                    found[proto.name] = given[proto.ref_attr_name]
                continue
            found[proto.name] = read_attribute(
                proto, self.external, lambda g: self._graph(g, versions, given, depth + 1)
            )
        return found


def _versions(imports: Sequence[Any]) -> dict[str, int]:
    found = {_domain(entry.domain): entry.version for entry in imports}
    return found


def _check_unchanged(proto: Any, found: Schema | None, version: int) -> None:
    later = schema("", proto.op_type, OLDEST)
    if found is None or later is None or found.raw.since_version != later.raw.since_version:
        raise UnsupportedError(
            f"{proto.op_type} of version {version}, which was another one than that of version {OLDEST}",
            remedy="onnx.version_converter.convert_version(model, 18)",
        )


def _domain(text: str) -> str:
    return "" if text == "ai.onnx" else text


def _check_depth(depth: int) -> None:
    if depth > MOST_DEPTH:
        raise ArtifactError(f"graphs and functions of the model are nested in more than {MOST_DEPTH} levels")
