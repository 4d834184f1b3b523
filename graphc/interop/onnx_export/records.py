"""Records of an ONNX model: plain data, which needs no package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from graphc.base.dtypes import DType
from graphc.base.records import dataclass


@dataclass
class NodeRecord:
    """One operator. Attributes are numbers, strings, sequences of these, arrays and graphs."""

    op: str
    inputs: list[str]
    """Names of values. Empty for an optional input that is left out."""
    outputs: list[str]
    attrs: dict[str, Any]
    name: str
    module: str = ""
    """Dotted path of the module whose forward applies the operator."""


@dataclass(frozen=True)
class ValueRecord:
    """Name and type of an input or output. Sizes that differ from call to call have a name."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...]


@dataclass
class GraphRecord:
    """Graph of a model, or body of a loop or branch, which reads values of enclosing graphs."""

    name: str
    inputs: list[ValueRecord]
    outputs: list[ValueRecord]
    nodes: list[NodeRecord]
    initializers: dict[str, np.ndarray] = field(default_factory=dict)

    def walk(self) -> Iterator[GraphRecord]:
        """Yield the graph and all nested graphs."""
        stack: list[GraphRecord] = [self]
        while stack:
            present = stack.pop()
            yield present
            stack.extend(g for node in present.nodes for g in node.attrs.values() if isinstance(g, GraphRecord))

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename values, also inside of bodies. The graph's own inputs and outputs keep their names."""
        for graph in self.walk():
            for node in graph.nodes:
                node.inputs = [names.get(n, n) for n in node.inputs]
                node.outputs = [names.get(n, n) for n in node.outputs]
            if graph is not self:
                graph.outputs = [ValueRecord(names.get(v.name, v.name), v.dtype, v.shape) for v in graph.outputs]

    def prune(self) -> None:
        """Remove nodes and initializers that nothing reads."""
        for graph in reversed(list(self.walk())):
            needed = {v.name for v in graph.outputs}
            live_nodes = []
            for node in reversed(graph.nodes):
                if needed.isdisjoint(node.outputs):
                    continue
                live_nodes.append(node)
                needed.update(node.inputs)
                needed.update(name for g in node.attrs.values() if isinstance(g, GraphRecord) for name in g.read())
            graph.nodes = live_nodes[::-1]
            graph.initializers = {name: array for name, array in graph.initializers.items() if name in needed}

    def read(self) -> set[str]:
        """Return the names that nodes and outputs read, also inside of bodies."""
        return {
            name
            for graph in self.walk()
            for name in (*(n for node in graph.nodes for n in node.inputs), *(v.name for v in graph.outputs))
        }
