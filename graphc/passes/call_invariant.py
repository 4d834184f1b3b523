"""Call-invariant values: computed from weights and constants alone, once per compiled function, then reused."""

from __future__ import annotations

import numpy as np

from graphc.base.errors import IndexRangeError
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value, has_sizes, input_class
from graphc.ir.op import Trait
from graphc.passes.operand_access import is_virtual

MAX_NODES = 64
"""Nodes that the search behind a value visits before it gives up."""
CALL_INVARIANT = frozenset({"constant", "weight"})
"""Leaf classes whose values do not change from call to call."""


def leaf_classes(value: Value) -> set[str] | None:
    """Return the classes of a value's leaves: ``constant`` and the classes of graph inputs. Return None when the value
    depends on an effect, on a size that differs between calls, or on more than MAX_NODES nodes."""
    classes: set[str] = set()
    visited: set[Node] = set()
    stack = [value.node]
    while stack:
        node = stack.pop()
        if node in visited:
            continue
        visited.add(node)
        if len(visited) > MAX_NODES or not (node.op is INPUT or node.op.has(Trait.PURE)) or has_sizes(node):
            return None
        if not node.operands:
            classes.add(input_class(node.results[0]) or "constant")
        stack.extend(v.node for v in node.operands)
    return classes


def is_call_invariant(value: Value) -> bool:
    """Check whether a value depends on weights and constants alone, and hence costs nothing at run time."""
    classes = leaf_classes(value)
    return classes is not None and classes <= CALL_INVARIANT


def constant_array(value: Value) -> np.ndarray | None:
    """Return the elements of a value that depends on constants alone, such as weights that are stored in int8. Return
    None for other values, and where an index is out of range, which a check reports at run time."""
    if leaf_classes(value) != {"constant"}:
        return None
    arrays: dict[Value, np.ndarray] = {}
    try:
        return _evaluated(value, arrays)
    except IndexRangeError:
        return None


def _evaluated(value: Value, arrays: dict[Value, np.ndarray]) -> np.ndarray:
    """Return a value's elements, which it keeps with those of the values before it."""
    node = value.node
    if value not in arrays:
        operands = [_evaluated(v, arrays) for v in node.operands]
        elements = [node.attrs["value"]] if node.op is CONSTANT else node.op.evaluate(operands, node.attrs)
        arrays.update(zip(node.results, map(np.asarray, elements), strict=True))
    return arrays[value]


def call_invariant_nodes(graph: Graph, costs: FusionCosts = DEFAULT.fusion) -> set[Node]:
    """Return the nodes that depend on weights and constants alone and are worth storing; empty for a graph without
    weights."""
    if not any(input_class(v) == "weight" for v in graph.inputs):
        return set()
    invariant = {v.node for v in graph.inputs if input_class(v) == "weight"}
    for node in graph.nodes():
        if node.op is CONSTANT or (
            _depends_on(node, invariant) and (is_virtual(node) or _is_worth_keeping(node, costs))
        ):
            invariant.add(node)
    return invariant


def _depends_on(node: Node, invariant: set[Node]) -> bool:
    """Check whether a node is a pure function of call-invariant nodes only."""
    if not node.operands or not node.op.has(Trait.PURE) or has_sizes(node):
        return False
    return all(v.node in invariant for v in node.operands)


def _is_worth_keeping(node: Node, costs: FusionCosts) -> bool:
    read, stored = (sum(v.type.nbytes for v in values) for values in (node.operands, node.results))
    return stored <= costs.call_invariant_growth * read or stored <= costs.call_invariant_bytes
