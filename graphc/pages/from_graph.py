"""Diagram of a traced graph: a box per node, with scalar operands in the title."""

from __future__ import annotations

import linecache
import re
from itertools import groupby
from typing import Any

import numpy as np

from graphc.base.location import Location
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_class, input_path
from graphc.ir.op import OpDef, Trait
from graphc.pages.diagram import SINK, SOURCE, Box, Builder, Diagram

_LONGEST = 200


def graph_diagram(graph: Graph, depth: int | None = None, module: Any = None) -> Diagram:
    """Return the diagram of a graph, grouped by module path, and in a module by the functions that its lines call.

    With ``depth``, groups at that depth become one box each. ``module`` is the traced module, for the classes of its
    submodules.
    """
    builder = Builder(class_names(module))
    numbers: dict[Value, int] = {}
    for value in graph.inputs:
        cls = input_class(value)
        placement = SOURCE if cls != "input" else "flow"
        numbers[value] = builder.add(
            Box(input_path(value) or value.name, str(value.type), cls, repr(value)), (), placement
        )
    _add_nodes(builder, graph, numbers, ())
    for index, value in enumerate(graph.outputs):
        name = "output" if len(graph.outputs) == 1 else f"output {index}"
        number = builder.add(Box(name, str(value.type), "output", repr(value)))
        if value in numbers:
            builder.connect(numbers[value], number)
    return builder.finish(depth)


def _add_nodes(builder: Builder, graph: Graph, numbers: dict[Value, int], enclosing: tuple[str, ...]) -> None:
    """Add the nodes of a graph inside a group; bodies of loops and branches get groups of their own."""
    paths = _paths(graph)
    for node in graph.nodes():
        if node.results and node.results[0].is_scalar_constant:
            continue
        placement = SOURCE if node.op is CONSTANT else SINK if node.op.has(Trait.STATE_WRITE) else "flow"
        bodies = {name: value for name, value in node.attrs.items() if isinstance(value, Graph)}
        path = (*enclosing, *paths.get(node, ()), *((f"{node.op.name} %{node.results[0].name}",) if bodies else ()))
        number = builder.add(_box(node), path, placement)
        for operand in node.operands:
            if operand in numbers:
                builder.connect(numbers[operand], number)
        for name, body in bodies.items():
            number = _add_body(builder, body, number, (*path, name))
        numbers.update(dict.fromkeys(node.results, number))


def _add_body(builder: Builder, body: Graph, before: int, path: tuple[str, ...]) -> int:
    """Add the body of a loop or branch after a box; return the box of its results."""
    numbers: dict[Value, int] = {}
    for value in body.inputs:
        numbers[value] = builder.add(Box(value.name, str(value.type), "input", repr(value)), path)
        builder.connect(before, numbers[value])
    _add_nodes(builder, body, numbers, path)
    types = ", ".join(str(v.type) for v in body.outputs)
    end = builder.add(Box("results", types, "output"), path)
    for source in dict.fromkeys([*(numbers[v] for v in body.outputs if v in numbers), before]):
        builder.connect(source, end)
    return end


def class_names(module: Any) -> dict[str, str]:
    """Return the classes of a module's submodules by path; empty for None."""
    if module is None:
        return {}
    return {path: type(child).__name__ for path, child in module.named_modules() if path}


def _paths(graph: Graph) -> dict[Node, tuple[str, ...]]:
    """Return the path of each node: its module path, and the function that its line calls.

    The function is added if the line gives several nodes in a row and is not the module's only line.
    """
    nodes = [n for n in graph.nodes() if not (n.op is CONSTANT or (n.results and n.results[0].is_scalar_constant))]
    lines: dict[str, set[tuple[str, int]]] = {}
    for node in nodes:
        lines.setdefault(node.location.module, set()).add((node.location.file, node.location.line))
    paths: dict[Node, tuple[str, ...]] = {}
    for location, run in groupby(nodes, key=lambda n: n.location):
        called = list(run)
        path = tuple(location.module.split(".")) if location.module else ()
        several = len(called) > 1 and (len(lines[location.module]) > 1 or not path)
        name = _function(location) if several else ""
        paths.update(dict.fromkeys(called, (*path, name) if name else path))
    return paths


def _function(location: Location) -> str:
    """Return the only function called on a line of user code, such as ``F.relu``; else an empty string."""
    text = linecache.getline(location.file, location.line) if location.file else ""
    names = dict.fromkeys(name for name in _CALL.findall(text) if name.rpartition(".")[2] not in _WITH_BODIES)
    return next(iter(names)) if len(names) == 1 else ""


_WITH_BODIES = frozenset(
    {"scan", "map", "cond", "switch", "while_loop", "fori_loop", "associative_scan", "vmap", "checkpoint", "grad"}
)
"""Functions with function arguments, whose boxes show bodies."""
_CALL = re.compile(r"\b((?:F|functional|nn\.functional|gc|graphc)\.[a-z_]\w*)\(")
"""Call of a graphc function by the usual names of its modules."""


def _box(node: Node) -> Box:
    scalars = [v.name.partition("(")[2].rstrip(")") for v in node.operands if v.is_scalar_constant]
    title = " ".join([node.op.name, *scalars])
    detail = ", ".join(str(v.type) for v in node.results)
    lines = [f"%{v.name}: {v.type}" for v in node.results]
    lines.append(f"{node.op.name}({', '.join('%' + v.name for v in node.operands)})")
    lines += [f"{name} = {_short(value)}" for name, value in node.attrs.items()]
    lines += [str(node.location)] if str(node.location) else []
    return Box(title, detail, kind_of(node.op), "\n".join(lines))


def kind_of(op: OpDef) -> str:
    """Return the kind of box for an op."""
    if op is CONSTANT:
        return "constant"
    return next((kind for trait, kind in _KINDS if op.has_any(trait)), "op")


_KINDS = (
    (Trait.STATE_READ | Trait.STATE_WRITE, "state"),
    (Trait.CONTRACTION, "product"),
    (Trait.VIEW, "view"),
    (Trait.REDUCTION, "reduce"),
)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array {value.dtype}{list(value.shape)}"
    text = f"graph @{value.name}" if isinstance(value, Graph) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
