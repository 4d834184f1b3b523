"""Recomputation: compute some values a second time right before late readers, instead of storing them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value, input_class
from graphc.ir.graph.interpret import Reemitter
from graphc.ops.flow.checkpoint import later


def recompute(
    graph: Graph,
    order: Mapping[Node, int],
    until: int,
    again: Collection[Node],
    is_stored: Callable[[Value], bool],
    stored: Collection[Value] = (),
) -> Graph:
    """Return a new graph in which the nodes ``again`` exist twice: once for nodes with a position up to ``until``, and
    once more for later nodes, each right before its first reader.

    ``order`` is the position at which each node runs, and ``is_stored`` tells which values are in memory then. Values
    in ``kept`` are read from memory, even if their nodes are in ``again`` for others. Operands of the second copies go
    through ``later``, so that no pass merges them with the first. Nodes that nothing reads any more stay in the graph.
    """
    return _Rewriter(order, until, frozenset(again), is_stored, frozenset(stored)).transform(graph)


class _Rewriter(Reemitter):
    def __init__(
        self,
        order: Mapping[Node, int],
        until: int,
        again: frozenset[Node],
        is_stored: Callable[[Value], bool],
        stored: frozenset[Value],
    ):
        super().__init__()
        self.order, self.until, self.again, self.is_stored, self.stored = order, until, again, is_stored, stored
        self.copies: dict[Value, Value] = {}
        """Second copy of each value that exists twice."""
        self.delayed: dict[tuple[Value, Value], Value] = {}
        self.anchors: list[tuple[int, int, Value]] = []
        """(position, number, value) of values in memory that exist so far, in this order."""

    def run(self, graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs, after all nodes in order."""
        self.values: dict[Value, Any] = dict(zip(graph.inputs, arguments, strict=True))
        for node in graph.nodes():
            late = node not in self.again and self._is_late(node)
            operands = [self._late_operand(v, node) if late else self.values[v] for v in node.operands]
            results = self.copy_node(node, operands)
            for old, new in zip(node.results, results, strict=True):
                self.values[old] = new
                if self.is_stored(old):
                    insort(self.anchors, (self.order[node], len(self.anchors), new), key=lambda entry: entry[:2])
        return tuple(self.values[v] for v in graph.outputs)

    def _is_late(self, node: Node) -> bool:
        return self.order.get(node, -1) > self.until

    def _late_operand(self, value: Value, reader: Node) -> Value:
        """Return the value to use instead in a late node."""
        if not self._is_recomputed(value):
            return self.values[value]
        if value not in self.copies:
            self._copy(value.node, self._anchor(reader))
        return self.copies[value]

    def _is_recomputed(self, value: Value) -> bool:
        return value.node in self.again and value not in self.stored

    def _anchor(self, reader: Node) -> Value | None:
        """Return the last value in memory that exists before the reader's group runs."""
        index = bisect_left(self.anchors, (self.order[reader], -1), key=lambda entry: entry[:2])
        return self.anchors[index - 1][2] if index else None

    def _copy(self, root: Node, anchor: Value | None) -> None:
        """Compute a node and its operands a second time, once ``anchor`` exists."""
        stack = [root]
        while stack:
            node = stack[-1]
            missing = [v.node for v in node.operands if self._is_recomputed(v) and v not in self.copies]
            if missing:
                stack += missing
                continue
            stack.pop()
            if node.results[0] in self.copies:
                continue
            results = emit(self.target, node.op, self._operands(node, anchor), node.attrs, node.location, _name(node))
            self.copies.update(zip(node.results, results, strict=True))

    def _operands(self, node: Node, anchor: Value | None) -> list[Value]:
        operands = []
        waits = any(map(self._is_recomputed, node.operands)) or anchor is None
        for value in node.operands:
            if self._is_recomputed(value):
                operands.append(self.copies[value])
            elif value.node.op is CONSTANT or anchor is None or input_class(value) in ("param", "weight"):
                operands.append(self.values[value])
            else:
                waits = True
                operands.append(self._delayed(value, anchor))
        if not waits and (inputs := [i for i, v in enumerate(node.operands) if v.node.op is INPUT]):
            assert anchor is not None
            operands[inputs[0]] = self._delayed(node.operands[inputs[0]], anchor)
        return operands

    def _delayed(self, value: Value, anchor: Value) -> Value:
        key = value, anchor
        if key not in self.delayed:
            here = self.values[value]
            self.delayed[key] = emit(
                self.target, later.op, (here, anchor), {}, value.node.location, f"{value.name}.kept"
            )[0]
        return self.delayed[key]


def _name(node: Node) -> str:
    name = node.results[0].name
    return f"{name if len(node.results) == 1 else name.removesuffix('.0')}.again"
