"""Tree ensembles of a graph that read the same features, joined into one operator that descends all trees together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.interop.onnx.graph import OnnxGraph, OnnxNode
from graphc.interop.onnx.ops.classical.trees import DOMAIN, ENSEMBLES, JOINED, Forest

_FEATURES = "nodes_featureids"


def joined_forests(graph: OnnxGraph) -> OnnxGraph:
    """Return the graph with one operator for all ensembles that read the same features.

    Converters write a forest as one ensemble per tree, each on columns that a Gather with constant indices picks. A
    program of joined ensembles has one loop, however many trees there are.
    """
    gathers = {n.outputs[0]: n for n in graph.nodes if _picks_columns(n, graph)}
    groups: dict[str, list[tuple[int, OnnxNode]]] = {}
    for number, node in enumerate(graph.nodes):
        if node.domain == DOMAIN and node.op in ENSEMBLES and node.body is None:
            gather = gathers.get(node.inputs[0])
            source = node.inputs[0] if gather is None else gather.inputs[0]
            columns = None if gather is None else graph.constants[gather.inputs[1]].array
            groups.setdefault(source, []).append((number, _of_columns(node, columns)))
    nodes: list[OnnxNode | None] = list(graph.nodes)
    for source, members in groups.items():
        for number, _ in members:
            nodes[number] = None
        nodes[members[0][0]] = _joined(source, [node for _, node in members])
    return replace(graph, nodes=[node for node in nodes if node is not None])


def _picks_columns(node: OnnxNode, graph: OnnxGraph) -> bool:
    if (
        node.op != "Gather"
        or node.domain
        or node.attributes.get("axis", 0) != 1
        or node.inputs[1] not in graph.constants
    ):
        return False
    columns = graph.constants[node.inputs[1]].array
    return columns.ndim == 1 and columns.size > 0 and bool((columns >= 0).all())


def _of_columns(node: OnnxNode, columns: np.ndarray | None) -> OnnxNode:
    """Return an ensemble with the features of the array from which these columns were picked."""
    features = np.asarray(node.attributes[_FEATURES], np.int64)
    if columns is None or not features.size or not 0 <= features.min() <= features.max() < len(columns):
        return node
    attributes: Mapping[str, Any] = {**node.attributes, _FEATURES: tuple(columns[features].tolist())}
    return replace(node, attributes=attributes)


def _joined(source: str, nodes: list[OnnxNode]) -> OnnxNode:
    outputs = [output for node in nodes for output in _all_outputs(node)]
    return OnnxNode(
        nodes[0].name,
        "TreeEnsembles",
        JOINED,
        1,
        (source,),
        tuple(outputs),
        {"forest": Forest([(node.op, node.attributes) for node in nodes])},
    )


def _all_outputs(node: OnnxNode) -> tuple[str, ...]:
    """Return the names of all results. A result that the graph leaves out has no name."""
    count = 2 if node.op == "TreeEnsembleClassifier" else 1
    return (*node.outputs, *[""] * (count - len(node.outputs)))
