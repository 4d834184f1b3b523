"""A graph of ONNX operators as graphc holds it: plain records, which nothing of the ``onnx`` package is part of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphc.interop.onnx.elements import Element

ABSENT = ""
"""The name of an input or output that is left out."""
Source = int | Element | None
"""Where the element type of a result comes from: that of the input of this number, always the same, or, None, what the
rule says."""


@dataclass(frozen=True, slots=True)
class TensorAttribute:
    """A tensor that is an attribute."""

    array: np.ndarray
    element: Element


@dataclass(frozen=True, slots=True)
class Node:
    """One application of an operator."""

    name: str
    op: str
    domain: str
    version: int
    """The version of the domain's operators that the model asks for."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Numbers, texts, tuples of these, TensorAttributes and OnnxGraphs by name; defaults of the operator are there."""
    types: tuple[Source, ...] = ()
    """Of each result."""
    body: OnnxGraph | None = None
    """What the operator stands for, where that is a function: its own inputs by position, then this graph's results."""

    @property
    def title(self) -> str:
        """What messages call the operator."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    def graphs(self) -> Iterator[OnnxGraph]:
        """The graphs of branches and loops."""
        for value in self.attributes.values():
            if isinstance(value, OnnxGraph):
                yield value
            elif isinstance(value, tuple):
                yield from [v for v in value if isinstance(v, OnnxGraph)]


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a model."""

    name: str
    kind: str
    """``tensor``, ``sequence``, ``optional``, or ``other`` where the model does not say."""
    element: Element | None
    shape: tuple[Any, ...] | None
    """Ints, and sizes of named dimensions; None for any shape."""


@dataclass(slots=True)
class OnnxGraph:
    """Nodes in an order in which they can run."""

    name: str
    inputs: list[Port]
    outputs: list[Port]
    nodes: list[Node]
    constants: dict[str, TensorAttribute]
    """Initializers."""

    def __str__(self) -> str:
        lines = [f"{self.name}({', '.join(p.name for p in self.inputs)})"]
        lines += [f"  {', '.join(n.outputs)} = {n.title}({', '.join(n.inputs)})" for n in self.nodes]
        return "\n".join([*lines, f"  return {', '.join(p.name for p in self.outputs)}"])


def captured(graph: OnnxGraph) -> set[str]:
    """The names that a graph, and those inside of it, read from around it."""
    known = {p.name for p in graph.inputs} | graph.constants.keys()
    found: set[str] = set()
    for node in graph.nodes:
        inner = {name for g in node.graphs() for name in captured(g)}
        found |= {n for n in (*node.inputs, *inner) if n != ABSENT and n not in known}
        known |= set(node.outputs)
    return found | {p.name for p in graph.outputs if p.name not in known}
