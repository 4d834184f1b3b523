"""Printer of graphs, in the text that ir.graph.parse reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import float64
from graphc.base.location import Location
from graphc.ir.literal import INLINE_LIMIT, digest, print_array, print_dim, print_name, print_number, print_scalar

if TYPE_CHECKING:
    from graphc.ir.graph.graph import Graph, Node, Value
    from graphc.ir.op import Attr

HEAD_WIDTH = 120
"""Longest head to print on one line; longer ones print one input a line."""
_PLAIN_MODULE = re.compile(r"[^\s\":/]+")
_PLAIN_FILE = re.compile(r"[^\s\"]+")


def print_graph(graph: Graph, portable: bool = False) -> str:
    """Print a graph, one node a line::

        graph @mlp(%x: f32[32,784], %w: f32[128,784] param "fc1.weight") -> (f32[32,128]) {
          %h = matmul(%x, %w) {transpose_b=true} : f32[32,128]  // fc1 model.py:12
          %y = maximum(%h, f32(0.0)) : f32[32,128]  // act model.py:13
          return %y
        }

    A line for each named dimension precedes the head: ``dim time = 1..512 hint 128``; an input whose value is such a
    dimension prints as ``%place: i64[] = time``. Scalar constants print at their uses. Arrays beyond 16 elements print
    as digests; ``collect_data(graph)`` returns their data. Attributes with their default value are left out. With
    ``portable``, names of source files do not depend on the machine.
    """
    return "\n".join([*print_dims(graph), *(line for line, _ in _own_lines(graph, portable))]) + "\n"


def print_dims(graph: Graph) -> list[str]:
    """Return the lines that declare the named dimensions of a graph."""
    return [print_dim(dimension) for dimension in graph.dims.values()]


def collect_data(graph: Graph) -> dict[str, np.ndarray]:
    """Return the arrays that the text names only by digest, by that digest; sub-graphs included."""
    arrays: dict[str, np.ndarray] = {}
    stack = [graph]
    while stack:
        for node in stack.pop().nodes():
            for attr in node.op.attrs:
                value = node.attrs[attr.name]
                if isinstance(value, np.ndarray) and value.size > INLINE_LIMIT:
                    arrays[digest(value)] = value
                elif attr.kind == "graph" and value is not None:
                    stack.append(node.attrs[attr.name])
    return arrays


def graph_lines(graph: Graph) -> list[tuple[str, Node | None]]:
    """Return the lines of the text, each with the node that starts there (None for the head, ``return`` and
    sub-graphs)."""
    return [*((line, None) for line in print_dims(graph)), *_own_lines(graph)]


def _own_lines(graph: Graph, portable: bool = False) -> list[tuple[str, Node | None]]:
    inner = partial(_own_text, portable=portable)
    lines: list[tuple[str, Node | None]] = [(line, None) for line in print_head(graph).split("\n")]
    for node in graph.nodes():
        if not (node.results and node.results[0].is_scalar_constant):
            location = node.location.portable if portable else node.location
            first, *rest = f"{print_node(node, sub_graph=inner)}{print_location(location)}".split("\n")
            lines.append((f"  {first}", node))
            lines.extend((f"  {line}", None) for line in rest)
    lines.append((f"  {print_return(graph)}", None))
    lines.append(("}", None))
    return lines


NameOf = Callable[["Value"], str]
SubGraph = Callable[["Graph"], str]


def own_name(value: Value) -> str:
    """Return ``%name`` of a value in its graph."""
    return print_name("%", value.name)


def _own_text(graph: Graph, portable: bool = False) -> str:
    return "\n".join(line for line, _ in _own_lines(graph, portable))


def print_head(graph: Graph, name_of: NameOf = own_name) -> str:
    """Format ``graph @name(inputs) -> (types) {``."""
    inputs = [_print_input(v, name_of) for v in graph.inputs]
    start, end = f"graph {print_name('@', graph.name)}(", f") -> ({', '.join(str(v.type) for v in graph.outputs)}) {{"
    head = f"{start}{', '.join(inputs)}{end}"
    if len(head) <= HEAD_WIDTH:
        return head
    return start + ",".join(f"\n    {i}" for i in inputs) + ("\n" if inputs else "") + end


def _print_input(value: Value, name_of: NameOf) -> str:
    cls, path = value.node.attrs["cls"], value.node.attrs["path"]
    role = f" {cls}" if cls != "input" or path else ""
    equals = f" = {value.node.attrs['equals']}" if "equals" in value.node.attrs else ""
    return f"{name_of(value)}: {value.type}{role}" + (f" {json.dumps(path)}" if path else "") + equals


def print_node(node: Node, name_of: NameOf = own_name, sub_graph: SubGraph = _own_text) -> str:
    """Format ``%y = op(%x, f32(0.5)) {attr=value} : f32[2]``; several lines with sub-graphs."""
    results = ", ".join(map(name_of, node.results))
    operands = ", ".join(print_operand(v, name_of) for v in node.operands)
    attrs = ", ".join(f"{name}={value}" for name, value in print_attrs(node, sub_graph))
    text = f"{results} = " if results else ""
    text += f"{node.op.name}({operands})" + (f" {{{attrs}}}" if attrs else "")
    return text + (" : " + ", ".join(str(r.type) for r in node.results) if results else "")


def print_attrs(node: Node, sub_graph: SubGraph = _own_text) -> list[tuple[str, str]]:
    """Return names and texts of the attributes to print: those that differ from their default value."""
    printed = [a for a in node.op.attrs if a.name in node.attrs and _is_shown(a, node.attrs[a.name])]
    return [(a.name, _print_attr(a.kind, node.attrs[a.name], sub_graph)) for a in printed]


def print_operand(value: Value, name_of: NameOf = own_name) -> str:
    """Format ``%name``, or the value of a scalar constant: ``f32(0.5)``."""
    return print_scalar(value.node.attrs["value"], value.dtype) if value.is_scalar_constant else name_of(value)


def print_return(graph: Graph, name_of: NameOf = own_name) -> str:
    """Format ``return %y, f32(0.5)``."""
    return " ".join(["return", ", ".join(print_operand(v, name_of) for v in graph.outputs)]).rstrip()


def print_location(location: Location) -> str:
    """Format ``  // module file:line``, quoted if it contains blanks; empty for an unknown location."""
    words = []
    if location.module:
        words.append(location.module if _PLAIN_MODULE.fullmatch(location.module) else json.dumps(location.module))
    if location.file or location.line:
        file = location.file if _PLAIN_FILE.fullmatch(location.file) else json.dumps(location.file)
        words.append(f"{file}:{location.line}")
    return "  // " + " ".join(words) if words else ""


def parse_location(text: str) -> Location:
    """Parse the location in a comment; other comments give an unknown location."""
    quoted = r'"(?:[^"\\]|\\.)*"'
    pattern = rf'(?P<module>{quoted}|{_PLAIN_MODULE.pattern})?(?:(?:^| )(?P<file>{quoted}|[^\s"]+):(?P<line>\d+))?'
    match = re.fullmatch(pattern, text)
    if match is None:
        return Location()
    module, file = (_unquote(match[key] or "") for key in ("module", "file"))
    return Location(module, file, int(match["line"] or 0))


def _unquote(text: str) -> str:
    try:
        return json.loads(text) if text.startswith('"') else text
    except json.JSONDecodeError:
        return text


def _is_shown(attr: Attr, value: Any) -> bool:
    if attr.required:
        return True
    same = type(value) is type(attr.default) and repr(value) == repr(attr.default)
    return value is not attr.default if attr.kind in ("graph", "array") else not same


def _print_attr(kind: str, value: Any, sub_graph: SubGraph) -> str:
    if kind == "graph":
        return "none" if value is None else sub_graph(value)
    return _ATTRS[kind](value)


def _print_scalar_attr(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else print_number(value, float64)


def _print_ints(value: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, value))}]"


_ATTRS: dict[str, Callable[[Any], str]] = {
    "int": str,
    "float": lambda v: print_number(v, float64),
    "bool": lambda v: "true" if v else "false",
    "str": json.dumps,
    "ints": _print_ints,
    "pairs": lambda v: f"[{','.join(map(_print_ints, v))}]",
    "dtype": lambda v: v.name,
    "array": print_array,
    "scalar": _print_scalar_attr,
}
