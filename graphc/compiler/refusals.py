"""Explanation of a stopped call: evaluate the checks of its graph by the reference interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from graphc.base.errors import GraphcError, IndexRangeError
from graphc.ir.graph.graph import Graph, Node, Value, input_class, input_path
from graphc.ir.graph.interpret import Evaluator, Reemitter, live_nodes
from graphc.ir.op import Trait
from graphc.ops.effects.host import interpreting
from graphc.runtime.host_calls import current


class Refusals:
    """Explains stopped calls.

    Called with the inputs and bound arrays (by path) of a call, it returns the error, or None where that depends on
    arrays inside the program.
    """

    def __init__(self, checks: Callable[[], Graph]):
        """``checks`` returns a graph of ``checks_of``."""
        self._checks = checks

    def __call__(self, inputs: Sequence[Any], bound: Mapping[str, np.ndarray]) -> GraphcError | None:
        host = current()
        if host is not None and host.error is not None:
            return None  # that error takes precedence
        graph = self._checks()
        plain = iter(inputs)
        all_arguments = [
            next(plain) if input_class(v) == "input" else bound.get(input_path(v), _absent(v)) for v in graph.inputs
        ]
        needed = live_nodes(graph, [r for n in graph.nodes() for r in n.results])
        missing = [input_path(v) for v in graph.inputs if v.node in needed and input_class(v) != "input"]
        if any(path not in bound for path in missing):
            return None
        arrays = [np.asarray(a) for a in all_arguments]
        try:
            with nullcontext() if host is None else interpreting(host.rewind()):
                (Evaluator() if host is None or host.lasting else _WithoutHostCalls()).run(graph, arrays)
        except IndexRangeError as error:
            return error
        return None


class _WithoutHostCalls(Evaluator):
    """Evaluates nodes independent of Python functions, which must not be called again."""

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        if any(operand is None for operand in operands) or _has(node, Trait.HOST):
            return (None,) * len(node.results)
        return super().apply(node, operands)


def _absent(value: Value) -> np.ndarray:
    return np.zeros(value.shape, value.dtype.numpy)


def checks_of(graph: Graph) -> Graph:
    """Return the part of a graph on which its checks depend, with all inputs and no outputs."""
    roots = [r for n in graph.nodes() if may_stop(n) for r in n.results]
    return _Slice(live_nodes(graph, roots)).transform(graph)


def may_stop(node: Node) -> bool:
    """Return whether a node, or a graph in its attributes, has a check."""
    return _has(node, Trait.CHECK)


def _has(node: Node, trait: Trait) -> bool:
    """Return whether a node, or one of a graph in its attributes, has a trait."""
    if node.op.has(trait):
        return True
    subgraphs = [node.attrs[a.name] for a in node.op.attrs if a.kind == "graph" and node.attrs[a.name] is not None]
    return any(_has(inner, trait) for graph in subgraphs for inner in graph.nodes())


class _Slice(Reemitter):
    def __init__(self, nodes: set[Node]):
        super().__init__()
        self.kept = nodes

    def transform(self, graph: Graph) -> Graph:
        """Copy the nodes in the slice."""
        self.target = Graph(graph.name)
        self.run(graph, [self.copy_input(v) for v in graph.inputs])
        return self.target

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        return self.copy_node(node, operands) if node in self.kept else (None,) * len(node.results)
