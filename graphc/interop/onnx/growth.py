"""How many operators a model has once its functions are written out: counted before any of them is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphc.base.errors import ArtifactError

MOST_DEPTH = 64
"""Of graphs within graphs, and of functions that functions apply."""
MOST_WRITTEN = 50_000
"""Operators of a model beyond those that stand in its file: a few lines of functions that apply each other twice could
ask for any number."""
Key = tuple[str, str, str]
"""Domain, name and overload of a function."""


def count_operators(graph: Any, functions: Mapping[Key, Any]) -> int:
    """The operators of a GraphProto with those of the FunctionProtos that it applies, and of those that these apply.
    Raises ArtifactError for functions that apply each other in a circle, and for too many operators."""
    counts = _Counts(functions)
    found = counts.of_nodes(graph.node, 0)
    stands = sum(1 for f in (graph, *functions.values()) for _ in _all_nodes(f.node, 0))
    if found > stands + MOST_WRITTEN:
        raise ArtifactError(f"the model has {found} operators once its functions are written out, {stands} in the file")
    return found


class _Counts:
    """The operators of functions, each counted once."""

    def __init__(self, functions: Mapping[Key, Any]):
        self.functions = functions
        self.known: dict[Key, int | None] = {}
        """None for those that are being counted."""

    def of_nodes(self, nodes: Any, depth: int) -> int:
        """The operators of nodes, of their graphs and of the functions that they apply."""
        found = 0
        for node in _all_nodes(nodes, depth):
            key = node.domain if node.domain != "ai.onnx" else "", node.op_type, node.overload
            found += 1 + (self.of_function(key, depth + 1) if key in self.functions else 0)
        return found

    def of_function(self, key: Key, depth: int) -> int:
        """The operators of a function."""
        if key not in self.known:
            check_depth(depth)
            self.known[key] = None
            self.known[key] = self.of_nodes(self.functions[key].node, depth)
        count = self.known[key]
        if count is None:
            raise ArtifactError(f"the function {key[1][:80]!r} applies itself")
        return count


def _all_nodes(nodes: Any, depth: int) -> Iterator[Any]:
    """Nodes with those of their graphs."""
    check_depth(depth)
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _all_nodes(graph.node, depth + 1)


def check_depth(depth: int) -> None:
    """Raises ArtifactError for too many levels of graphs and functions."""
    if depth > MOST_DEPTH:
        raise ArtifactError(f"graphs and functions of the model are nested in more than {MOST_DEPTH} levels")
