"""Graph verifier: every type rule run again, operands before their use, edges, names, state and effects."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.errors import GraphcError, VerifyError
from graphc.ir.excerpt import excerpt
from graphc.ir.graph.graph import INPUT, Graph, Node, Value, input_class
from graphc.ir.graph.text import graph_lines
from graphc.ir.op import INPUT_CLASSES, REGISTRY, OpDef, Trait, Types
from graphc.ir.types import TensorType


def verify_graph(graph: Graph) -> None:
    """Raise VerifyError, with the text around the faulty node, when the graph or a sub-graph breaks a rule:

    - ops are registered, attributes normalized, and the type rule gives the types of the results;
    - operands belong to the graph and are computed before their use, and the edges mirror them;
    - names are unique, equal scalar constants are interned, outputs belong to the graph;
    - paths of params and states are unique; each is written at most once, and nothing else is written;
    - effects are in creation order.
    """
    stack = [graph]
    while stack:
        present = stack.pop()
        _Verifier(present).run()
        stack.extend(sub_graphs(present))


def sub_graphs(graph: Graph) -> Iterator[Graph]:
    """Yield the graphs in the attributes of nodes, without nested ones."""
    for node in graph.nodes_of(lambda op: any(attr.kind == "graph" for attr in op.attrs)):
        for attr in node.op.attrs:
            if attr.kind == "graph" and node.attrs[attr.name] is not None:
                yield node.attrs[attr.name]


def foreign_ops(graph: Graph) -> set[OpDef]:
    """Return the user-defined ops of a graph, sub-graphs included."""
    ops: set[OpDef] = set()
    stack = [graph]
    while stack:
        present = stack.pop()
        ops.update(node.op for node in present.nodes_of(lambda op: bool(op.module)))
        stack.extend(sub_graphs(present))
    return ops


class _Verifier:
    """Visitor of the nodes in order; ``present`` is the node to blame for an error."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.edges = graph.edges()
        self.edge_count = sum(len(readers) for readers in self.edges.values())
        self.present: Node | None = None
        self.defined: set[Value] = set()
        self.names: set[str] = set()
        self.scalars: set[tuple[str, bytes]] = set()
        self.written: set[Value] = set()
        self.last_effect: Node | None = None
        self.inferred: dict[Hashable, Types] = {}
        """Results of type rules by op and types, for ops without attributes and shapes of numbers."""

    def run(self) -> None:
        try:
            self.inputs()
            for node in self.graph.nodes():
                self.present = node
                self.node(node)
            self.present = None
            self.outputs()
            _ = self.graph.dims  # Raises where two dimensions have one name.
        except GraphcError as error:
            raise self.located(error) from None

    def located(self, error: GraphcError) -> VerifyError:
        """Return the same error with the text around the current node and the user's line."""
        origin = self.present.location.describe() if self.present is not None else None
        try:
            lines = graph_lines(self.graph)
        except GraphcError:  # A cycle: the nodes have no order to print.
            return VerifyError(f"@{self.graph.name}: {error.what}", origin=origin or None)
        number = next((i for i, (_, node) in enumerate(lines) if node is not None and node is self.present), 0)
        where = excerpt([line for line, _ in lines], number, error.what)
        return VerifyError(f"@{self.graph.name}: {error.what}", where=where, origin=origin or None, remedy=error.remedy)

    # ---- inputs, nodes, outputs

    def inputs(self) -> None:
        paths: set[str] = set()
        in_graph = sum(1 for node in self.edges if node.op is INPUT)
        _require(in_graph == len(self.graph.inputs), f"{in_graph} input nodes, {len(self.graph.inputs)} inputs")
        for value in self.graph.inputs:
            cls, path = value.node.attrs["cls"], value.node.attrs["path"]
            _require(value.node in self.graph, f"input %{value.name} belongs to another graph")
            _require(cls in INPUT_CLASSES, f"%{value.name}: class {cls} is not one of {', '.join(INPUT_CLASSES)}")
            _require(cls == "input" or path not in paths, f"%{value.name}: another input has the path {path!r}")
            if cls != "input":
                paths.add(path)
            if "equals" in value.node.attrs:
                good = cls == "input" and value.type == TensorType(int64)
                _require(good, f"%{value.name} is {cls} {value.type}: a size is given by an input of type i64[]")
            self.define(value)

    def outputs(self) -> None:
        for i, value in enumerate(self.graph.outputs):
            _require(value in self.defined, f"output {i} (%{value.name}) does not belong to the graph")
        _require(not self.edge_count, f"{self.edge_count} more edges than operands")

    def define(self, value: Value) -> None:
        if value.name in self.names:
            raise VerifyError(f"two values are called %{value.name}")
        if value.node.results[value.index] is not value:
            raise VerifyError(f"%{value.name} is not result {value.index} of its node")
        self.names.add(value.name)
        self.defined.add(value)

    def node(self, node: Node) -> None:
        self.operands(node)
        self.types(node)
        for value in node.results:
            self.define(value)
        if node.results and node.results[0].is_scalar_constant:
            self.scalar(node)
        if node.op.has(Trait.STATE_WRITE):
            self.state_write(node)
        # NOTE: tokens order host calls, and all checks are made before anything is written.
        if node.op.has(Trait.EFFECT) and not node.op.has(Trait.HOST) and not node.op.has(Trait.CHECK):
            self.effect(node)

    def operands(self, node: Node) -> None:
        for key, value in enumerate(node.operands):
            if value.node not in self.edges:
                raise VerifyError(f"operand {key} (%{value.name}) belongs to another graph")
            if value not in self.defined:
                raise VerifyError(f"operand {key} (%{value.name}) is not computed before its use")
            if self.edges[value.node].get((node, key)) != value.index:
                raise VerifyError(f"the edges of {node.op.name} do not mirror its operands")
        self.edge_count -= len(node.operands)

    def types(self, node: Node) -> None:
        op = node.op
        registered = REGISTRY.get(op.name)
        if registered is not op:
            is_redefined = op.module and registered is not None
            reason = "was defined again since the graph was made" if is_redefined else "is not registered"
            raise VerifyError(f"op {op.name} {reason}")
        if op.attrs or node.attrs:
            names = [a.name for a in op.attrs]
            if list(node.attrs) != names:
                raise VerifyError(f"{op.name} has the attributes {list(node.attrs)}, not {names}")
        types, stated = self.infer(node), tuple([r.type for r in node.results])
        if types != stated:
            raise VerifyError(f"{op.name} gives ({_join(types)}), the node says ({_join(stated)})")

    def infer(self, node: Node) -> Types:
        """Return the types that the type rule gives to the results."""
        types = tuple([v.type for v in node.operands])
        if node.attrs or not all([type(extent) is int for t in types for extent in t.shape]):
            return node.op.result_types(types, node.attrs)
        key = node.op, *[entry for t in types for entry in (t.dtype, t.shape)]
        results = self.inferred.get(key)
        if results is None:
            results = self.inferred[key] = node.op.result_types(types, node.attrs)
        return results

    def scalar(self, node: Node) -> None:
        array: np.ndarray = node.attrs["value"]
        key = (array.dtype.str, array.tobytes())
        _require(key not in self.scalars, f"scalar constant {node.results[0].name} exists twice")
        self.scalars.add(key)

    def state_write(self, node: Node) -> None:
        target = node.operands[0]
        good = input_class(target) in ("param", "state")
        _require(good, f"{node.op.name} writes to %{target.name}, which is not a param or state argument")
        _require(target not in self.written, f"%{target.name} is written twice")
        self.written.add(target)

    def effect(self, node: Node) -> None:
        last = self.last_effect
        _require(last is None or last.id < node.id, f"{node.op.name} was made before the effect that it follows")
        self.last_effect = node


def _join(types: tuple[object, ...]) -> str:
    return ", ".join(map(str, types))


def _require(condition: object, message: str) -> None:
    if not condition:
        raise VerifyError(message)
