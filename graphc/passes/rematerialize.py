"""Rematerialization: large values that are cheap to compute again are not kept from a forward to a backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphc.base.sizes.size import hint
from graphc.codegen.machine.costs import DEFAULT, Costs, RewriteCosts
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value
from graphc.ir.op import Trait
from graphc.passes.base import PassResult


@dataclass(frozen=True)
class Rematerialize:
    """Computes a large value once more for uses that depend on a product of it, instead of keeping it so long.

    Needs: a decomposed graph that is not differentiated any more; no merging of equal nodes after it. Does: where a
    value of ``rematerialized_bytes`` or more is made element by element, by views and by short products from values
    that are together much smaller, such uses get a second one, computed from those right before. The weights of
    attention over long sequences are so computed again from queries, keys and the two numbers of each row that softmax
    has found.
    Leaves: results that are equal to the last bit.

        %p = ... ; %o = matmul(%p, %v) ; ... ; %g = mul(%p, %d)
        ->  %p = ... ; %o = matmul(%p, %v) ; ... ; %p.1 = ... ; %g = mul(%p.1, %d)
    """

    name: str = "rematerialize"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Changes the graph in place; counts the values that are not kept."""
        costs = self.costs.rewrites
        copier = _Copier(graph, costs)
        reasons: list[str] = []
        for node in list(graph.nodes()):
            for value in node.results:
                large = hint(value.type.nbytes) >= costs.rematerialized_bytes and value not in graph.outputs
                if large and copier.separate(value):
                    reasons.append(
                        f"%{value.name}: {value.type.nbytes} bytes are not kept for uses behind products of them, for "
                        f"what they are made of is {costs.rematerialized_smaller} times smaller"
                    )
        return PassResult(graph, len(reasons), tuple(reasons))


class _Copier:
    def __init__(self, graph: Graph, costs: RewriteCosts):
        self.graph = graph
        self.costs = costs
        self.copies: dict[Value, Value] = {}
        self.made: set[Node] = set()

    def separate(self, value: Value) -> bool:
        """Gives the uses of a value that depend on a product of it a copy, if that pays."""
        uses = self.graph.uses(value)
        if value.node in self.made or len(uses) < 2:
            return False
        behind = self._behind_products(value)
        late = [(node, key) for node, key in uses if node in behind]
        cone = self._cone(value) if late else None
        if cone is None:
            return False
        copied = self._copy(value, cone)
        for node, key in late:
            self.graph.set_operand(node, key, copied)
        return True

    def _behind_products(self, value: Value) -> set[Node]:
        """Nodes that depend on a product which the value, or something made of it, goes into."""
        before: set[Node] = set()
        behind: set[Node] = set()
        stack = [(value.node, False)]
        while stack:
            node, passed = stack.pop()
            for user, _ in self._users(node, value):
                after = passed or (node.op.has(Trait.CONTRACTION) and node is not value.node)
                found = behind if after else before
                if user not in found:
                    found.add(user)
                    stack.append((user, after))
        return behind

    def _users(self, node: Node, value: Value) -> Iterator[tuple[Node, int]]:
        for result in (value,) if node is value.node else node.results:
            yield from self.graph.uses(result)

    def _cone(self, value: Value) -> set[Node] | None:
        """The nodes that compute a value from much smaller ones; None when there are none such."""
        found: set[Node] = set()
        kept: set[Value] = set()
        stack = [value]
        while stack:
            present = stack.pop()
            node = present.node
            if node.op in (INPUT, CONSTANT) or (present is not value and self._is_small(present, value)):
                kept.add(present)
            elif not self._is_cheap(node):
                return None
            elif node not in found:
                found.add(node)
                stack += node.operands
        needed = sum(hint(v.type.nbytes) for v in kept)
        return found if needed * self.costs.rematerialized_smaller <= hint(value.type.nbytes) else None

    def _is_small(self, part: Value, whole: Value) -> bool:
        return hint(part.type.nbytes) * 2 * self.costs.rematerialized_smaller <= hint(whole.type.nbytes)

    def _copy(self, value: Value, cone: set[Node]) -> Value:
        """A second computation of the value, which shares what was computed again before."""
        stack = [value.node]
        while stack:
            node = stack[-1]
            missing = [v.node for v in node.operands if v.node in cone and v not in self.copies]
            if missing:
                stack += missing
                continue
            stack.pop()
            if node.results[0] in self.copies:
                continue
            operands = [self.copies[v] if v.node in cone else v for v in node.operands]
            results = emit(self.graph, node.op, operands, node.attrs, node.location, node.results[0].name)
            self.copies.update(zip(node.results, results, strict=True))
            self.made.update(v.node for v in results)
        return self.copies[value]

    def _is_cheap(self, node: Node) -> bool:
        """Whether a node costs about as little as reading its result from memory would."""
        if node.op.multiply_adds is not None:
            operands, results = ([v.type for v in values] for values in (node.operands, node.results))
            products = hint(node.op.multiply_adds(tuple(operands), tuple(results), node.attrs))
            # NOTE: a sum over a window reads most of its operand many times, which is not cheap however short it is.
            return node.op.image is None and products <= self.costs.rematerialized_products * hint(results[0].size)
        easy = Trait.ELEMENTWISE | Trait.VIEW | Trait.GENERATOR
        return node.op.has(Trait.PURE) and any(node.op.has(t) for t in easy)
