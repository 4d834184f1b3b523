"""Rules for ops with subgraphs: branches and loops become bodies, others are inlined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphc.base.dtypes import bool_, int64
from graphc.base.sizes.size import is_size
from graphc.interop.onnx_export.records import GraphRecord
from graphc.interop.onnx_export.writer import GraphWriter, Rule
from graphc.ir.graph.graph import Graph, Node, Value

Names = str | Sequence[str]


def _branch(w: GraphWriter, graph: Graph, inputs: Sequence[str], name: str) -> GraphRecord:
    inner, formal = w.body(name, (), ())
    names = inner.inline(graph, inputs)
    return inner.finish(name, formal, list(zip(names, graph.outputs, strict=True)))


def _cond(w: GraphWriter, node: Node, condition: str, *operands: str) -> Names:
    then, other = (_branch(w, node.attrs[name], operands, name) for name in ("then", "otherwise"))
    return w.add("If", condition, outputs=len(node.results), then_branch=then, else_branch=other)


def _while(w: GraphWriter, node: Node, *operands: str) -> Names:
    test, body, carries = node.attrs["test"], node.attrs["body"], node.attrs["carries"]
    first_test = w.inline(test, operands)[0]
    leading = [w.record(w.model.unique("step"), int64, ()), w.record(w.model.unique("condition"), bool_, ())]
    inner, formal = w.body("while", leading, body.inputs[:carries])
    constants = operands[carries:]
    after = inner.inline(body, [*(v.name for v in formal[2:]), *constants])
    next_test = inner.inline(test, [*after, *constants])[0]
    outputs: list[tuple[str, Value]] = [(next_test, test.outputs[0]), *zip(after, body.outputs, strict=True)]
    record = inner.finish("while", formal, outputs)
    return w.add("Loop", "", first_test, *operands[:carries], outputs=carries, body=record)


def _scan(w: GraphWriter, node: Node, *operands: str) -> Names:
    """Write ONNX's Scan, whose body reads the loop constants from the enclosing scope; a single step without a loop."""
    body, carries, sequences = node.attrs["body"], node.attrs["carries"], node.attrs["sequences"]
    last, reverse = carries + sequences, int(node.attrs["reverse"])
    if not is_size(node.attrs["length"]) and node.attrs["length"] == 1:
        slices = [w.add("Squeeze", x, w.vector([0])) for x in operands[carries:last]]
        results = w.inline(body, [*operands[:carries], *slices, *operands[last:]])
        return (*results[:carries], *(w.add("Unsqueeze", x, w.vector([0])) for x in results[carries:]))
    inner, formal = w.body("scan", (), body.inputs[:last])
    inputs = list(operands[:last])
    if not sequences:  # A sequence of the right length counts the steps.
        length = w.at(node.attrs["length"])
        ticks = w.add("Expand", w.constant(np.zeros(1, bool)), w.vector([length]))
        inputs.append(ticks)
        formal = [*formal, w.record(w.model.unique("tick"), bool_, ())]
    after = inner.inline(body, [*(v.name for v in formal[:last]), *operands[last:]])
    record = inner.finish("scan", formal, list(zip(after, body.outputs, strict=True)))
    stacks = len(body.outputs) - carries
    directions = {
        "scan_input_directions": [reverse] * max(sequences, 1) if reverse else None,
        "scan_output_directions": [reverse] * stacks if reverse and stacks else None,
    }
    return w.add(
        "Scan", *inputs, outputs=len(node.results), body=record, num_scan_inputs=max(sequences, 1), **directions
    )


RULES: dict[str, Rule] = {
    "cond": _cond,
    "while_loop": _while,
    "scan": _scan,
    "call": lambda w, node, *x: w.inline(node.attrs["forward"], x),
    "checkpoint": lambda w, node, *x: w.inline(node.attrs["body"], x),
}
"""Rules by op."""
