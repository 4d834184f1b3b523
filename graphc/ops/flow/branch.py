"""``cond``: one of two sub-graphs, chosen by a value; the other one is not computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, float32, float64
from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.op import Attr, Attrs, ErrorSample, OpDef, Sample, Trait, Types
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.autodiff import vjp_graph
from graphc.ops.batch import BatchedOperand
from graphc.ops.batching import batched_graph
from graphc.ops.define import define
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.flow.control import graph_of, inline
from graphc.ops.movement.shape import reshape
from graphc.ops.pointwise import elementwise, math
from graphc.ops.reduction import reduce
from graphc.ops.rules import check_type, show
from graphc.ops.samples import array, floats

REMEDY = "give both branches the same operand and result types"


def _infer(pred: TensorType, *operands: TensorType, then: Graph, otherwise: Graph) -> Types:
    if pred.dtype is not bool_:
        raise DTypeError(f"cond: the condition is {pred.dtype.name}", remedy="pass a comparison, such as x.sum() > 0")
    if pred.shape:
        raise ShapeError(f"cond: the condition has shape {show(pred.shape)}", remedy="reduce it with .any() or .all()")
    for branch in (then, otherwise):
        if len(branch.inputs) != len(operands):
            raise ArgumentError(f"cond: {len(operands)} operands for a branch with {len(branch.inputs)} arguments")
        for i, (type, value) in enumerate(zip(operands, branch.inputs, strict=True)):
            check_type(f"cond: operand {i}", type, value.type, REMEDY)
    if len(then.outputs) != len(otherwise.outputs) or not then.outputs:
        raise ArgumentError(f"cond: the branches give {len(then.outputs)} and {len(otherwise.outputs)} results")
    for i, (first, second) in enumerate(zip(then.outputs, otherwise.outputs, strict=True)):
        check_type(f"cond: result {i} of one branch", first.type, second.type, REMEDY)
    return tuple(v.type for v in then.outputs)


def _reference(pred: np.ndarray, *operands: np.ndarray, then: Graph, otherwise: Graph) -> tuple[np.ndarray, ...]:
    return tuple(np.array(a) for a in Evaluator().run(then if pred else otherwise, operands))


def _gradient(g: Any, result: Any, pred: Any, *operands: Any, then: Graph, otherwise: Graph) -> tuple[Any, ...]:
    """Return the gradient of the chosen branch, which is computed again for it."""
    gradients = g if isinstance(g, tuple) else (g,)
    chosen = [i for i, v in enumerate(then.outputs) if v.dtype.is_differentiable and gradients[i] is not None]
    differentiable = [i for i, v in enumerate(then.inputs) if v.dtype.is_differentiable]
    if not differentiable:
        return (None,) * (1 + len(operands))
    branches = [_backward(branch, differentiable, chosen) for branch in (then, otherwise)]
    gradients_in = [gradients[i] for i in chosen]
    gradients_out = cond(pred, *operands, *gradients_in, then=branches[0], otherwise=branches[1])
    by_input = dict(
        zip(differentiable, gradients_out if isinstance(gradients_out, tuple) else (gradients_out,), strict=True)
    )
    return (None, *(by_input.get(i) for i in range(len(operands))))


def _backward(branch: Graph, inputs: Sequence[int], chosen: Sequence[int]) -> Graph:
    graph = vjp_graph(branch, [branch.inputs[i] for i in inputs], chosen)
    graph.set_outputs(graph.outputs[len(branch.outputs) :])
    return graph


def _batched(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    """Batch both branches; where conditions differ between the entries of the batch, compute both.

    Where the second branch only passes operands on, as after the last step of a bounded loop, the first one is
    computed if any entry takes it.
    """
    pred, *others = operands
    flags = [e.batched for e in others]
    branches = [batched_graph(attrs[name], size, flags) for name in ("then", "otherwise")]
    if not pred.batched:
        return cond(pred.value, *(e.value for e in others), then=branches[0], otherwise=branches[1])
    values = [pred.value, *(e.value for e in others)]
    if not attrs["otherwise"].nodes():
        first = graph_of("cond.batched", values, lambda pred, *rest: _selected(pred, branches, rest))
        second = graph_of("cond.batched", values, lambda _, *rest: inline(branches[1], rest))
        return cond(reduce.any(pred.value, axes=(0,)), *values, then=first, otherwise=second)
    selected = _selected(pred.value, branches, values[1:])
    return selected[0] if len(selected) == 1 else tuple(selected)


def _selected(pred: Any, branches: Sequence[Graph], operands: Sequence[Any]) -> list[Any]:
    both = [inline(branch, operands) for branch in branches]
    return [elementwise.where(_along(pred, a), a, b) for a, b in zip(*both, strict=True)]


def _along(pred: Any, value: Any) -> Any:
    """Reshape the conditions of the entries to the rank of their values."""
    return reshape(pred, shape=(*pred.shape, *(1 for _ in value.shape[1:])))


# ---- samples


def _branches(type: TensorType) -> dict[str, Any]:
    """Build (exp(a) * b, a) and (a + b, b)."""
    then, otherwise = Graph("then"), Graph("otherwise")
    for graph in (then, otherwise):
        a, b = graph.add_input(type, "a"), graph.add_input(type, "b")
        with dispatch.use(GraphDispatcher(graph)):
            first = elementwise.mul(math.exp(a), b) if graph is then else elementwise.add(a, b)
        graph.set_outputs([first, a if graph is then else b])
    return {"then": then, "otherwise": otherwise}


def _samples() -> list[Sample]:
    operands = (floats((2, 3)), floats((2, 3), seed=1))
    attrs = _branches(TensorType(float64, (2, 3)))
    return [Sample((array(value, "bool"), *operands), attrs) for value in (True, False)]


_B, _F = TensorType(bool_), TensorType(float32, (2, 3))
_WIDE = TensorType(float64, (2, 3))

cond = define(
    "cond",
    "Applies one of two sub-graphs to the operands after the condition: the first one if it is true. The other one "
    "is not computed.",
    "pred *operands",
    _infer,
    attrs=[
        Attr("then", "graph", "the sub-graph for a true condition"),
        Attr("otherwise", "graph", "the sub-graph for a false one"),
    ],
    reference=_reference,
    vjp=_gradient,
    traits=Trait.PURE | Trait.BRANCH,
    runs=lambda attrs: (attrs["then"], 1),
    batch=_batched,
    samples=_samples,
    error_samples=(
        ErrorSample((_F, _WIDE, _WIDE), "the condition is f32", _branches(_WIDE), DTypeError),
        ErrorSample((TensorType(bool_, (2,)), _WIDE, _WIDE), "has shape [2]", _branches(_WIDE), ShapeError),
        ErrorSample((_B, _WIDE), "1 operands for a branch with 2 arguments", _branches(_WIDE), ArgumentError),
        ErrorSample((_B, _F, _F), "operand 0 is f32, not f64", _branches(_WIDE), DTypeError),
    ),
)
