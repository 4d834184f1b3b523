"""Graphs cut in parts that run one after the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from graphc.base.records import NamedTuple
from graphc.base.sizes.named_dims import dimensions
from graphc.base.sizes.size import Dimension, hint
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import (
    CONSTANT,
    INPUT,
    Graph,
    Node,
    Value,
    has_sizes,
    input_class,
    input_equals,
    input_role,
    node_sizes,
)
from graphc.ir.graph.interpret import live_nodes
from graphc.ir.op import Trait

SMALL = 64
"""Elements of the largest value that is cheap to compute."""


class Part(NamedTuple):
    """A part of a graph as a graph of its own, and the values of the whole graph at its ends."""

    graph: Graph
    inputs: tuple[Value, ...]
    """The values of its inputs of class input, in order. Params and states keep their paths."""
    outputs: tuple[Value, ...]


class End(NamedTuple):
    """A scalar of a graph that is read between two parts."""

    value: Value
    size: Value | None
    """The input that equals it after it was read; None for a condition of everything traced after it."""


def stages(graph: Graph, ends: Sequence[End]) -> list[list[int]]:
    """Return groups of ends, by index, of which ``cut`` may compute each in one part.

    A size comes before the ends that depend on it. Everything after a condition is in later parts than the condition,
    apart from ends that are cheap to compute.
    """
    levels: list[int] = []
    late: list[tuple[Node, Mapping[str, Dimension], int]] = []
    condition = -1
    """The last level with a condition."""
    for end in ends:
        live = live_nodes(graph, [end.value])
        names = dimensions(size for node in live for size in node_sizes(node))
        needed = [own + 1 for node, dims, own in late if node in live or dims.keys() & names.keys()]
        level = max([0, condition + (not all(map(is_small, live))), *needed])
        levels.append(level)
        if end.size is None:
            condition = level
        else:
            late.append((end.size.node, dimensions([input_equals(end.size)]), level))
    return [[i for i, own in enumerate(levels) if own == level] for level in range(max(levels) + 1)]


def is_small(node: Node) -> bool:
    """Return whether a node computes a few integers or bools."""
    return all(v.dtype.kind in "iub" and all(type(n) is int for n in v.shape) for v in node.results) and all(
        math.prod(v.shape) <= SMALL for v in node.results
    )


def cut(graph: Graph, groups: Sequence[Sequence[End]]) -> list[Part]:
    """Cut a graph after each group of ends. Return the parts, of which the last one has the outputs.

    The first outputs of a part are its ends; further ones are the values that later parts take. The first part takes
    all inputs that exist, so that its program checks them. So do parts with symbolic sizes, which the inputs tell, and
    the last part of a graph with assumptions. Constants and small views are computed in each part that reads them;
    effects are in the last part, checks where they can be computed. A part keeps the assumptions about its sizes.
    """
    part_of = _numbered(graph, groups)
    late = [[end.size for end in group if end.size is not None] for group in groups]
    inputs = [v for v in graph.inputs if input_class(v) == "input" and not any(v in group for group in late)]
    parts: list[Part] = []
    taken: list[Value] = []
    for number in reversed(range(len(groups) + 1)):
        outputs = [*graph.outputs]
        if number < len(groups):
            ends = [end.value for end in groups[number]]
            outputs = [*ends, *(v for v in taken if part_of[v.node] == number and v not in ends)]
        nodes, crossing, used = _reached(graph, part_of, number, outputs)
        copier = SubgraphCopier(f"{graph.name}_{number}", nodes)
        plain = [*inputs, *(v for group in late[:number] for v in group)]
        needs_all = not number or (number == len(groups) and graph.assumptions)
        if not (needs_all or any(map(has_sizes, [*nodes, *(v.node for v in (*used, *crossing))]))):
            plain = [v for v in plain if v in used]
        plain += crossing
        for value in plain:
            copier.add_input(value, plain=True)
        for value in graph.inputs:
            if value in used and input_class(value) != "input":
                copier.add_input(value)
        copier.copy(graph, outputs)
        own = copier.target.dims.keys()
        copier.target.assumptions = tuple([a for a in graph.assumptions if dimensions((a.a, a.b)).keys() <= own])
        copier.target.classes = graph.classes
        parts.insert(0, Part(copier.target, tuple(plain), tuple(outputs)))
        taken += [v for v in crossing if v not in taken]
    return parts


def _numbered(graph: Graph, groups: Sequence[Sequence[End]]) -> dict[Node, int]:
    """Return the number of the part that computes each node."""
    part_of: dict[Node, int] = {v.node: 0 for v in graph.inputs}
    position = {node: i for i, node in enumerate(graph.nodes())}
    for number, group in enumerate(groups):
        live = live_nodes(graph, [end.value for end in group])
        later = [end for group in groups[number:] for end in group]
        unknown = [dimensions([input_equals(end.size)]) for end in later if end.size is not None]
        # NOTE: a check that was traced after a condition is one of its branch.
        limit = min((position.get(end.value.node, -1) for end in later if end.size is None), default=len(position))
        for node, i in position.items():
            is_ready = node.op.has(Trait.CHECK) and i < limit and all(v.node in part_of for v in node.operands)
            if node in live or (is_ready and not _mentions(node, unknown)):
                part_of.setdefault(node, number)
    effects = [v for node in graph.nodes() if not node.op.has(Trait.PURE) for v in node.results]
    for node in live_nodes(graph, [*graph.outputs, *effects]):
        part_of.setdefault(node, len(groups))
    return part_of


def _mentions(node: Node, dims: Sequence[Mapping[str, Dimension]]) -> bool:
    """Return whether sizes of a node depend on one of ``dims``."""
    names = dimensions(node_sizes(node))
    return any(name in names for group in dims for name in group)


def _reached(
    graph: Graph, part_of: dict[Node, int], number: int, outputs: Sequence[Value]
) -> tuple[set[Node], list[Value], set[Value]]:
    """Return the nodes of a part, the values that it takes from earlier parts, and the inputs that it reads."""
    nodes = {node for node, part in part_of.items() if part == number and node.op is not INPUT}
    crossing: dict[Value, None] = {}
    used: set[Value] = set()
    stack = [*outputs, *(v for node in nodes for v in node.operands)]
    visited: set[Value] = set()
    while stack:
        value = stack.pop()
        if value in visited:
            continue
        visited.add(value)
        if value.node.op is INPUT:
            used.add(value)
        elif part_of[value.node] < number:
            if not is_cheap(value):
                crossing[value] = None
                continue
            nodes.add(value.node)
            stack += value.node.operands
    return nodes, sorted(crossing, key=lambda v: (v.node.id, v.index)), used


def is_cheap(value: Value) -> bool:
    """Return whether a value is cheaper to compute again than to pass on: constants, and views that read no more."""
    node = value.node
    if node.op.has(Trait.GENERATOR) or node.op is CONSTANT:
        return True
    return node.op.has(Trait.VIEW) and all(hint(v.type.nbytes) <= hint(value.type.nbytes) for v in node.operands)


class SubgraphCopier:
    """Copier of some nodes of a graph into a new one."""

    def __init__(self, name: str, nodes: set[Node]):
        self.target = Graph(name)
        self.nodes = nodes
        self.values: dict[Value, Value] = {}

    def add_input(self, value: Value, plain: bool = False) -> None:
        """Make ``value`` an argument; with ``plain``, of class input and without path."""
        role = ("input", "", input_equals(value)) if plain else input_role(value)
        self.values[value] = self.target.add_input(value.type, value.name, *role)

    def copy(self, graph: Graph, outputs: Sequence[Value]) -> None:
        """Copy the nodes in order; ``outputs`` are values of the old graph."""
        for node in graph.nodes():
            if node not in self.nodes or all(r in self.values for r in node.results):
                continue
            name = node.results[0].name if len(node.results) == 1 else node.results[0].name.removesuffix(".0")
            operands = [self.values[v] for v in node.operands]
            results = emit(self.target, node.op, operands, node.attrs, node.location, name)
            for old, new in zip(node.results, results, strict=True):
                self.values.setdefault(old, new)
        self.target.set_outputs([self.values[v] for v in outputs])
