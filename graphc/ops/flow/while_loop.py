"""``while_loop``: apply a sub-graph to values repeatedly, as long as another one returns true."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, float32, float64
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, GradientError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.op import Attr, Attrs, ErrorSample, OpDef, Sample, Trait, Types
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.batch import BatchedOperand, spread
from graphc.ops.batching import batched_graph
from graphc.ops.define import define
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.flow.branch import cond
from graphc.ops.flow.control import graph_of, inline
from graphc.ops.flow.loop import gradient as gradient_of_scan
from graphc.ops.flow.loop import scan
from graphc.ops.movement.shape import reshape
from graphc.ops.pointwise import elementwise
from graphc.ops.reduction.reduce import any
from graphc.ops.rules import check_type
from graphc.ops.samples import array

_REMEDY = "return values of the same types from the step"


def _infer(*operands: TensorType, test: Graph, body: Graph, carries: int, most: int) -> Types:
    if most < 0:
        raise AttributeValueError(f"while_loop: at most {most} steps", remedy="pass 0 for no bound")
    if not 0 < carries <= len(operands):
        raise AttributeValueError(f"while_loop: {carries} carries of {len(operands)} operands")
    for graph in (test, body):
        if len(graph.inputs) != len(operands):
            raise ArgumentError(f"while_loop: {len(operands)} operands for a graph with {len(graph.inputs)} arguments")
        for i, (type, value) in enumerate(zip(operands, graph.inputs, strict=True)):
            check_type(f"while_loop: operand {i}", type, value.type, _REMEDY)
    if [v.type for v in test.outputs] != [TensorType(bool_)]:
        raise DTypeError("while_loop: the condition is not one bool", remedy="return a comparison of single elements")
    if len(body.outputs) != carries:
        raise ArgumentError(f"while_loop: a step gives {len(body.outputs)} values for {carries} carries")
    for i, (after, before) in enumerate(zip(body.outputs, operands, strict=False)):
        check_type(f"while_loop: new carry {i}", after.type, before, _REMEDY)
    return operands[:carries]


def _reference(*operands: np.ndarray, test: Graph, body: Graph, carries: int, most: int) -> tuple[np.ndarray, ...]:
    present, rest = list(operands[:carries]), operands[carries:]
    while Evaluator().run(test, [*present, *rest])[0]:
        present = list(Evaluator().run(body, [*present, *rest]))
    return tuple(np.array(a) for a in present)


def _gradient(
    g: Any, result: Any, *operands: Any, test: Graph, body: Graph, carries: int, most: int
) -> tuple[Any, ...]:
    """Differentiate a scan of ``most`` steps that takes the place of the loop: those after the last one change nothing.

    A step of the scan is a branch that runs about the square root of ``most`` steps, so that only the carries before
    these are kept.
    """
    if not most:
        raise GradientError(
            "while_loop: the gradient of a loop without a bound would have to keep values of any number of steps",
            remedy="use while_loop(..., max_steps=N), which saves the values of N steps, or fori_loop with integer "
            "bounds; in JAX use lax.scan, or a constant bound as in (i < 100) & (error > 1e-6)",
        )

    def where_more(name: str, then: Graph) -> Graph:
        otherwise = graph_of(f"{name}.end", operands, lambda *values: values[:carries])

        def results(*values: Any) -> Sequence[Any]:
            after = cond(inline(test, values)[0], *values, then=then, otherwise=otherwise)
            return after if isinstance(after, tuple) else (after,)

        return graph_of(name, operands, results)

    def steps(*values: Any) -> Sequence[Any]:
        after = scan(*values, body=where_more("while.step", body), **counts, length=chunk)
        return after if isinstance(after, tuple) else (after,)

    chunk = isqrt(most - 1) + 1
    counts = {"carries": carries, "sequences": 0}
    chunks = where_more("while.chunk", graph_of("while.steps", operands, steps))
    return gradient_of_scan(g, result, *operands, body=chunks, **counts, length=-(-most // chunk), reverse=False)


def _batched(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    """Run steps while the condition holds for any entry of the batch; the other entries keep their carries.

    A further carry says which entries go on, so that each condition is computed once.
    """
    carries = attrs["carries"]
    flags = [i < carries or e.batched for i, e in enumerate(operands)]
    values = [spread(e, size) if i < carries else e.value for i, e in enumerate(operands)]
    test, body = (batched_graph(attrs[name], size, flags) for name in ("test", "body"))
    (going,) = inline(test, values)
    loop = {
        "test": graph_of("test.any", [going, *values], lambda going, *_: [any(going, axes=(0,))]),
        "body": graph_of("body.going", [going, *values], lambda going, *rest: _step(test, body, carries, going, rest)),
    }
    return dispatch.apply(op, [going, *values], {**loop, "carries": carries + 1, "most": attrs["most"]})[1:]


def _step(test: Graph, body: Graph, carries: int, going: Any, values: Sequence[Any]) -> list[Any]:
    """Apply a step to the entries that go on; return which go on after it, and the carries."""
    after = [
        elementwise.where(reshape(going, shape=(*going.shape, *(1 for _ in old.shape[1:]))), new, old)
        for new, old in zip(inline(body, values), values, strict=False)
    ]
    (more,) = inline(test, [*after, *values[carries:]])
    return [elementwise.logical_and(going, more), *after]


# ---- samples


def _halving(type: TensorType) -> dict[str, Any]:
    """Build a loop that adds b to a and shrinks the limit while a is below it."""
    test, body = Graph("test"), Graph("body")
    for graph in (test, body):
        a, limit, b = (graph.add_input(type, name) for name in ("a", "limit", "b"))
        with dispatch.use(GraphDispatcher(graph)):
            results = (
                [elementwise.add(a, b), elementwise.mul(limit, 0.75)] if graph is body else [elementwise.lt(a, limit)]
            )
        graph.set_outputs(results)
    return {"test": test, "body": body, "carries": 2}


_T, _F = TensorType(float64), TensorType(float32)

while_loop = define(
    "while_loop",
    "The carries for which the condition is first false; each step computes new carries from the previous ones. "
    "Operands after the carries are the same in all steps.",
    "*operands",
    _infer,
    attrs=[
        Attr("test", "graph", "the condition, computed from the carries and the other operands"),
        Attr("body", "graph", "the next carries"),
        Attr("carries", "int", "how many operands each step passes to the next one"),
        Attr("most", "int", "an upper bound of the steps, which gradients need; 0 for none", default=0, required=False),
    ],
    reference=_reference,
    vjp=_gradient,
    traits=Trait.PURE | Trait.WHILE,
    runs=lambda attrs: (attrs["body"], 8),
    batch=_batched,
    samples=lambda: [
        Sample((array(0.5, "float64"), array(10.0, "float64"), array(1.5, "float64")), _halving(_T), False),
        Sample((array(9.0, "float64"), array(1.0, "float64"), array(1.5, "float64")), _halving(_T), False),
    ],
    error_samples=(
        ErrorSample((_T, _T), "2 operands for a graph with 3", _halving(_T), ArgumentError),
        ErrorSample((_F, _F, _F), "operand 0 is f32, not f64", _halving(_T), DTypeError),
        ErrorSample((_T, _T, _T), "4 carries of 3", {**_halving(_T), "carries": 4}, AttributeValueError),
        ErrorSample((_T, _T, _T), "gives 2 values for 1", {**_halving(_T), "carries": 1}, ArgumentError),
    ),
)
