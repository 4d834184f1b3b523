"""Graphs as the plain data of a page: each distinct node is written once, however many graphs it stands in."""

from __future__ import annotations

import json
import linecache
from typing import Any

from graphc.base.location import Location
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_class, input_path
from graphc.ir.graph.text import print_attrs, print_operand
from graphc.pages.from_graph import kind_of
from graphc.passes.base import held_graphs

Record = dict[str, Any]
"""A node: ``key`` says which one it is, in all graphs; ``op``, ``kind`` (its colour), ``path`` (the groups that it lies
in), ``results`` ([name, type] each), ``operands`` (names of results, or literals), and where there are some ``attrs``,
``line`` (the user's file and line), ``weights`` (it is memory, which its readers show)."""
LONGEST = 400
"""Characters of an attribute that are shown."""
MEMORY = frozenset({"param", "state", "weight"})


class Recorder:
    """Collects graphs."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.graphs: list[list[int]] = []
        """Numbers of records, in the order of the nodes."""
        self.lines: dict[str, str] = {}
        """The text of the user's lines, by file and line."""
        self._numbers: dict[str, int] = {}
        self._lists: dict[tuple[int, ...], int] = {}

    def add(self, graph: Graph) -> int:
        """Takes a graph as it is now; returns its number. Equal graphs have one number."""
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

    def _nodes(self, graph: Graph, prefix: str, around: tuple[str, ...]) -> list[Record]:
        """The nodes of a graph whose values have names that begin so, and of the graphs that they hold."""
        found: list[Record] = []
        for node in graph.nodes():
            if node.results and node.results[0].is_scalar_constant:
                continue
            held = held_graphs(node)
            module = node.location.module
            path = (*around, *(() if around else groups_of(module)))
            if held:
                found += self._holder(node, held, prefix, (*path, f"{node.op.name} %{node.results[0].name}"))
            else:
                found.append(self._record(node, prefix, path))
        return found

    def _holder(self, node: Node, held: tuple[str, ...], prefix: str, path: tuple[str, ...]) -> list[Record]:
        """A node that holds graphs: what it gives them, these, and what it makes of their results."""
        record = self._record(node, prefix, path)
        results, record["results"] = record["results"], [[f"{record['key']}.given", ""]]
        found, ends = [record], []
        for name in held:
            own, inner, body = inside_of(node, name, prefix), (*path, name), node.attrs[name]
            found += [_begin(value, own, record["results"][0][0], inner) for value in body.inputs]
            found += self._nodes(body, own, inner)
            ends.append(_end(f"{own}results", "results", list(body.outputs), own, inner))
            ends[-1]["results"] = [[f"{own}results", ""]]
            found.append(ends[-1])
        end: Record = {"key": f"{record['key']}.results", "op": "results", "kind": "output", "path": list(path)}
        return [*found, end | {"results": results, "operands": [e["key"] for e in ends]}]

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
        place = f"{location.file}:{location.line}"
        if place not in self.lines:
            self.lines[place] = linecache.getline(location.file, location.line).strip()
        return place


def node_key(node: Node, prefix: str = "") -> str:
    """What a node is called in all graphs: its first value, or what it writes to."""
    return prefix + node.results[0].name if node.results else f"{node.op.name} {prefix}{node.operands[0].name}"


def inside_of(node: Node, attribute: str, prefix: str = "") -> str:
    """How the names begin of values in a graph that a node holds."""
    return f"{prefix}{node.results[0].name}.{attribute}."


def groups_of(module: str) -> list[str]:
    """The groups of a module path: its parts; of a name of a node with slashes, as ONNX files have them, those before
    the last."""
    if "/" in module:
        return [part for part in module.split("/")[:-1] if part]
    return module.split(".") if module else []


def _inputs(graph: Graph) -> list[Record]:
    found: list[Record] = []
    for value in graph.inputs:
        cls = input_class(value)
        record: Record = {"key": value.name, "op": input_path(value) or value.name, "kind": cls, "path": []}
        record |= {"results": [[value.name, str(value.type)]], "operands": []}
        found.append(record | ({"weights": True} if cls in MEMORY else {}))
    return found


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
    """The name of a value; the literal of a scalar, which is no name as it has brackets."""
    return print_operand(value, lambda v: prefix + v.name)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
