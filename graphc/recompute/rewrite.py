"""Recomputation: some values are not kept for what reads them late, but computed a second time right before."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value, input_class
from graphc.ir.graph.interpret import Reemitter
from graphc.ops.checkpoint import later


def recompute(
    graph: Graph,
    place: Mapping[Node, int],
    until: int,
    again: Collection[Node],
    is_stored: Callable[[Value], bool],
    kept: Collection[Value] = (),
) -> Graph:
    """A new graph in which the nodes ``again`` exist twice: as they were for nodes with a place up to ``until``, and
    once more for those that come later, each right before its first reader.

    ``place`` says when each node runs, and ``is_stored`` which values lie in memory then; values in ``kept`` are read
    where they are, even if their nodes are in ``again`` for others. What the second ones read
    goes through ``later``, so nothing merges them with the first. Nodes that nothing reads any more stay in the graph.
    """
    return _Rewriter(place, until, frozenset(again), is_stored, frozenset(kept)).transform(graph)


class _Rewriter(Reemitter):
    def __init__(
        self,
        place: Mapping[Node, int],
        until: int,
        again: frozenset[Node],
        is_stored: Callable[[Value], bool],
        kept: frozenset[Value],
    ):
        super().__init__()
        self.place, self.until, self.again, self.is_stored, self.kept = place, until, again, is_stored, kept
        self.copies: dict[Value, Value] = {}
        """Values that exist twice, and the second ones."""
        self.held: dict[tuple[Value, Value], Value] = {}
        self.anchors: list[tuple[int, int, Value]] = []
        """(place, number, value) of what lies in memory and exists by now, in this order."""

    def run(self, graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs, after all nodes in order."""
        self.values: dict[Value, Any] = dict(zip(graph.inputs, arguments, strict=True))
        for node in graph.nodes():
            late = node not in self.again and self._is_late(node)
            operands = [self._seen_late(v, node) if late else self.values[v] for v in node.operands]
            results = self.copy_node(node, operands)
            for old, new in zip(node.results, results, strict=True):
                self.values[old] = new
                if self.is_stored(old):
                    insort(self.anchors, (self.place[node], len(self.anchors), new), key=lambda entry: entry[:2])
        return tuple(self.values[v] for v in graph.outputs)

    def _is_late(self, node: Node) -> bool:
        return self.place.get(node, -1) > self.until

    def _seen_late(self, value: Value, reader: Node) -> Value:
        """What a late node reads in the place of a value."""
        if not self._is_again(value):
            return self.values[value]
        if value not in self.copies:
            self._copy(value.node, self._anchor(reader))
        return self.copies[value]

    def _is_again(self, value: Value) -> bool:
        return value.node in self.again and value not in self.kept

    def _anchor(self, reader: Node) -> Value | None:
        """The last value in memory that is there before the reader's group runs."""
        at = bisect_left(self.anchors, (self.place[reader], -1), key=lambda entry: entry[:2])
        return self.anchors[at - 1][2] if at else None

    def _copy(self, root: Node, anchor: Value | None) -> None:
        """A second computation of a node and of those that it needs, once ``anchor`` is known."""
        stack = [root]
        while stack:
            node = stack[-1]
            missing = [v.node for v in node.operands if self._is_again(v) and v not in self.copies]
            if missing:
                stack += missing
                continue
            stack.pop()
            if node.results[0] in self.copies:
                continue
            results = emit(self.target, node.op, self._operands(node, anchor), node.attrs, node.location, _name(node))
            self.copies.update(zip(node.results, results, strict=True))

    def _operands(self, node: Node, anchor: Value | None) -> list[Value]:
        found = []
        waits = any(map(self._is_again, node.operands)) or anchor is None
        for value in node.operands:
            if self._is_again(value):
                found.append(self.copies[value])
            elif value.node.op is CONSTANT or anchor is None or input_class(value) in ("param", "weight"):
                found.append(self.values[value])
            else:
                waits = True
                found.append(self._held(value, anchor))
        if not waits and (places := [i for i, v in enumerate(node.operands) if v.node.op is INPUT]):
            assert anchor is not None
            found[places[0]] = self._held(node.operands[places[0]], anchor)
        return found

    def _held(self, value: Value, anchor: Value) -> Value:
        key = value, anchor
        if key not in self.held:
            here = self.values[value]
            self.held[key] = emit(self.target, later.op, (here, anchor), {}, value.node.location, f"{value.name}.kept")[
                0
            ]
        return self.held[key]


def _name(node: Node) -> str:
    name = node.results[0].name
    return f"{name if len(node.results) == 1 else name.removesuffix('.0')}.again"
