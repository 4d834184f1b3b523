"""Signs of zeros: prove that no reader can tell 0 from -0 in a value."""

from __future__ import annotations

import numpy as np

from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.op import Trait, ZeroSign
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as e

LONGEST_SEARCH = 32
"""Nodes to visit before the sign counts as observable; the readers of a norm or a softmax need fewer."""


def is_unseen(graph: Graph, value: Value) -> bool:
    """Check that no output of the graph and no write depends on the signs of zeros in a value."""
    outputs = {id(out) for out in graph.outputs}
    worklist, visited = [value], {id(value)}
    while worklist:
        present = worklist.pop()
        if id(present) in outputs or len(visited) > LONGEST_SEARCH:
            return False
        for node, number in graph.uses(present):
            effect = node.op.sign_of_zero(number)
            if effect is ZeroSign.HIDDEN or _takes_no_zero(node, number):
                continue
            if effect is ZeroSign.SEEN:
                return False
            worklist += [v for v in node.results if id(v) not in visited]
            visited.update(id(v) for v in node.results)
    return True


def _takes_no_zero(node: Node, number: int) -> bool:
    """Check for the operand of a selection chosen only where it is nonzero, as in a ReLU."""
    if node.op is not e.where.op or number == 0:
        return False
    test, chosen = node.operands[0].node, node.operands[number]
    if len(test.operands) != 2 or test.operands[0] is not chosen or not _is_zero(test.operands[1]):
        return False
    return test.op.has(Trait.ELEMENTWISE) and all(_holds(test, zero) is (number == 2) for zero in (0.0, -0.0))


def _holds(test: Node, zero: float) -> bool:
    """Evaluate a comparison of a zero with 0."""
    x, y = (np.array(v, test.operands[0].dtype.numpy) for v in (zero, 0))
    return bool(test.op.evaluate((x, y), test.attrs)[0])


def _is_zero(value: Value) -> bool:
    node = value.node.operands[0].node if value.node.op is shape.broadcast_to.op else value.node
    return node.op is CONSTANT and node.attrs["value"].size == 1 and not node.attrs["value"].any()
