"""Which initializers a graph asks for the values of, such as shapes: they are part of the graph, and no parameters."""

from __future__ import annotations

from graphc.interop.onnx.graph import Node, OnnxGraph
from graphc.interop.onnx.registry import HOST
from graphc.interop.onnx.table import find

_OF_SHAPES = frozenset({"Shape", "Size"})
"""What is known of these does not follow from the values of their inputs."""


def asked_constants(graph: OnnxGraph) -> set[str]:
    """The names of initializers whose values rules ask for, directly or through sizes computed of them; and all that
    are whole numbers of at most one dimension, which may be computed with as well."""
    asked: set[str] = set()
    for node in reversed(graph.nodes):
        wanted = _asked_inputs(node)
        asked |= {name for i, name in enumerate(node.inputs) if i in wanted}
        if (node.domain, node.op) in HOST and node.op not in _OF_SHAPES and asked & set(node.outputs):
            asked |= set(node.inputs)
        for inner in node.graphs():
            asked |= asked_constants(inner)
    small = {n for n, c in graph.constants.items() if not c.element.is_floating_point and c.array.ndim <= 1}
    return asked | small


def _asked_inputs(node: Node) -> set[int]:
    """The numbers of the inputs whose values an operator asks for."""
    if node.body is not None:
        asked = asked_constants(node.body)
        return {i for i, port in enumerate(node.body.inputs) if port.name in asked}
    entry = find(node.domain, node.op, node.version)
    return set() if entry is None else set(entry.host)
