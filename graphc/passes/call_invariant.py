"""What is call-invariant: computed from weights and constants alone, which a compiled function does once and keeps."""

from __future__ import annotations

from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value, has_sizes, input_class
from graphc.ir.op import Trait
from graphc.passes.operand_access import is_virtual

MAX_NODES = 64
"""A value computed by more nodes than this is not looked into."""
CALL_INVARIANT = frozenset({"constant", "weight"})
"""Classes of what does not change from call to call."""


def leaf_classes(value: Value) -> set[str] | None:
    """Classes of what a value is computed from: ``constant``, and those of graph inputs; None when an effect is among
    it, a size that each call has of its own, or too many nodes."""
    found: set[str] = set()
    seen: set[Node] = set()
    stack = [value.node]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if len(seen) > MAX_NODES or not (node.op is INPUT or node.op.has(Trait.PURE)) or has_sizes(node):
            return None
        if not node.operands:
            found.add(input_class(node.results[0]) or "constant")
        stack.extend(v.node for v in node.operands)
    return found


def is_call_invariant(value: Value) -> bool:
    """Whether a value is computed from weights and constants alone, so that it costs nothing at run time."""
    classes = leaf_classes(value)
    return classes is not None and classes <= CALL_INVARIANT


def call_invariant_nodes(graph: Graph, costs: FusionCosts = DEFAULT.fusion) -> set[Node]:
    """Nodes that depend on weights and constants alone and are worth keeping; none in a graph without weights."""
    if not any(input_class(v) == "weight" for v in graph.inputs):
        return set()
    found = {v.node for v in graph.inputs if input_class(v) == "weight"}
    for node in graph.nodes():
        if node.op is CONSTANT or (_depends_on(node, found) and (is_virtual(node) or _is_worth_keeping(node, costs))):
            found.add(node)
    return found


def _depends_on(node: Node, known: set[Node]) -> bool:
    """Whether a node computes something from nothing but known nodes."""
    if not node.operands or not node.op.has(Trait.PURE) or has_sizes(node):
        return False
    return all(v.node in known for v in node.operands)


def _is_worth_keeping(node: Node, costs: FusionCosts) -> bool:
    given, made = (sum(v.type.nbytes for v in values) for values in (node.operands, node.results))
    return made <= costs.call_invariant_growth * given or made <= costs.call_invariant_bytes
