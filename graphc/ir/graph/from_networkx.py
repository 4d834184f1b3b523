"""The way back from plain networkx: nodes and edges that somebody edited, as a graph that is verified."""

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
    """See ``Graph.from_networkx``."""
    graph = _Reader(source).read()
    verify_graph(graph)
    return graph


class _Reader:
    """Emits one node of ``source`` after the other, each after those that it reads."""

    def __init__(self, source: Any):
        if not (hasattr(source, "is_multigraph") and source.is_multigraph() and source.is_directed()):
            raise VerifyError(
                f"{type(source).__name__} is no nx.MultiDiGraph, which has an edge for each operand",
                remedy="graph.to_networkx(), edited",
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
                remedy=f"add_node({RETURN!r}, op={RETURN!r}), and an edge to it with key=i for output i",
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
        """The op of a node; None for the one that returns."""
        if isinstance(key, Node):
            raise VerifyError(
                "the nodes are those of another graph, which networkx() shows", remedy="graph.to_networkx(), edited"
            )
        name = self.source.nodes[key].get("op")
        if name == RETURN:
            return None
        found = INPUT if name == INPUT.name else REGISTRY.get(name)
        if found is None:
            near = get_close_matches(str(name), REGISTRY, 3)
            what = "has no op" if name is None else f"has the op {name!r}, which is not registered"
            raise VerifyError(f"node {key!r} {what}", remedy=", ".join(near) if near else f"add_node({key!r}, op=...)")
        return found

    def argument(self, key: Hashable) -> None:
        data = self.source.nodes[key]
        if not isinstance(data.get("type"), TensorType):
            raise VerifyError(f"input {key!r} has no type", remedy="type=TensorType(dtype, shape)")
        value = self.graph.add_input(data["type"], _UNNAMED, **data.get("attrs", {}))
        self.define(key, (value,))

    def place(self, key: Hashable, operations: dict[Hashable, OpDef | None]) -> None:
        """Emits a node, after those that it reads and that stand behind it."""
        stack, opened = [key], set[Hashable]()
        while stack:
            present = stack[-1]
            waiting = [k for k in self.source.pred[present] if k not in self.values]
            op = operations[present]
            if present in self.values or op is None:
                stack.pop()
            elif not waiting:
                self.emit(stack.pop(), op)
            elif not opened.isdisjoint(waiting) or present in waiting:
                raise VerifyError(f"node {present!r} depends on itself")
            else:
                opened.add(present)
                stack.extend(reversed(waiting))

    def emit(self, key: Hashable, op: OpDef) -> None:
        data, operands = self.source.nodes[key], self.operands(key)
        location = data.get("location") or UNKNOWN
        try:
            found = emit(self.graph, op, operands, data.get("attrs") or {}, location, _UNNAMED)
        except GraphcError as error:
            raise VerifyError(
                f"node {key!r}: {error.what}", where=error.where, origin=error.origin, remedy=error.remedy
            ) from error
        if op is CONSTANT and found[0].is_scalar_constant:
            self.values[key] = found
            return
        self.define(key, found)

    def define(self, key: Hashable, values: tuple[Value, ...]) -> None:
        names = self.source.nodes[key].get("names") or []
        if len(names) != len(values):
            names = [str(key)] if len(values) == 1 else [f"{key}.{i}" for i in range(len(values))]
        for value, name in zip(values, names, strict=True):
            self.graph.rename(value, name)
        self.values[key] = values

    def operands(self, key: Hashable) -> list[Value]:
        """What a node reads, in the order of the keys of its edges."""
        found: dict[int, Value] = {}
        for before, _, number, data in self.source.in_edges(key, keys=True, data=True):
            values, result = self.values.get(before, ()), data.get("result", 0)
            if number in found:
                raise VerifyError(f"node {key!r} has operand {number} twice", remedy="remove one of the edges")
            if not (isinstance(result, int) and 0 <= result < len(values)):
                raise VerifyError(f"node {key!r} reads result {result} of {before!r}, which has {len(values)}")
            found[number] = values[result]
        missing = [i for i in range(len(found)) if i not in found]
        if missing:
            given = ", ".join(map(str, found))
            raise VerifyError(
                f"node {key!r} lacks operand {missing[0]}; its edges have the keys {given}",
                remedy="add_edge(value, node, key=number of the operand, result=0)",
            )
        return [found[i] for i in range(len(found))]


_UNNAMED = "?"
"""Name that values have between their making and their naming."""
