"""Conversion from plain networkx: build and verify a graph from edited nodes and edges."""

from __future__ import annotations

from collections.abc import Hashable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from graphc.base.errors import GraphcError, VerifyError
from graphc.base.location import UNKNOWN
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, INPUT, RETURN, Graph, Node, Value
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import REGISTRY, OpDef
from graphc.ir.types import TensorType

if TYPE_CHECKING:
    import networkx as nx


def from_networkx(source: nx.MultiDiGraph) -> Graph:
    """Implement ``Graph.from_networkx``."""
    graph = _Converter(source).read()
    verify_graph(graph)
    return graph


class _Converter:
    """Converter that emits the nodes of ``source``, each after its operands."""

    def __init__(self, source: Any):
        if not (hasattr(source, "is_multigraph") and source.is_multigraph() and source.is_directed()):
            raise VerifyError(
                f"{type(source).__name__} is not an nx.MultiDiGraph, which has an edge for each operand",
                remedy="edit the result of graph.to_networkx()",
            )
        self.source = source
        self.graph = Graph(source.graph.get("name") or "main")
        self.values: dict[Hashable, tuple[Value, ...]] = {}

    def read(self) -> Graph:
        operations = {key: self.operation(key) for key in self.source.nodes}
        ends = [key for key, op in operations.items() if op is None]
        if len(ends) != 1:
            raise VerifyError(
                f"{len(ends)} nodes have the op {RETURN!r}, whose operands are the outputs; there must be one",
                remedy=f"call add_node({RETURN!r}, op={RETURN!r}), and add an edge to it with key=i for output i",
            )
        if self.source.out_degree(ends[0]):
            raise VerifyError(f"node {ends[0]!r} returns, so nothing reads it", remedy="remove the edges from it")
        for key, op in operations.items():
            if op is INPUT:
                self.argument(key)
        for key, op in operations.items():
            if op is not INPUT:
                self.place(key, operations)
        self.graph.set_outputs(self.operands(ends[0]))
        self.graph.bound = dict(self.source.graph.get("bound") or {})
        return self.graph

    def operation(self, key: Hashable) -> OpDef | None:
        """Return the op of a node, or None for the return node."""
        if isinstance(key, Node):
            raise VerifyError(
                "the nodes belong to another graph, as networkx() shows it",
                remedy="edit the result of graph.to_networkx()",
            )
        name = self.source.nodes[key].get("op")
        if name == RETURN:
            return None
        op = INPUT if name == INPUT.name else REGISTRY.get(name)
        if op is None:
            near = get_close_matches(str(name), REGISTRY, 3)
            what = "has no op" if name is None else f"has the op {name!r}, which is not registered"
            raise VerifyError(
                f"node {key!r} {what}", remedy=f"use {' or '.join(near)}" if near else f"call add_node({key!r}, op=...)"
            )
        return op

    def argument(self, key: Hashable) -> None:
        data = self.source.nodes[key]
        if not isinstance(data.get("type"), TensorType):
            raise VerifyError(f"input {key!r} has no type", remedy="pass type=TensorType(dtype, shape)")
        value = self.graph.add_input(data["type"], _UNNAMED, **data.get("attrs", {}))
        self.define(key, (value,))

    def place(self, key: Hashable, operations: dict[Hashable, OpDef | None]) -> None:
        """Emit a node, after its operands."""
        stack, open_nodes = [key], set[Hashable]()
        while stack:
            present = stack[-1]
            waiting = [k for k in self.source.pred[present] if k not in self.values]
            op = operations[present]
            if present in self.values or op is None:
                stack.pop()
            elif not waiting:
                self.emit(stack.pop(), op)
            elif not open_nodes.isdisjoint(waiting) or present in waiting:
                raise VerifyError(f"node {present!r} depends on itself")
            else:
                open_nodes.add(present)
                stack.extend(reversed(waiting))

    def emit(self, key: Hashable, op: OpDef) -> None:
        data, operands = self.source.nodes[key], self.operands(key)
        location = data.get("location") or UNKNOWN
        try:
            results = emit(self.graph, op, operands, data.get("attrs") or {}, location, _UNNAMED)
        except GraphcError as error:
            raise VerifyError(
                f"node {key!r}: {error.what}", where=error.where, origin=error.origin, remedy=error.remedy
            ) from error
        if op is CONSTANT and results[0].is_scalar_constant:
            self.values[key] = results
            return
        self.define(key, results)

    def define(self, key: Hashable, values: tuple[Value, ...]) -> None:
        names = self.source.nodes[key].get("names") or []
        if len(names) != len(values):
            names = [str(key)] if len(values) == 1 else [f"{key}.{i}" for i in range(len(values))]
        for value, name in zip(values, names, strict=True):
            self.graph.rename(value, name)
        self.values[key] = values

    def operands(self, key: Hashable) -> list[Value]:
        """Return the operands of a node, in the order of the keys of its edges."""
        by_number: dict[int, Value] = {}
        for before, _, number, data in self.source.in_edges(key, keys=True, data=True):
            values, result = self.values.get(before, ()), data.get("result", 0)
            if number in by_number:
                raise VerifyError(f"node {key!r} has operand {number} twice", remedy="remove one of the edges")
            if not (isinstance(result, int) and 0 <= result < len(values)):
                raise VerifyError(f"node {key!r} reads result {result} of {before!r}, which has {len(values)}")
            by_number[number] = values[result]
        missing = [i for i in range(len(by_number)) if i not in by_number]
        if missing:
            keys = ", ".join(map(str, by_number))
            raise VerifyError(
                f"node {key!r} lacks operand {missing[0]}; its edges have the keys {keys}",
                remedy="call add_edge(value, node, key=number of the operand, result=0)",
            )
        return [by_number[i] for i in range(len(by_number))]


_UNNAMED = "?"
"""Temporary name of values before they are named."""
