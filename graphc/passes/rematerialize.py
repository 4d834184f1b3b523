"""Rematerialization: compute large but cheap values again instead of storing them until the backward pass."""

from __future__ import annotations

from collections.abc import Iterator

from graphc.base.records import dataclass
from graphc.base.sizes.size import hint
from graphc.codegen.machine.costs import DEFAULT, Costs, RewriteCosts
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value
from graphc.ir.op import Trait
from graphc.passes.base import PassResult


@dataclass(frozen=True)
class Rematerialize:
    """Compute a large value a second time for uses that depend on a product of it, instead of storing it so long.

    Needs: a decomposed graph that is not differentiated any more; no merging of equal nodes after it. Does: finds a
    value of ``rematerialized_bytes`` or more, computed element by element, by views and by short products from
    values of a much smaller total size. Late uses get a second copy, computed from those values right before. The
    weights of attention over long sequences, for example, are computed again from queries, keys and the two statistics
    of softmax per row.
    Leaves: results equal to the last bit.

        %p = ... ; %o = matmul(%p, %v) ; ... ; %g = mul(%p, %d)
        ->  %p = ... ; %o = matmul(%p, %v) ; ... ; %p.1 = ... ; %g = mul(%p.1, %d)
    """

    name: str = "rematerialize"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Change the graph in place; count the values computed again."""
        costs = self.costs.rewrites
        copier = _Copier(graph, costs)
        reasons: list[str] = []
        for node in list(graph.nodes()):
            for value in node.results:
                large = hint(value.type.nbytes) >= costs.rematerialized_bytes and value not in graph.outputs
                if large and copier.separate(value):
                    reasons.append(
                        f"%{value.name}: {value.type.nbytes} bytes are computed again for uses after products of them, "
                        f"from values that are {costs.rematerialized_smaller} times smaller"
                    )
        return PassResult(graph, len(reasons), tuple(reasons))


class _Copier:
    def __init__(self, graph: Graph, costs: RewriteCosts):
        self.graph = graph
        self.costs = costs
        self.copies: dict[Value, Value] = {}
        self.created: set[Node] = set()

    def separate(self, value: Value) -> bool:
        """Give the uses of a value that depend on a product of it a copy, if that pays."""
        uses = self.graph.uses(value)
        if value.node in self.created or len(uses) < 2:
            return False
        dependents = self._after_products(value)
        late = [(node, key) for node, key in uses if node in dependents]
        cone = self._cone(value) if late else None
        if cone is None:
            return False
        copied = self._copy(value, cone)
        for node, key in late:
            self.graph.set_operand(node, key, copied)
        return True

    def _after_products(self, value: Value) -> set[Node]:
        """Return the nodes that depend on a product of the value or of values computed from it."""
        before: set[Node] = set()
        after_products: set[Node] = set()
        stack = [(value.node, False)]
        while stack:
            node, passed = stack.pop()
            for user, _ in self._users(node, value):
                after = passed or (node.op.has(Trait.CONTRACTION) and node is not value.node)
                visited = after_products if after else before
                if user not in visited:
                    visited.add(user)
                    stack.append((user, after))
        return after_products

    def _users(self, node: Node, value: Value) -> Iterator[tuple[Node, int]]:
        for result in (value,) if node is value.node else node.results:
            yield from self.graph.uses(result)

    def _cone(self, value: Value) -> set[Node] | None:
        """Return the nodes that compute a value from much smaller ones, or None."""
        cone: set[Node] = set()
        leaves: set[Value] = set()
        stack = [value]
        while stack:
            current = stack.pop()
            node = current.node
            if node.op in (INPUT, CONSTANT) or (current is not value and self._is_small(current, value)):
                leaves.add(current)
            elif not self._is_cheap(node):
                return None
            elif node not in cone:
                cone.add(node)
                stack += node.operands
        needed = sum(hint(v.type.nbytes) for v in leaves)
        return cone if needed * self.costs.rematerialized_smaller <= hint(value.type.nbytes) else None

    def _is_small(self, leaf: Value, value: Value) -> bool:
        return hint(leaf.type.nbytes) * 2 * self.costs.rematerialized_smaller <= hint(value.type.nbytes)

    def _copy(self, value: Value, cone: set[Node]) -> Value:
        """Compute the value a second time; share nodes copied before."""
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
            self.created.update(v.node for v in results)
        return self.copies[value]

    def _is_cheap(self, node: Node) -> bool:
        """Check whether a node costs about as little as reading its result from memory."""
        if node.op.multiply_adds is not None:
            operands, results = ([v.type for v in values] for values in (node.operands, node.results))
            products = hint(node.op.multiply_adds(tuple(operands), tuple(results), node.attrs))
            # NOTE: a sum over a window reads most of its operand many times: it is not cheap, however short it is.
            return node.op.image is None and products <= self.costs.rematerialized_products * hint(results[0].size)
        easy = Trait.ELEMENTWISE | Trait.VIEW | Trait.GENERATOR
        return node.op.has(Trait.PURE) and any(node.op.has(t) for t in easy)
