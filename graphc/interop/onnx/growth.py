"""Number of operators of a model once its functions are inlined, counted before any is inlined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphc.base.errors import ArtifactError

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
