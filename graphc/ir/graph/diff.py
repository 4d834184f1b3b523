"""Structural comparison of graphs: names, locations and the order of independent nodes do not count."""

from __future__ import annotations

import difflib
import hashlib
from collections import defaultdict

from graphc.ir.graph.graph import INPUT, Graph, Node, Value
from graphc.ir.graph.text import print_dims, print_head, print_node, print_return
from graphc.ir.op import Trait

Names = dict[Value, str]


def diff_graphs(a: Graph, b: Graph) -> str:
    """Return a unified diff of the texts, empty when the graphs have the same structure.

    Values of ``b`` that are computed as in ``a``, or have the same position, get their name from ``a``; other values of
    ``b`` have a ``+`` before their name. Names of graphs and locations are left out.
    """
    before, after = _in_text_order(a), _in_text_order(b)
    a_names = {v: f"%{v.name}" for v in _values(a, before)}
    b_names = _pair(a, b, before, after, a_names)
    old, new = _lines(a, before, a_names), _lines(b, after, b_names)
    return "\n".join(difflib.unified_diff(old, new, "a", "b", lineterm="", n=2))


def structure_keys(graph: Graph) -> dict[Value, str]:
    """Return a digest per value of its computation from the inputs; equal digests mean equal computations."""
    keys = {v: f"input {i}" for i, v in enumerate(graph.inputs)}
    for node in graph.nodes():
        text = print_node(node, lambda v: keys.get(v, "_"), _canonical_text)
        for i, value in enumerate(node.results):
            keys[value] = hashlib.sha256(f"{i} {text}".encode()).hexdigest()
    return keys


def _in_text_order(graph: Graph) -> list[Node]:
    """Return the nodes in an order that depends on structure only: operands of effects, then of outputs, then the
    rest."""
    effects = [n for n in graph.nodes() if n.op.has(Trait.EFFECT)]
    roots = [*effects, *(v.node for v in graph.outputs), *graph.nodes()]
    placed: dict[Node, None] = {}
    stack = list(reversed(roots))
    while stack:
        node = stack[-1]
        waiting = [v.node for v in node.operands if v.node not in placed]
        if node in placed or not waiting:
            placed.setdefault(stack.pop())
        else:
            stack.extend(reversed(waiting))
    return [n for n in placed if n.op is not INPUT]


def _values(graph: Graph, nodes: list[Node]) -> list[Value]:
    return [*graph.inputs, *(v for node in nodes for v in node.results)]


def _lines(graph: Graph, nodes: list[Node], names: Names) -> list[str]:
    def name(value: Value) -> str:
        return names[value]

    head = "graph(" + print_head(graph, name).replace(",\n    ", ", ").replace("\n", "").split("(", 1)[1]
    printed = [n for n in nodes if not (n.results and n.results[0].is_scalar_constant)]
    body = [line for n in printed for line in print_node(n, name, _canonical_text).split("\n")]
    return [*print_dims(graph), head, *(f"  {line}" for line in body), f"  {print_return(graph, name)}", "}"]


def _canonical_text(graph: Graph) -> str:
    """Format a sub-graph with numbers for names."""
    nodes = _in_text_order(graph)
    return "\n".join(_lines(graph, nodes, {v: f"%{i}" for i, v in enumerate(_values(graph, nodes))}))


def _pair(a: Graph, b: Graph, before: list[Node], after: list[Node], a_names: Names) -> Names:
    """Return names for the values of ``b``."""
    paired: dict[Value, Value] = dict(zip(b.inputs, a.inputs, strict=False))
    matched = set(paired.values())
    a_keys, b_keys = structure_keys(a), structure_keys(b)
    equal: dict[str, list[Value]] = defaultdict(list)
    for value in reversed(_values(a, before)):
        equal[a_keys[value]].append(value)
    for value in _values(b, after):
        if value not in paired and equal[b_keys[value]]:
            paired[value] = equal[b_keys[value]].pop()
            matched.add(paired[value])
    _pair_positions(list(zip(a.outputs, b.outputs, strict=False)), paired, matched)
    used = set(a_names.values())
    return {v: a_names[paired[v]] if v in paired else _own(v, used) for v in _values(b, after)}


def _pair_positions(stack: list[tuple[Value, Value]], paired: dict[Value, Value], matched: set[Value]) -> None:
    """Pair results of the same op in the same position, from the outputs up."""
    while stack:
        old, new = stack.pop()
        if new in paired or old in matched or old.node.op is not new.node.op or old.index != new.index:
            continue
        paired[new] = old
        matched.add(old)
        stack.extend(zip(old.node.operands, new.node.operands, strict=False))


def _own(value: Value, used: set[str]) -> str:
    name = f"%+{value.name}"
    while name in used:
        name += "+"
    used.add(name)
    return name
