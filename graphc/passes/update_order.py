"""Early effects: write states, and call Python functions, as soon as their operands are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.records import dataclass
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.op import Trait
from graphc.passes.base import PassResult


@dataclass(frozen=True)
class EarlyUpdates:
    """Move the update of each state to directly after its last operand.

    Needs: a decomposed graph. Does: moves elementwise nodes that only state writes need to directly after their
    operands, so that a gradient does not wait in memory for all others. Leaves: the same nodes in another order.

        %g = ... ; %h = ... ; %p.1 = sub(%p, %g) ; state_write(%p, %p.1)
        ->  %g = ... ; %p.1 = sub(%p, %g) ; state_write(%p, %p.1) ; %h = ...
    """

    name: str = "early-updates"

    def run(self, graph: Graph) -> PassResult:
        """Return a new graph; count the writes that moved."""
        writes = set(graph.having(Trait.STATE_WRITE))
        return _early(graph, writes, writes)


@dataclass(frozen=True)
class EarlyCalls:
    """Move each call of a Python function that fills borrowed memory to directly after its last operand.

    Needs: any valid graph. Does: moves such a call, and elementwise nodes that only such calls need, to directly after
    their operands, so that work which the function starts overlaps with all that follows. Other calls stay, since
    their order may be observable. Leaves: the same nodes in another order.

        %g = ... ; %h = ... ; %t.1, %r = host_call(%t, %g) {lends=true}
        ->  %g = ... ; %t.1, %r = host_call(%t, %g) {lends=true} ; %h = ...
    """

    name: str = "early-calls"

    def run(self, graph: Graph) -> PassResult:
        """Return a new graph; count the calls that moved."""
        calls = set(graph.having(Trait.HOST))
        giving = {n for n in calls if n.attrs["lends"] and len(n.results) > 1}
        return _early(graph, giving, calls) if giving else PassResult(graph, 0)


def _early(graph: Graph, roots: set[Node], readers: set[Node]) -> PassResult:
    """Move the roots, and nodes that only ``readers`` need; the readers include the roots."""
    order = graph.nodes()
    new_order = _Order(order, roots, _cone(graph, roots, readers)).run()
    moved = sum(a is not b for a, b in zip(order, new_order, strict=True) if a in roots)
    return PassResult(_Reordered(new_order).transform(graph), moved) if moved else PassResult(graph, 0)


def _cone(graph: Graph, roots: set[Node], readers: set[Node]) -> set[Node]:
    """Return the roots, and the elementwise nodes that only the readers need."""
    cone: set[Node] = set()
    outputs = {v.node for v in graph.outputs}
    easy = Trait.ELEMENTWISE, Trait.VIEW, Trait.STATE_WRITE
    for node in reversed(graph.nodes()):
        users = [user for r in node.results for user, _ in graph.uses(r)]
        inner = bool(users) and all(u in cone or u in readers for u in users) and node not in outputs
        if node in roots or (inner and any(node.op.has(t) for t in easy)):
            cone.add(node)
    return cone


class _Order:
    """Scheduler of each root directly after the last node it needs outside of the cone."""

    def __init__(self, order: Sequence[Node], roots: set[Node], cone: set[Node]):
        self.order, self.roots, self.cone = order, roots, cone
        self.number = {node: i for i, node in enumerate(order)}
        self.placed: dict[Node, None] = {}

    def run(self) -> list[Node]:
        """Return all nodes in their new order."""
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
        last, visited, stack = -1, {root}, [root]
        while stack:
            for value in stack.pop().operands:
                node = value.node
                if node in visited or node.op is INPUT:
                    continue
                visited.add(node)
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
    """Rewriter that copies a graph in another order."""

    def __init__(self, order: Sequence[Node]):
        super().__init__()
        self.order = order

    def run(self, graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs, after all nodes in the new order."""
        self.values = dict(zip(graph.inputs, arguments, strict=True))
        for node in self.order:
            results = self.copy_node(node, [self.values[v] for v in node.operands])
            self.values.update(zip(node.results, results, strict=True))
        return tuple(self.values[v] for v in graph.outputs)
