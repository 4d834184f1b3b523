"""Graph of ONNX operators in plain records, independent of the ``onnx`` package."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from graphc.base.records import dataclass
from graphc.interop.onnx.elements import Element

ABSENT = ""
"""Name of an input or output that is left out."""
Source = int | Element | None
"""Source of a result's element type: the input with this index, a fixed type, or None where the rule decides."""


@dataclass(frozen=True)
class TensorAttribute:
    """Tensor as the value of an attribute."""

    array: np.ndarray
    element: Element


@dataclass(frozen=True)
class OnnxNode:
    """One application of an operator."""

    name: str
    op: str
    domain: str
    version: int
    """Version of the domain's operators that the model imports."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Numbers, strings, tuples of these, TensorAttributes and OnnxGraphs by name, with the operator's defaults."""
    types: tuple[Source, ...] = ()
    """Source of each result's element type."""
    body: OnnxGraph | None = None
    """Body of an operator defined as a function: it takes the node's inputs by position and returns its results."""

    @property
    def title(self) -> str:
        """Return the operator's name for messages."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    def graphs(self) -> Iterator[OnnxGraph]:
        """Yield the graphs of branches and loops."""
        for value in self.attributes.values():
            if isinstance(value, OnnxGraph):
                yield value
            elif isinstance(value, tuple) and value and not isinstance(value[0], int | float | str):
                yield from [v for v in value if isinstance(v, OnnxGraph)]


@dataclass(frozen=True)
class Port:
    """Input or output of a model."""

    name: str
    kind: str
    """``tensor``, ``sequence``, ``optional``, ``map``, or ``other`` where the model does not say."""
    element: Element | None
    shape: tuple[Any, ...] | None
    """Ints, and sizes of named dimensions. None for any shape."""


@dataclass
class OnnxGraph:
    """Nodes in an order in which they can run."""

    name: str
    inputs: list[Port]
    outputs: list[Port]
    nodes: list[OnnxNode]
    constants: dict[str, TensorAttribute]
    """Initializers."""

    def __str__(self) -> str:
        lines = [f"{self.name}({', '.join(p.name for p in self.inputs)})"]
        lines += [f"  {', '.join(n.outputs)} = {n.title}({', '.join(n.inputs)})" for n in self.nodes]
        return "\n".join([*lines, f"  return {', '.join(p.name for p in self.outputs)}"])


def every_node(graph: OnnxGraph) -> Iterator[OnnxNode]:
    """Yield the nodes of a graph, of its branches and loops, and of the functions that it calls."""
    for node in graph.nodes:
        yield node
        for inner in (*node.graphs(), *([node.body] if node.body else [])):
            yield from every_node(inner)


def captured(graph: OnnxGraph) -> set[str]:
    """Return the names of enclosing scopes that a graph and its subgraphs read."""
    defined = {p.name for p in graph.inputs} | graph.constants.keys()
    free_names: set[str] = set()
    for node in graph.nodes:
        inner = {name for g in node.graphs() for name in captured(g)}
        free_names |= {n for n in (*node.inputs, *inner) if n != ABSENT and n not in defined}
        defined |= set(node.outputs)
    return free_names | {p.name for p in graph.outputs if p.name not in defined}


def in_order(nodes: list[OnnxNode]) -> list[OnnxNode]:
    """Return the nodes so that each follows those that compute its inputs, otherwise in the order of the file.

    Nodes in a circle stay where they are, which ``reader.verify_graph`` reports.
    """
    makers = {name: i for i, node in enumerate(nodes) for name in node.outputs if name != ABSENT}
    sources: list[set[int]] = []
    users: list[list[int]] = [[] for _ in nodes]
    for i, node in enumerate(nodes):
        inner = (name for g in node.graphs() for name in captured(g))
        sources.append({makers[name] for name in (*node.inputs, *inner) if name in makers})
        for source in sources[i]:
            users[source].append(i)
    if all(source < i for i, before in enumerate(sources) for source in before):
        return nodes
    ready = [i for i, before in enumerate(sources) if not before]
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for user in users[i]:
            sources[user].discard(i)
            if not sources[user]:
                heapq.heappush(ready, user)
    return [nodes[i] for i in order] if len(order) == len(nodes) else nodes
