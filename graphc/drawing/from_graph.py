"""The picture of a traced graph: one box per node, scalars written into the box that reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.drawing.diagram import SINK, SOURCE, Box, Builder, Diagram
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_class, input_path
from graphc.ir.op import OpDef, Trait

_LONGEST = 200


def graph_diagram(graph: Graph, depth: int | None = None) -> Diagram:
    """The diagram of a graph, grouped by module path; with ``depth``, modules that deep are one box each."""
    builder = Builder()
    numbers: dict[Value, int] = {}
    for value in graph.inputs:
        cls = input_class(value)
        place = SOURCE if cls != "input" else "flow"
        numbers[value] = builder.add(Box(input_path(value) or value.name, str(value.type), cls, repr(value)), (), place)
    for node in graph.nodes():
        if node.results and node.results[0].is_scalar_constant:
            continue
        path = tuple(node.location.module.split(".")) if node.location.module else ()
        place = SOURCE if node.op is CONSTANT else SINK if node.op.has(Trait.STATE_WRITE) else "flow"
        number = builder.add(_box(node), path, place)
        numbers.update(dict.fromkeys(node.results, number))
        for operand in node.operands:
            if operand in numbers:
                builder.connect(numbers[operand], number)
    for index, value in enumerate(graph.outputs):
        name = "output" if len(graph.outputs) == 1 else f"output {index}"
        number = builder.add(Box(name, str(value.type), "output", repr(value)))
        if value in numbers:
            builder.connect(numbers[value], number)
    return builder.finish(depth)


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
    """What kind of box shows an op."""
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
