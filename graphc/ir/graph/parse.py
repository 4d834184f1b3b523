"""Parser of the graph text: the inverse of ir.graph.text, with every type rule run and compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from graphc.base.dtypes import float64
from graphc.base.errors import GraphcError
from graphc.base.locks import section
from graphc.ir.graph.graph import CONSTANT, Graph, Value
from graphc.ir.graph.text import parse_location
from graphc.ir.lexer import Cursor, Token
from graphc.ir.op import INPUT_CLASSES, REGISTRY, Attr, OpDef
from graphc.ir.types import TensorType


def parse_graph(text: str, data: Mapping[str, np.ndarray] | None = None) -> Graph:
    """Parse the text of ``print_graph``. ``data`` contains the arrays that the text names by digest.

    Raises ParseError with line and column for wrong syntax, unknown ops and attributes, and names used before their
    definition or defined twice. It also raises one where the type rule of an op rejects its operands or gives another
    type.

    Example:
        >>> import graphc as gc
        >>> from graphc.ir.graph.parse import parse_graph
        >>> text = str(gc.trace(lambda x: x + x, gc.zeros(3)))
        >>> gc.compile(parse_graph(text))(gc.ones(3))
        tensor([2., 2., 2.])
    """
    with section():
        import_module("graphc.ops.registry")  # defines all ops
    cursor = Cursor(text, "//", data)
    cursor.declare_dims()
    graph = _Parser(cursor).graph()
    cursor.expect_end()
    return graph


class _Parser:
    """Recursive-descent parser: one method per phrase of the grammar; a sub-graph gets a parser of its own."""

    def __init__(self, cursor: Cursor):
        self.cursor = cursor
        self.values: dict[str, Value] = {}
        self.target = Graph()

    def graph(self) -> Graph:
        c = self.cursor
        c.expect("graph")
        self.target.name = c.name("symbol", "the graph's name, @name")
        c.list_of(self.input, "(", ")")
        c.expect("->")
        first = c.token
        declared = c.list_of(c.tensor_type, "(", ")")
        c.expect("{")
        while not c.at("return"):
            self.node()
        c.expect("return")
        outputs: list[Value] = []
        while not c.at("}"):
            if outputs:
                c.expect(",")
            outputs.append(self.operand())
        c.expect("}")
        if [v.type for v in outputs] != declared:
            c.refuse(f"the graph returns {_types(v.type for v in outputs)}, its head says {_types(declared)}", first)
        self.target.set_outputs(outputs)
        return self.target

    def input(self) -> None:
        c = self.cursor
        token, name = self.new_name()
        c.expect(":")
        type = c.tensor_type()
        cls = c.take().text if c.at(*INPUT_CLASSES) else "input"
        path = c.string() if c.token.kind == "string" else ""
        equals = c.size() if c.accept("=") else None
        self.define(token, name, self.target.add_input(type, name, cls, path, equals))

    def new_name(self) -> tuple[Token, str]:
        token = self.cursor.token
        name = self.cursor.name("value", "a value, %name")
        if name in self.values:
            self.cursor.refuse(f"%{name} is defined already", token)
        return token, name

    def define(self, token: Token, name: str, value: Value) -> None:
        if value.name != name:
            self.target.rename(value, name)
        if value.name != name:
            self.cursor.refuse(f"{token.text} is a reserved name", token)
        self.values[name] = value

    def operand(self) -> Value:
        c = self.cursor
        token = c.token
        if token.kind == "word":
            value, dtype = c.scalar()
            return self.target.scalar(value, dtype)  # type: ignore[arg-type]
        name = c.name("value", "an operand, %name or a scalar such as f32(0.5)")
        if name not in self.values:
            c.refuse(f"%{name} is not defined before its use", token)
        return self.values[name]

    def node(self) -> None:
        c = self.cursor
        names: list[tuple[Token, str]] = []
        if c.token.kind not in ("word", "value"):
            c.refuse_next("a node or 'return'")
        if c.token.kind == "value":
            names.append(self.new_name())
            while c.accept(","):
                names.append(self.new_name())
            c.expect("=")
        start = c.token
        op = c.lookup(REGISTRY, "an op")
        operands = c.list_of(self.operand, "(", ")")
        attrs = self.attrs(op) if c.at("{") else {}
        types = self.infer(op, operands, attrs, start)
        self.compare(op, types, len(names), start)
        location = parse_location(c.trailing_comment())
        if op is CONSTANT and not types[0].shape:
            self.values[names[0][1]] = self.target.scalar(attrs["value"], types[0].dtype)
            return
        node = self.target.add_node(op, operands, op.normalize(attrs), types, location, _UNNAMED)
        for (token, name), value in zip(names, node.results, strict=True):
            self.define(token, name, value)

    def infer(self, op: OpDef, operands: list[Value], attrs: dict[str, Any], start: Token) -> tuple[TensorType, ...]:
        try:
            return op.result_types(tuple(v.type for v in operands), op.normalize(attrs))
        except GraphcError as error:
            self.cursor.refuse(error.what, start, error.remedy)

    def compare(self, op: OpDef, types: tuple[TensorType, ...], names: int, start: Token) -> None:
        """Read the printed types and compare them with the result of the type rule."""
        c = self.cursor
        if names != len(types):
            c.refuse(f"{op.name} has {len(types)} results, the text names {names}", start)
        if not types:
            return
        c.expect(":")
        first = c.token
        printed = [c.tensor_type()]
        while c.accept(","):
            printed.append(c.tensor_type())
        if tuple(printed) != types:
            c.refuse(f"{op.name} gives {_types(types)}, the text says {_types(printed)}", first)

    # ---- attributes

    def attrs(self, op: OpDef) -> dict[str, Any]:
        declared = {a.name: a for a in op.attrs}
        values: dict[str, Any] = {}

        def attribute() -> None:
            token = self.cursor.token
            attr = self.cursor.lookup(declared, f"an attribute of {op.name}")
            if attr.name in values:
                self.cursor.refuse(f"attribute {attr.name} is given twice", token)
            self.cursor.expect("=")
            values[attr.name] = self.attr_value(attr)

        self.cursor.list_of(attribute, "{", "}")
        return values

    def attr_value(self, attr: Attr) -> Any:
        c = self.cursor
        if attr.kind == "graph":
            return None if c.accept("none") else _Parser(c).graph()
        readers: dict[str, Callable[[], Any]] = {
            "int": c.size,
            "float": lambda: c.number(float64).item(),
            "bool": lambda: c.expect("true", "false").text == "true",
            "str": c.string,
            "ints": self.ints,
            "pairs": lambda: tuple(c.list_of(self.ints, "[", "]")),
            "dtype": c.dtype,
            "array": c.array,
            "scalar": self.scalar,
        }
        return readers[attr.kind]()

    def ints(self) -> tuple[int, ...]:
        return tuple(self.cursor.list_of(self.cursor.size, "[", "]"))

    def scalar(self) -> bool | int | float:
        c = self.cursor
        if c.at("true", "false"):
            return c.take().text == "true"
        negative = c.at("-")
        text = (c.peek() if negative else c.token).text
        return c.integer() if re.fullmatch(r"\d+", text) else c.number(float64).item()  # type: ignore[return-value]


_UNNAMED = "?"
"""Temporary name of results before they are named; no printed name is equal."""


def _types(types: Any) -> str:
    return f"({', '.join(map(str, types))})"
