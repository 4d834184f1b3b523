"""Signs of zeros: where nobody can see whether a value is 0 or -0."""

from __future__ import annotations

from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.op import REGISTRY, Trait
from graphc.ops import elementwise as e
from graphc.ops import reduce, shape

LONGEST_SEARCH = 32
"""Nodes that are looked at before the sign counts as seen; what a norm or a softmax hides, it hides in fewer."""
_BLIND = frozenset(
    {
        *(f.op.name for f in (e.abs, e.eq, e.ne, e.lt, e.le, e.gt, e.ge, e.logical_not, reduce.sum)),
        *("avg_pool", "part_sum"),
        *("exp", "exp2", "cos", "cosh", "log", "log2", "log10", "sigmoid", "isnan", "isinf", "isfinite"),
    }
    & REGISTRY.keys()
)
"""Ops that give the same for both zeros, as all sums of products do: sums start at 0, to which either may be added."""
_PASSING = frozenset({"clamp", "max_pool", "winograd_input"}) | frozenset(
    f.op.name for f in (e.add, e.sub, e.mul, e.neg, e.maximum, e.minimum, e.where, reduce.max, reduce.min)
)
"""Ops in whose results only signs of zeros change with those in their operands, as in results of views; so does a
dividend."""


def is_unseen(graph: Graph, value: Value) -> bool:
    """True when no output of the graph, and nothing that the graph writes, depends on the signs of zeros in a value."""
    outputs = {id(out) for out in graph.outputs}
    waiting, seen = [value], {id(value)}
    while waiting:
        present = waiting.pop()
        if id(present) in outputs or len(seen) > LONGEST_SEARCH:
            return False
        for node, number in graph.uses(present):
            if node.op.name in _BLIND or node.op.has(Trait.CONTRACTION) or _takes_no_zero(node, number):
                continue
            if not _passes(node, number):
                return False
            waiting += [v for v in node.results if id(v) not in seen]
            seen.update(id(v) for v in node.results)
    return True


def _takes_no_zero(node: Node, number: int) -> bool:
    """True for the operand of a selection that is taken only where it is more or less than 0, as a ReLU's is."""
    if node.op is not e.where.op or number == 0:
        return False
    test, chosen = node.operands[0].node, node.operands[number]
    strict = _STRICT_ELSE if number == 2 else _STRICT_THEN
    return test.op.name in strict and test.operands[0] is chosen and _is_zero(test.operands[1])


_STRICT_ELSE = frozenset(f.op.name for f in (e.le, e.ge, e.eq))
_STRICT_THEN = frozenset(f.op.name for f in (e.lt, e.gt, e.ne))


def _is_zero(value: Value) -> bool:
    node = value.node.operands[0].node if value.node.op is shape.broadcast_to.op else value.node
    return node.op is CONSTANT and node.attrs["value"].size == 1 and not node.attrs["value"].any()


def _passes(node: Node, number: int) -> bool:
    return node.op.name in _PASSING or node.op.has(Trait.VIEW) or (node.op is e.div.op and number == 0)
