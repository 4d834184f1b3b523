"""Reader of ONNX models: from a path, bytes or a ModelProto to a verified OnnxGraph with functions inlined."""

from __future__ import annotations

import inspect
import mmap
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphc.base.errors import ArtifactError, GraphcError, UnsupportedError
from graphc.base.records import dataclass
from graphc.interop.onnx.external import External
from graphc.interop.onnx.graph import ABSENT, OnnxGraph, OnnxNode, Port, TensorAttribute, in_order
from graphc.interop.onnx.messages import FORMAT, read_message
from graphc.interop.onnx.package import function_body, onnx_package
from graphc.interop.onnx.protos import ModelDims, read_attribute, read_port_type, read_sparse, read_tensor, text_of
from graphc.interop.onnx.registry import OperatorEntry
from graphc.interop.onnx.schemas import Schema, newest_version, schema
from graphc.interop.onnx.table import find, has_domain
from graphc.interop.onnx.version_6 import modern

_ONE: dict[int, type] = {
    **{1: float, 2: int, 3: str, 4: TensorAttribute, 5: OnnxGraph},
    **{11: TensorAttribute, 13: Port},
}
"""Python type of an attribute's value, by its type code."""
_SEVERAL: dict[int, type] = {6: float, 7: int, 8: str, 9: TensorAttribute, 10: OnnxGraph}


def verify_graph(graph: OnnxGraph, enclosing: Sequence[set[str]] = ()) -> None:
    """Check that names have one definition before their uses, and that nodes fit the schemas of their operators.

    ``enclosing`` holds the names of enclosing graphs. Schemas limit the counts of inputs and results, and the
    attributes. Raises ArtifactError.
    """
    scopes = (set(), *enclosing)
    _define([p.name for p in graph.inputs], scopes[0], f"input of graph {graph.name[:60]!r}")
    _define(graph.constants, scopes[0], f"initializer of graph {graph.name[:60]!r}")
    for node in graph.nodes:
        _check_known([n for n in node.inputs if n != ABSENT], scopes, _place(node))
        _verify_node(node)
        for inner in node.graphs():
            verify_graph(inner, scopes)
        if node.body is not None:
            verify_graph(node.body)
        _define([n for n in node.outputs if n != ABSENT], scopes[0], f"result of {_place(node)}")
    _check_known([p.name for p in graph.outputs], scopes, f"results of graph {graph.name[:60]!r}")


def _define(names: Iterable[str], defined: set[str], what: str) -> None:
    """Add names to the defined ones. Raises ArtifactError for a duplicate or empty name."""
    for name in names:
        if name in defined or name == ABSENT:
            raise ArtifactError(f"the name {name[:80]!r} is defined twice, or is empty", where=what)
        defined.add(name)


def _check_known(names: Iterable[str], scopes: Sequence[set[str]], where: str) -> None:
    """Raise ArtifactError for a name that no scope defines."""
    for name in names:
        if not any(name in scope for scope in scopes):
            raise ArtifactError(f"{name[:80]!r} is used before it is computed, or is never computed", where=where)


def _place(node: OnnxNode) -> str:
    return f"{node.title} {node.name}"[:200]


def _verify_node(node: OnnxNode) -> None:
    operator_schema = schema(node.domain, node.op, node.version) if node.version else None
    if node.version == 0 and node.body is not None:
        _verify_count(node, "inputs", len(node.inputs), 0, len(node.body.inputs))
        _verify_count(node, "results", len(node.outputs), 0, len(node.body.outputs))
    elif operator_schema is not None:
        least_inputs, most_inputs, least_results, most_results = operator_schema.counts
        _verify_count(node, "inputs", len(node.inputs), least_inputs, most_inputs)
        _verify_count(node, "results", len(node.outputs), least_results, most_results)
        for i, name in enumerate(node.inputs):
            if name == ABSENT and operator_schema.is_required(i):
                raise ArtifactError(f"input {i} is left out", where=_place(node))
        _verify_attributes(node, operator_schema.attributes)
    else:
        _verify_call(node)


def _verify_count(node: OnnxNode, what: str, count: int, least: int, most: int) -> None:
    if not least <= count <= most:
        expected = str(least) if least == most else f"{least} to {most}"
        raise ArtifactError(f"the node has {count} {what}, its operator takes {expected}", where=_place(node))


def _verify_attributes(node: OnnxNode, specs: Any) -> None:
    for name, value in node.attributes.items():
        if name not in specs:
            raise ArtifactError(f"the operator has no attribute {name[:80]!r}", where=_place(node))
        if not _is_of_type(value, specs[name][0]):
            raise ArtifactError(f"the attribute {name[:80]!r} has the wrong type", where=_place(node))
    missing = [name for name, (_, needed) in specs.items() if needed and name not in node.attributes]
    if missing:
        raise ArtifactError(f"the attribute {missing[0]!r} is missing", where=_place(node))


def _is_of_type(value: Any, code: int) -> bool:
    if code in _ONE:
        return isinstance(value, _ONE[code])
    return isinstance(value, tuple) and (not value or isinstance(value[0], _SEVERAL.get(code, object)))


def _verify_call(node: OnnxNode) -> None:
    """Check an operator without a schema against the parameters of its rule."""
    entry = find(node.domain, node.op, node.version)
    if entry is None:
        return
    try:
        inspect.signature(entry.rule).bind(*node.inputs, **_named(node, entry))
    except TypeError as error:
        raise ArtifactError(f"its inputs or attributes do not fit: {error}"[:300], where=_place(node)) from None


def _named(node: OnnxNode, entry: OperatorEntry) -> dict[str, Any]:
    own = {name: value for name, value in node.attributes.items() if not isinstance(value, OnnxGraph)}
    return own | ({"call": None} if entry.call else {})


MOST_DEPTH = 64
"""Nesting levels of graphs within graphs, and of functions that apply functions."""
MOST_WRITTEN = 50_000
"""Operators of a model beyond those in its file. Without this limit a few functions that apply each other twice could
expand to any number of operators."""
Key = tuple[str, str, str]
"""Domain, name and overload of a function."""


def count_operators(graph: Any, functions: Mapping[Key, Any]) -> int:
    """Count the operators of a GraphProto after inlining its FunctionProtos.

    Raises ArtifactError for functions that apply each other in a cycle, and for too many operators.
    """
    counts = _Counts(functions)
    total = counts.of_nodes(graph.node, 0)
    in_file = sum(1 for f in (graph, *functions.values()) for _ in _all_nodes(f.node, 0))
    if total > in_file + MOST_WRITTEN:
        raise ArtifactError(f"the model has {total} operators once its functions are inlined, {in_file} in the file")
    return total


class _Counts:
    """Operator counts of functions, each computed once."""

    def __init__(self, functions: Mapping[Key, Any]):
        self.functions = functions
        self.counts: dict[Key, int | None] = {}
        """None for a function whose count is in progress."""

    def of_nodes(self, nodes: Any, depth: int) -> int:
        """Count the operators of nodes, of their graphs, and of applied functions."""
        total = 0
        for node in _all_nodes(nodes, depth):
            key = node.domain if node.domain != "ai.onnx" else "", node.op_type, node.overload
            total += 1 + (self.of_function(key, depth + 1) if key in self.functions else 0)
        return total

    def of_function(self, key: Key, depth: int) -> int:
        """Count the operators of a function."""
        if key not in self.counts:
            check_depth(depth)
            self.counts[key] = None
            self.counts[key] = self.of_nodes(self.functions[key].node, depth)
        count = self.counts[key]
        if count is None:
            raise ArtifactError(f"the function {key[1][:80]!r} applies itself")
        return count


def _all_nodes(nodes: Any, depth: int) -> Iterator[Any]:
    """Yield nodes, and the nodes of their graphs."""
    check_depth(depth)
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _all_nodes(graph.node, depth + 1)


def check_depth(depth: int) -> None:
    """Raise ArtifactError for too many nested graphs and functions."""
    if depth > MOST_DEPTH:
        raise ArtifactError(f"graphs and functions of the model are nested in more than {MOST_DEPTH} levels")


MOST_NODES = 1_000_000
"""Operators of a model. Counts functions each time they are applied, also ONNX's own."""
MOST_BYTES = 2**31 - 1
"""Bytes of a file, as many as protobuf allows."""
LATEST = 2**31 - 1
"""The largest possible version."""
OLDEST = 6
"""The oldest supported version of the default domain. Of earlier versions the reader accepts unchanged operators
only."""
_TENSORS = frozenset({4, 9, 11})
"""Types of attributes that hold tensors."""


@dataclass(frozen=True)
class Model:
    """Content of an ONNX file."""

    graph: OnnxGraph
    path: str
    """Path of the file, empty for bytes and protos."""
    producer: str


def read_model(source: Any) -> Model:
    """Read a model from a path, bytes, or a ModelProto.

    Raises ArtifactError for damaged data and other formats, UnsupportedError for operators without a rule,
    ArgumentError for what needs the ``onnx`` package where it is not installed, and OSError.
    """
    path = ""
    if getattr(getattr(source, "DESCRIPTOR", None), "full_name", "") == "onnx.ModelProto":
        proto, external = source, External(None)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        proto, external = _parsed(bytes(source), "the bytes", None)
    else:
        path = os.fspath(source)
        proto, external = _parsed(_content(path), path, os.path.dirname(path))
    try:
        _check_format(proto)
        graph = _ModelReader(proto, external).graph()
        verify_graph(graph)
        return Model(graph, path, f"{proto.producer_name}"[:80])
    except RecursionError:
        raise ArtifactError(f"{path or 'the model'}: its graphs are nested too deeply") from None
    except GraphcError as error:
        if path and not error.what.startswith(path):
            error.what = f"{path}: {error.what}"
        raise


def _content(path: str) -> mmap.mmap | bytes:
    """Return the bytes of a file, mapped."""
    with open(path, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise ArtifactError(f"{path} is not a regular file")
        if info.st_size > MOST_BYTES:
            raise ArtifactError(f"{path} has more than {MOST_BYTES} bytes, which no ONNX file can have")
        return mmap.mmap(file.fileno(), info.st_size, access=mmap.ACCESS_READ) if info.st_size else b""


def _parsed(data: mmap.mmap | bytes, title: str, folder: str | None) -> tuple[Any, External]:
    try:
        return read_message(memoryview(data)), External(folder)
    except ValueError as error:
        raise ArtifactError(f"{title}: not an ONNX model: {error}") from None


def _check_format(proto: Any) -> None:
    """Raise ArtifactError for a model without a graph or versions, UnsupportedError for versions that neither
    graphc nor the package knows."""
    if not proto.HasField("graph") or not proto.opset_import or proto.ir_version < 1:
        raise ArtifactError("not an ONNX model: the graph, the format version or the operator versions are missing")
    newest = FORMAT if proto.ir_version <= FORMAT else onnx_package().IR_VERSION
    if proto.ir_version > newest:
        raise UnsupportedError(
            f"the format has version {proto.ir_version}, the installed onnx package reads versions up to {newest}",
            remedy="upgrade onnx: pip install --upgrade onnx",
        )


class _ModelReader:
    """Reader of the graphs of one model."""

    def __init__(self, proto: Any, external: External):
        self.proto = proto
        self.external = external
        self.versions = _versions(proto.opset_import)
        self.functions = _unique([((_domain(f.domain), f.name, f.overload), f) for f in proto.functions], "function")
        self.dims = ModelDims()
        self.count = 0
        self.tensors: dict[int, tuple[Any, Any]] = {}
        """Protos and values of tensor attributes, by the id of the proto. A function applied several times thus reads
        its tensors once."""

    def graph(self) -> OnnxGraph:
        """Return the main graph."""
        count_operators(self.proto.graph, self.functions)
        return self._graph(self.proto.graph, self.versions, {}, 0)

    def _graph(self, proto: Any, versions: Mapping[str, int], bindings: Mapping[str, Any], depth: int) -> OnnxGraph:
        """Convert a GraphProto. ``bindings`` are the attributes of the function being inlined."""
        check_depth(depth)
        dims = self.dims if depth == 0 else None
        initializers = [(text_of(t.name), read_tensor(t, self.external)) for t in proto.initializer]
        initializers += [(text_of(t.values.name), read_sparse(t, self.external)) for t in proto.sparse_initializer]
        constants = _unique(initializers, "initializer")
        inputs = [read_port_type(v.name, v.type, dims) for v in proto.input if v.name not in constants]
        outputs = [read_port_type(v.name, v.type, None) for v in proto.output]
        nodes = in_order(self._nodes(proto.node, versions, bindings, depth))
        return OnnxGraph(text_of(proto.name), inputs, outputs, nodes, constants)

    def _nodes(
        self, protos: Sequence[Any], versions: Mapping[str, int], bindings: Mapping[str, Any], depth: int
    ) -> list[OnnxNode]:
        return [node for proto in protos for node in modern(self._node(proto, versions, bindings, depth))]

    def _node(self, proto: Any, versions: Mapping[str, int], bindings: Mapping[str, Any], depth: int) -> OnnxNode:
        self.count += 1
        if self.count > MOST_NODES:
            raise ArtifactError(f"the model has more than {MOST_NODES} operators")
        domain = _domain(proto.domain)
        local = self.functions.get((domain, text_of(proto.op_type), proto.overload))
        name = text_of(proto.name) or f"{proto.op_type}_{self.count}"[:80]
        attributes = self._attributes(proto.attribute, versions, bindings, depth)
        inputs, outputs = tuple(map(text_of, proto.input)), tuple(map(text_of, proto.output))
        if local is not None:
            body = self._function(local, attributes, len(outputs), depth)
            return OnnxNode(name, proto.op_type, domain, 0, inputs, outputs, attributes, (), body)
        version = versions.get(domain) or _assumed_version(domain, proto.op_type, name)
        operator_schema = schema(domain, proto.op_type, version)
        if domain == "" and version < OLDEST:
            _check_unchanged(proto, operator_schema, version)
        types = () if operator_schema is None else operator_schema.types(len(inputs), len(outputs))
        if operator_schema is not None:
            attributes |= {n: d for n, d in operator_schema.defaults.items() if n not in attributes}
        node = OnnxNode(name, proto.op_type, domain, version, inputs, outputs, attributes, types)
        if find(domain, proto.op_type, version) is not None or operator_schema is None:
            return node
        return self._written_out(node, depth)

    def _written_out(self, node: OnnxNode, depth: int) -> OnnxNode:
        """Inline the function body by which ONNX defines an operator without a rule."""
        function = function_body(node.domain, node.op, node.version)
        if function is None:
            return node
        body = self._function(function, dict(node.attributes), len(node.outputs), depth)
        return OnnxNode(
            *(node.name, node.op, node.domain, node.version, node.inputs, node.outputs, node.attributes, node.types),
            body=body,
        )

    def _function(self, proto: Any, attributes: dict[str, Any], results: int, depth: int) -> OnnxGraph:
        """Convert a FunctionProto with these attributes to a graph."""
        check_depth(depth + 1)
        bindings = dict(attributes)
        for default in proto.attribute_proto:
            bindings.setdefault(default.name, read_attribute(default, self.external, lambda g: g))
        nodes = self._nodes(proto.node, _versions(proto.opset_import) or self.versions, bindings, depth + 1)
        inputs = [Port(text_of(name), "other", None, None) for name in proto.input]
        outputs = [Port(text_of(name), "other", None, None) for name in proto.output[:results]]
        return OnnxGraph(text_of(proto.name), inputs, outputs, nodes, {})

    def _attributes(
        self, protos: Sequence[Any], versions: Mapping[str, int], bindings: Mapping[str, Any], depth: int
    ) -> dict[str, Any]:
        pairs: list[tuple[str, Any]] = []
        for proto in protos:
            if not proto.ref_attr_name:
                pairs.append((text_of(proto.name), self._attribute(proto, versions, bindings, depth)))
            elif proto.ref_attr_name in bindings:
                pairs.append((text_of(proto.name), bindings[proto.ref_attr_name]))
        return _unique(pairs, "attribute")

    def _attribute(self, proto: Any, versions: Mapping[str, int], bindings: Mapping[str, Any], depth: int) -> Any:
        cached = self.tensors.get(id(proto))
        if cached is not None:
            return cached[1]
        value = read_attribute(proto, self.external, lambda g: self._graph(g, versions, bindings, depth + 1))
        if proto.type in _TENSORS:
            self.tensors[id(proto)] = proto, value
        return value


def _assumed_version(domain: str, op_type: str, name: str) -> int:
    """Return the newest version of a domain that the model does not import, as ONNX Runtime does."""
    if not has_domain(domain):
        raise UnsupportedError(
            f"the model uses {op_type[:60]} of the domain {domain[:60]!r}, but imports no version of it",
            where=f"{op_type} {name}"[:200],
        )
    return newest_version(domain) or 1


def _versions(imports: Sequence[Any]) -> dict[str, int]:
    """Return the version of each domain: the last one where a file lists a domain several times, which skl2onnx and
    ``onnx.compose`` write."""
    versions = {_domain(entry.domain): entry.version for entry in imports}
    for domain, version in versions.items():
        if not 1 <= version <= LATEST:
            raise ArtifactError(f"the operators of {domain[:60]!r} have the invalid version {version}")
        newest = newest_version(domain, version)
        if newest is not None and version > newest:
            raise UnsupportedError(
                f"operators of version {version} of the domain {domain!r}: the installed onnx package knows versions "
                f"up to {newest}",
                remedy="upgrade onnx: pip install --upgrade onnx",
            )
    return versions


def _check_unchanged(proto: Any, imported: Schema | None, version: int) -> None:
    oldest = schema("", proto.op_type, OLDEST)
    if imported is None or oldest is None or imported.since != oldest.since:
        raise UnsupportedError(
            f"{proto.op_type} of version {version} differs from version {OLDEST}, the oldest that graphc reads",
            remedy="convert the model: onnx.version_converter.convert_version(model, 18)",
        )


def _domain(text: str) -> str:
    return "" if text == "ai.onnx" else text_of(text)


def _unique(pairs: Sequence[tuple[Any, Any]], what: str) -> dict[Any, Any]:
    """Return the pairs as a dictionary. Raises ArtifactError for a duplicate key."""
    result = dict(pairs)
    if len(result) < len(pairs):
        earlier: set[Any] = set()
        duplicate = next(key for key, _ in pairs if key in earlier or earlier.add(key))
        raise ArtifactError(f"{what} {duplicate!r}"[:200] + " is there twice")
    return result
