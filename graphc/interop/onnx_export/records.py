"""What an ONNX model consists of, as plain data that needs no package to be made and changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphc.base.dtypes import DType


@dataclass
class NodeRecord:
    """One operator. Attributes are numbers, texts, sequences of these, arrays and graphs."""

    op: str
    inputs: list[str]
    """Names of values; empty for an optional input that is left out."""
    outputs: list[str]
    attrs: dict[str, Any]
    name: str
    module: str = ""
    """Dotted path of the module whose forward applies it."""


@dataclass(frozen=True)
class ValueRecord:
    """Name and type of an input or output; extents that differ from call to call have a name."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...]


@dataclass
class GraphRecord:
    """A graph: that of a model, or the body of a loop or branch, which sees the values around it."""

    name: str
    inputs: list[ValueRecord]
    outputs: list[ValueRecord]
    nodes: list[NodeRecord]
    initializers: dict[str, np.ndarray] = field(default_factory=dict)

    def walk(self) -> Iterator[GraphRecord]:
        """The graph, and those inside of its nodes at any depth."""
        stack: list[GraphRecord] = [self]
        while stack:
            present = stack.pop()
            yield present
            stack.extend(g for node in present.nodes for g in node.attrs.values() if isinstance(g, GraphRecord))

    def rename(self, names: Mapping[str, str]) -> None:
        """Gives values other names, those inside of bodies too; the graph's own inputs and outputs keep theirs."""
        for graph in self.walk():
            for node in graph.nodes:
                node.inputs = [names.get(n, n) for n in node.inputs]
                node.outputs = [names.get(n, n) for n in node.outputs]
            if graph is not self:
                graph.outputs = [ValueRecord(names.get(v.name, v.name), v.dtype, v.shape) for v in graph.outputs]

    def prune(self) -> None:
        """Takes out nodes and initializers that nothing reads."""
        for graph in reversed(list(self.walk())):
            needed = {v.name for v in graph.outputs}
            kept = []
            for node in reversed(graph.nodes):
                if needed.isdisjoint(node.outputs):
                    continue
                kept.append(node)
                needed.update(node.inputs)
                needed.update(name for g in node.attrs.values() if isinstance(g, GraphRecord) for name in g.read())
            graph.nodes = kept[::-1]
            graph.initializers = {name: array for name, array in graph.initializers.items() if name in needed}

    def read(self) -> set[str]:
        """The names that nodes and outputs read, those of bodies included."""
        return {
            name
            for graph in self.walk()
            for name in (*(n for node in graph.nodes for n in node.inputs), *(v.name for v in graph.outputs))
        }
