"""Signs of zeros: where nobody can see whether a value is 0 or -0."""

from __future__ import annotations

from graphc.ir.graph import Graph, Node, Value
from graphc.ir.op import REGISTRY
from graphc.ops import elementwise as e
from graphc.ops import reduce, shape
from graphc.ops.contraction import matmul

LONGEST_SEARCH = 32
"""Nodes that are looked at before the sign counts as seen; what a norm or a softmax hides, it hides in fewer."""
_BLIND = frozenset(
    {
        *(f.op.name for f in (e.abs, e.eq, e.ne, e.lt, e.le, e.gt, e.ge, e.logical_not, reduce.sum, matmul)),
        *("exp", "exp2", "cos", "cosh", "log", "log2", "log10", "sigmoid", "isnan", "isinf", "isfinite"),
    }
    & REGISTRY.keys()
)
"""Ops that give the same for both zeros. Sums start at 0, to which either may be added."""
_PASSING = frozenset(
    f.op.name
    for f in (
        *(e.add, e.sub, e.mul, e.neg, e.maximum, e.minimum, e.where, reduce.max, reduce.min),
        *(shape.reshape, shape.transpose, shape.broadcast_to, shape.slice, shape.pad, shape.concat, shape.flip),
    )
)
"""Ops in whose results only signs of zeros change with signs of zeros in their operands; a dividend does so too."""


def is_unseen(graph: Graph, value: Value) -> bool:
    """True when no output of the graph, and nothing that the graph writes, depends on the signs of zeros in a value."""
    outputs = {id(out) for out in graph.outputs}
    waiting, seen = [value], {id(value)}
    while waiting:
        present = waiting.pop()
        if id(present) in outputs or len(seen) > LONGEST_SEARCH:
            return False
        for node, number in graph.uses(present):
            if node.op.name in _BLIND:
                continue
            if not _passes(node, number):
                return False
            waiting += [v for v in node.results if id(v) not in seen]
            seen.update(id(v) for v in node.results)
    return True


def _passes(node: Node, number: int) -> bool:
    return node.op.name in _PASSING or (node.op is e.div.op and number == 0)
