"""Early effects: states are written, and Python functions called, as soon as all that they are given is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.op import Trait
from graphc.passes.base import PassResult


@dataclass(frozen=True)
class EarlyUpdates:
    """Moves the update of each state to the place where its last operand is computed.

    Needs: a decomposed graph. Does: what only writes to states need, element by element, stands right behind what it
    is made of, so that a gradient does not wait in memory for all others. Leaves: the same nodes in another order.

        %g = ... ; %h = ... ; %p.1 = sub(%p, %g) ; state_write(%p, %p.1)
        ->  %g = ... ; %p.1 = sub(%p, %g) ; state_write(%p, %p.1) ; %h = ...
    """

    name: str = "early-updates"

    def run(self, graph: Graph) -> PassResult:
        """A new graph; counts the writes that moved."""
        writes = {n for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
        return _early(graph, writes, writes)


@dataclass(frozen=True)
class EarlyCalls:
    """Moves each call of a Python function that is lent memory to fill to the place where its last operand is computed.

    Needs: any valid graph. Does: such a call, and what only such calls need, element by element, stands right behind
    what it is made of, so that what the function begins goes on beside all that follows. Other calls, whose order
    against one another somebody may see, stay. Leaves: the same nodes in another order.

        %g = ... ; %h = ... ; %t.1, %r = host_call(%t, %g) {lends=true}
        ->  %g = ... ; %t.1, %r = host_call(%t, %g) {lends=true} ; %h = ...
    """

    name: str = "early-calls"

    def run(self, graph: Graph) -> PassResult:
        """A new graph; counts the calls that moved."""
        calls = {n for n in graph.nodes() if n.op.has(Trait.HOST)}
        giving = {n for n in calls if n.attrs["lends"] and len(n.results) > 1}
        return _early(graph, giving, calls) if giving else PassResult(graph, 0)


def _early(graph: Graph, roots: set[Node], readers: set[Node]) -> PassResult:
    """Moves the roots, and what nothing but ``readers`` needs, which are these and perhaps more."""
    order = graph.nodes()
    wanted = _Order(order, roots, _cone(graph, roots, readers)).run()
    moved = sum(a is not b for a, b in zip(order, wanted, strict=True) if a in roots)
    return PassResult(_Reordered(wanted).transform(graph), moved) if moved else PassResult(graph, 0)


def _cone(graph: Graph, roots: set[Node], readers: set[Node]) -> set[Node]:
    """The roots, and what nothing but readers needs, element by element."""
    cone: set[Node] = set()
    kept = {v.node for v in graph.outputs}
    easy = Trait.ELEMENTWISE, Trait.VIEW, Trait.STATE_WRITE
    for node in reversed(graph.nodes()):
        users = [user for r in node.results for user, _ in graph.uses(r)]
        inner = bool(users) and all(u in cone or u in readers for u in users) and node not in kept
        if node in roots or (inner and any(node.op.has(t) for t in easy)):
            cone.add(node)
    return cone


class _Order:
    """Puts each root behind the last node outside of the cone that it needs."""

    def __init__(self, order: Sequence[Node], roots: set[Node], cone: set[Node]):
        self.order, self.roots, self.cone = order, roots, cone
        self.number = {node: i for i, node in enumerate(order)}
        self.placed: dict[Node, None] = {}

    def run(self) -> list[Node]:
        """All nodes in their new order."""
        ready: dict[int, list[Node]] = {}
        for node in self.order:
            if node in self.roots:
                ready.setdefault(self._last_needed(node), []).append(node)
        for root in ready.pop(-1, ()):
            self._place(root)
        for node in self.order:
            if node not in self.cone:
                self._place(node)
                for root in ready.get(self.number[node], ()):
                    self._place(root)
        return list(self.placed)

    def _last_needed(self, root: Node) -> int:
        last, seen, stack = -1, {root}, [root]
        while stack:
            for value in stack.pop().operands:
                node = value.node
                if node in seen or node.op is INPUT:
                    continue
                seen.add(node)
                if node in self.cone:
                    stack.append(node)
                elif node.op is not CONSTANT:
                    last = max(last, self.number[node])
        return last

    def _place(self, root: Node) -> None:
        stack = [root]
        while stack:
            node = stack[-1]
            missing = [v.node for v in node.operands if v.node not in self.placed and v.node.op is not INPUT]
            if missing:
                stack += sorted(missing, key=self.number.__getitem__, reverse=True)
            else:
                self.placed.setdefault(stack.pop())


class _Reordered(Reemitter):
    """Copies a graph in another order."""

    def __init__(self, order: Sequence[Node]):
        super().__init__()
        self.order = order

    def run(self, graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs, after all nodes in the new order."""
        self.values = dict(zip(graph.inputs, arguments, strict=True))
        for node in self.order:
            results = self.copy_node(node, [self.values[v] for v in node.operands])
            self.values.update(zip(node.results, results, strict=True))
        return tuple(self.values[v] for v in graph.outputs)
