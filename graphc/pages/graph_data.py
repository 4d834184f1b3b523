"""Graphs as the plain data of a page; each distinct node is stored once for all graphs."""

from __future__ import annotations

import json
import linecache
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from graphc.base.location import Location
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_class, input_path
from graphc.ir.graph.text import print_attrs, print_operand
from graphc.ir.op import OpDef, Trait
from graphc.pages.called_functions import Called, called_functions
from graphc.passes.base import held_graphs

Record = dict[str, Any]
"""Data of a node: ``key`` identifies it in all graphs; ``op``, ``kind`` (its colour), ``path`` (the groups around it),
``results`` ([name, type] each), ``operands`` (names of results, or literals), and optionally ``attrs``, ``line`` (the
user's file and line), ``weights`` (it is memory, shown with its readers), ``called`` (number of groups at the end of
the path that are functions, loops or branches; the others are modules), ``function`` (the function whose call made
it)."""
LONGEST = 400
"""Characters of an attribute that are shown."""
MEMORY = frozenset({"param", "state", "weight"})
_KINDS = (
    (Trait.STATE_READ | Trait.STATE_WRITE, "state"),
    (Trait.CONTRACTION, "product"),
    (Trait.VIEW, "view"),
    (Trait.REDUCTION, "reduce"),
)


def kind_of(op: OpDef) -> str:
    """Return the kind of box for an op, which selects its colour."""
    if op is CONSTANT:
        return "constant"
    return next((kind for trait, kind in _KINDS if op.has_any(trait)), "op")


class GraphCollector:
    """Collector of graphs, with shared records of equal nodes.

    The first graph decides which lines of code are functions (see ``called_functions``): later ones have fewer nodes.
    """

    def __init__(self) -> None:
        self._called: Mapping[Location, Called] = MappingProxyType({})
        self.records: list[Record] = []
        self.graphs: list[list[int]] = []
        """Indices of records, in the order of the nodes."""
        self.lines: dict[str, str] = {}
        """Source lines of the user, by file and line."""
        self._numbers: dict[str, int] = {}
        self._lists: dict[tuple[int, ...], int] = {}

    def add(self, graph: Graph) -> int:
        """Add the current state of a graph and return its index; equal graphs have one index."""
        if not self.graphs:
            self._called = called_functions(graph)
        records = [*_inputs(graph), *self._nodes(graph, "", ())]
        for index, value in enumerate(graph.outputs):
            name = "output" if len(graph.outputs) == 1 else f"output {index}"
            records.append(_end(f"output:{index}", name, [value], "", ()))
        numbers = tuple(map(self._number, records))
        if numbers not in self._lists:
            self._lists[numbers] = len(self.graphs)
            self.graphs.append(list(numbers))
        return self._lists[numbers]

    def _number(self, record: Record) -> int:
        text = json.dumps(record)
        if text not in self._numbers:
            self._numbers[text] = len(self.records)
            self.records.append(record)
        return self._numbers[text]

    def _nodes(self, graph: Graph, prefix: str, enclosing: tuple[str, ...]) -> list[Record]:
        """Return the nodes of a graph and of the graphs in their attributes; ``prefix`` precedes the names of
        values."""
        records: list[Record] = []
        for node in graph.nodes():
            if node.results and node.results[0].is_scalar_constant:
                continue
            inner_graphs = held_graphs(node)
            function = self._called.get(node.location)
            called = (function.name,) if function and function.has(node.op) else ()
            path = (*(enclosing or groups_of(node.location.module)), *called)
            if inner_graphs:
                inside = (*path, f"{node.op.name} %{node.results[0].name}")
                own = self._holder(node, inner_graphs, prefix, inside)
            else:
                own = [self._record(node, prefix, path) | ({"function": called[0]} if called else {})]
            for record in own if not enclosing else ():
                if count := len(record["path"]) - len(groups_of(node.location.module)):
                    record["called"] = count
            records += own
        return records

    def _holder(self, node: Node, attributes: tuple[str, ...], prefix: str, path: tuple[str, ...]) -> list[Record]:
        """Return the records of a node with inner graphs: its operands, the graphs, and its results."""
        record = self._record(node, prefix, path)
        results, record["results"] = record["results"], [[f"{record['key']}.given", ""]]
        records, ends = [record], []
        for name in attributes:
            own, inner, body = inside_of(node, name, prefix), (*path, name), node.attrs[name]
            records += [_begin(value, own, record["results"][0][0], inner) for value in body.inputs]
            records += self._nodes(body, own, inner)
            ends.append(_end(f"{own}results", "results", list(body.outputs), own, inner))
            ends[-1]["results"] = [[f"{own}results", ""]]
            records.append(ends[-1])
        end: Record = {"key": f"{record['key']}.results", "op": "results", "kind": "output", "path": list(path)}
        return [*records, end | {"results": results, "operands": [e["key"] for e in ends]}]

    def _record(self, node: Node, prefix: str, path: tuple[str, ...]) -> Record:
        key = node_key(node, prefix)
        kind = kind_of(node.op)
        record: Record = {"key": key, "op": node.op.name, "kind": kind, "path": list(path)}
        record["results"] = [[prefix + v.name, str(v.type)] for v in node.results]
        record["operands"] = [_operand(v, prefix) for v in node.operands]
        if node.op is CONSTANT:
            record["weights"] = True
        elif attrs := print_attrs(node, lambda graph: f"@{graph.name}"):
            record["attrs"] = [[name, _short(text)] for name, text in attrs]
        if line := self._line(node.location):
            record["line"] = line
        return record

    def _line(self, location: Location) -> str:
        if not location.file:
            return ""
        position = f"{location.file}:{location.line}"
        if position not in self.lines:
            self.lines[position] = linecache.getline(location.file, location.line).strip()
        return position


def node_key(node: Node, prefix: str = "") -> str:
    """Return the key of a node in all graphs: its first result, or the operand to which it writes."""
    return prefix + node.results[0].name if node.results else f"{node.op.name} {prefix}{node.operands[0].name}"


def inside_of(node: Node, attribute: str, prefix: str = "") -> str:
    """Return the prefix of names of values in an inner graph of a node."""
    return f"{prefix}{node.results[0].name}.{attribute}."


def groups_of(module: str) -> list[str]:
    """Return the groups of a module path: its components.

    Names of nodes with slashes, as in ONNX files, give the components before the last.
    """
    if "/" in module:
        return [name for name in module.split("/")[:-1] if name]
    return module.split(".") if module else []


def _inputs(graph: Graph) -> list[Record]:
    records: list[Record] = []
    for value in graph.inputs:
        cls = input_class(value)
        record: Record = {"key": value.name, "op": input_path(value) or value.name, "kind": cls, "path": []}
        record |= {"results": [[value.name, str(value.type)]], "operands": []}
        records.append(record | ({"weights": True} if cls in MEMORY else {}))
    return records


def _begin(value: Value, prefix: str, holder: str, path: tuple[str, ...]) -> Record:
    results = [[prefix + value.name, str(value.type)]]
    record: Record = {"key": prefix + value.name, "op": value.name, "kind": "input", "path": list(path)}
    return record | {"results": results, "operands": [holder]}


def _end(key: str, name: str, values: list[Value], prefix: str, path: tuple[str, ...]) -> Record:
    operands = [_operand(v, prefix) for v in values]
    types = ", ".join(str(v.type) for v in values)
    record: Record = {"key": key, "op": name, "kind": "output", "path": list(path)}
    return record | {"results": [], "operands": operands, "attrs": [["type", types]]}


def _operand(value: Value, prefix: str) -> str:
    """Return the name of a value; the literal of a scalar, which differs from a name by its parentheses."""
    return print_operand(value, lambda v: prefix + v.name)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
