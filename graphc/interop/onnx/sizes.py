"""Search for initializers that a graph needs statically, such as shapes, and that are therefore no parameters."""

from __future__ import annotations

from graphc.interop.onnx.graph import OnnxGraph, OnnxNode
from graphc.interop.onnx.registry import HOST
from graphc.interop.onnx.table import find

_OF_SHAPES = frozenset({"Shape", "Size"})
"""Operators whose static results do not depend on the values of their inputs."""


def asked_constants(graph: OnnxGraph) -> set[str]:
    """Return the names of initializers whose values rules read, directly or through sizes computed from them.

    Includes all integer initializers of at most one dimension, which a graph may compute sizes with.
    """
    needed: set[str] = set()
    for node in reversed(graph.nodes):
        input_indices = _asked_inputs(node)
        needed |= {name for i, name in enumerate(node.inputs) if i in input_indices}
        if (node.domain, node.op) in HOST and node.op not in _OF_SHAPES and needed & set(node.outputs):
            needed |= set(node.inputs)
        for inner in node.graphs():
            needed |= asked_constants(inner)
    small = {n for n, c in graph.constants.items() if not c.element.is_floating_point and c.array.ndim <= 1}
    return needed | small


def _asked_inputs(node: OnnxNode) -> set[int]:
    """Return the indices of the inputs whose values an operator reads."""
    if node.body is not None:
        needed = asked_constants(node.body)
        return {i for i, port in enumerate(node.body.inputs) if port.name in needed}
    entry = find(node.domain, node.op, node.version)
    return set() if entry is None else set(entry.host)
