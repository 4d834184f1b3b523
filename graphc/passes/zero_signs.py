"""Signs of zeros: where nobody can see whether a value is 0 or -0."""

from __future__ import annotations

import numpy as np

from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.op import Trait, ZeroSign
from graphc.ops import elementwise as e
from graphc.ops import shape

LONGEST_SEARCH = 32
"""Nodes that are looked at before the sign counts as seen; what a norm or a softmax hides, it hides in fewer."""


def is_unseen(graph: Graph, value: Value) -> bool:
    """True when no output of the graph, and nothing that the graph writes, depends on the signs of zeros in a value."""
    outputs = {id(out) for out in graph.outputs}
    waiting, seen = [value], {id(value)}
    while waiting:
        present = waiting.pop()
        if id(present) in outputs or len(seen) > LONGEST_SEARCH:
            return False
        for node, number in graph.uses(present):
            shown = node.op.sign_of_zero(number)
            if shown is ZeroSign.HIDDEN or _takes_no_zero(node, number):
                continue
            if shown is ZeroSign.SEEN:
                return False
            waiting += [v for v in node.results if id(v) not in seen]
            seen.update(id(v) for v in node.results)
    return True


def _takes_no_zero(node: Node, number: int) -> bool:
    """True for the operand of a selection that is taken only where it is more or less than 0, as a ReLU's is."""
    if node.op is not e.where.op or number == 0:
        return False
    test, chosen = node.operands[0].node, node.operands[number]
    if len(test.operands) != 2 or test.operands[0] is not chosen or not _is_zero(test.operands[1]):
        return False
    return test.op.has(Trait.ELEMENTWISE) and all(_holds(test, zero) is (number == 2) for zero in (0.0, -0.0))


def _holds(test: Node, zero: float) -> bool:
    """What a test says of a zero and 0."""
    x, y = (np.array(v, test.operands[0].dtype.numpy) for v in (zero, 0))
    return bool(test.op.evaluate((x, y), test.attrs)[0])


def _is_zero(value: Value) -> bool:
    node = value.node.operands[0].node if value.node.op is shape.broadcast_to.op else value.node
    return node.op is CONSTANT and node.attrs["value"].size == 1 and not node.attrs["value"].any()
