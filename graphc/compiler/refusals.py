"""Which check of a program stopped a call: the checks of its graph, and what they need, computed by the references."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from graphc.base.errors import GraphcError, IndexRangeError
from graphc.ir.graph.graph import Graph, Node, Value, input_class, input_path
from graphc.ir.graph.interpret import Evaluator, Reemitter, live_nodes
from graphc.ir.op import Trait
from graphc.ops.host import interpreting
from graphc.runtime.host_calls import current


class Refusals:
    """Called with the inputs and bound arrays (by path) of a call that was stopped: the error that says why, or None
    where it depends on arrays that only the program knows."""

    def __init__(self, checks: Callable[[], Graph]):
        """``checks`` gives a graph as of ``checks_of``."""
        self._checks = checks

    def __call__(self, inputs: Sequence[Any], bound: Mapping[str, np.ndarray]) -> GraphcError | None:
        host = current()
        if host is not None and host.error is not None:
            return None  # which is raised in the place of any other
        graph = self._checks()
        plain = iter(inputs)
        given = [
            next(plain) if input_class(v) == "input" else bound.get(input_path(v), _absent(v)) for v in graph.inputs
        ]
        needed = live_nodes(graph, [r for n in graph.nodes() for r in n.results])
        missing = [input_path(v) for v in graph.inputs if v.node in needed and input_class(v) != "input"]
        if any(path not in bound for path in missing):
            return None
        arrays = [np.asarray(a) for a in given]
        try:
            with nullcontext() if host is None else interpreting(host.rewind()):
                (Evaluator() if host is None or host.lasting else _Known()).run(graph, arrays)
        except IndexRangeError as error:
            return error
        return None


class _Known(Evaluator):
    """Evaluates what does not depend on Python functions, which must not be called for it."""

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        if any(operand is None for operand in operands) or _has(node, Trait.HOST):
            return (None,) * len(node.results)
        return super().apply(node, operands)


def _absent(value: Value) -> np.ndarray:
    return np.zeros(value.shape, value.dtype.numpy)


def checks_of(graph: Graph) -> Graph:
    """The part of a graph that its checks depend on, with all inputs and no outputs."""
    roots = [r for n in graph.nodes() if may_stop(n) for r in n.results]
    return _Slice(live_nodes(graph, roots)).transform(graph)


def may_stop(node: Node) -> bool:
    """Whether a node, or a graph that it holds, checks something."""
    return _has(node, Trait.CHECK)


def _has(node: Node, trait: Trait) -> bool:
    """Whether a node, or one of a graph that it holds, has a trait."""
    if node.op.has(trait):
        return True
    held = [node.attrs[a.name] for a in node.op.attrs if a.kind == "graph" and node.attrs[a.name] is not None]
    return any(_has(inner, trait) for graph in held for inner in graph.nodes())


class _Slice(Reemitter):
    def __init__(self, kept: set[Node]):
        super().__init__()
        self.kept = kept

    def transform(self, graph: Graph) -> Graph:
        """The kept nodes."""
        self.target = Graph(graph.name)
        self.run(graph, [self.copy_input(v) for v in graph.inputs])
        return self.target

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        return self.copy_node(node, operands) if node in self.kept else (None,) * len(node.results)
