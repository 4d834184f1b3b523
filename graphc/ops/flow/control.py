"""Ops that contain sub-graphs: ``call``, a function with its own gradient rule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, GradientError, ShapeError
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Node
from graphc.ir.graph.interpret import Evaluator, Interpreter, live_nodes
from graphc.ir.op import REGISTRY, Attr, Attrs, ErrorSample, OpDef, Sample, Trait, Types
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.batch import BatchedOperand
from graphc.ops.batching import batched_graph
from graphc.ops.define import define
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.effects.state import untracked
from graphc.ops.movement.shape import filled
from graphc.ops.rules import show
from graphc.ops.samples import floats


class Inliner(Interpreter):
    """Interpreter that applies the ops of a graph under the active dispatcher: it appends them to the caller's graph,
    or computes them."""

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Apply one node's op to the caller's operands."""
        results = dispatch.apply(node.op, operands, node.attrs)
        return results if isinstance(results, tuple) else (results,)


def inline(graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return the outputs of ``graph`` for operands of the caller, by applying its ops one by one."""
    return Inliner().run(graph, arguments)


def graph_of(name: str, operands: Sequence[Any], make: Callable[..., Sequence[Any]]) -> Graph:
    """Return a graph of the op functions that ``make`` calls on arguments of the types of ``operands``."""
    graph = Graph(name)
    arguments = [graph.add_input(TensorType(x.dtype, tuple(x.shape)), f"x{i}") for i, x in enumerate(operands)]
    with dispatch.use(GraphDispatcher(graph)):
        graph.set_outputs(make(*arguments))
    return graph


def _check_argument(what: str, i: int, type: TensorType, expected: TensorType) -> None:
    if type.dtype is not expected.dtype:
        text = f"call: {what} {i} is {type.dtype.name}, the sub-graph takes {expected.dtype.name}"
        raise DTypeError(text, remedy="cast it")
    if type.shape != expected.shape:
        text = f"call: {what} {i} has shape {show(type.shape)}, the sub-graph takes {show(expected.shape)}"
        raise ShapeError(text, remedy="pass the shapes that the sub-graph was traced with")


def _check_gradient_graph(forward: Graph, backward: Graph, results: int) -> None:
    """Check that the backward graph takes the saved values and the gradients of the results."""
    saved, own_results = forward.outputs[results:], forward.outputs[:results]
    if len(backward.inputs) != len(saved) + len(own_results):
        what = f"call: the backward graph takes {len(backward.inputs)} arguments"
        remedy = "make it take the saved values, then the gradients of the results"
        raise ArgumentError(f"{what}, not {len(saved)} saved values and {len(own_results)} gradients", remedy=remedy)
    for i, (value, expected) in enumerate(zip((*saved, *own_results), backward.inputs, strict=True)):
        _check_argument("argument of the backward graph", i, value.type, expected.type)
    if len(backward.outputs) != len(forward.inputs):
        what = f"call: the backward graph gives {len(backward.outputs)} gradients for {len(forward.inputs)} operands"
        raise ArgumentError(what, remedy="return one per operand, zeros for operands without a gradient")
    for i, (gradient, operand) in enumerate(zip(backward.outputs, forward.inputs, strict=True)):
        if operand.dtype.is_differentiable:
            _check_argument("gradient", i, gradient.type, operand.type)


def _infer(*operands: TensorType, forward: Graph, backward: Graph, results: int, ordered: bool) -> Types:
    if len(operands) != len(forward.inputs):
        raise ArgumentError(f"call: {len(operands)} operands for a sub-graph with {len(forward.inputs)} arguments")
    for i, (type, value) in enumerate(zip(operands, forward.inputs, strict=True)):
        _check_argument("operand", i, type, value.type)
    if not 1 <= results <= len(forward.outputs):
        what = f"call: {results} results of a sub-graph with {len(forward.outputs)} outputs"
        raise AttributeValueError(what, remedy="count the outputs other than saved values in `results`")
    _check_gradient_graph(forward, backward, results)
    return tuple(value.type for value in forward.outputs)


def _reference(
    *operands: np.ndarray, forward: Graph, backward: Graph, results: int, ordered: bool
) -> tuple[np.ndarray, ...]:
    return tuple(np.array(array) for array in Evaluator().run(forward, operands))


def _gradient(
    g: Any, result: Any, *operands: Any, forward: Graph, backward: Graph, results: int, ordered: bool
) -> tuple[Any, ...]:
    """Apply the backward graph. Saved operands and results keep their history, for higher orders."""
    gradients = g if isinstance(g, tuple) else (g,)
    values = result if isinstance(result, tuple) else (result,)
    if ordered:
        if all(gradient is None for gradient in gradients[1:]):
            return (gradients[0], *(None for _ in operands[1:]))
        # Order the first call of the backward pass after the last one of the forward pass.
        gradients = (values[0] if gradients[0] is None else gradients[0], *gradients[1:])
    if any(gradient is not None for gradient in gradients[results:]):
        raise GradientError(
            "call: a second derivative would go through a value that forward computed and saved",
            remedy="save operands or results only, and recompute the rest in backward",
        )
    origins = dict(zip(forward.outputs[:results], values, strict=False)) | dict(
        zip(forward.inputs, operands, strict=True)
    )
    saved = [origins.get(v, values[i]) for i, v in enumerate(forward.outputs) if i >= results]
    result_gradients = [
        filled(0, v.dtype, v.shape) if gradient is None else gradient
        for gradient, v in zip(gradients[:results], forward.outputs, strict=False)
    ]
    return inline(backward, [*saved, *result_gradients])


def _decompose(*operands: Any, forward: Graph, backward: Graph, results: int, ordered: bool) -> Any:
    outputs = inline(forward, operands)
    return outputs[0] if len(outputs) == 1 else outputs


# ---- samples


def _graph(name: str, inputs: Sequence[TensorType], ops: Sequence[tuple[str, str]], outputs: str) -> Graph:
    """Build a small graph: inputs are a, b, ...; each op takes the listed letters and defines the next letter."""
    graph = Graph(name)
    values = {chr(97 + i): graph.add_input(t, chr(97 + i)) for i, t in enumerate(inputs)}
    for op, operands in ops:
        (result,) = emit(graph, REGISTRY[op], [values[letter] for letter in operands])
        values[chr(97 + len(values))] = result
    graph.set_outputs(values[letter] for letter in outputs)
    return graph


def _product(type: TensorType) -> dict[str, Any]:
    """Build a * b, which saves both operands."""
    forward = _graph("product", (type, type), [("mul", "ab")], "cab")
    backward = _graph("product_gradient", (type, type, type), [("mul", "cb"), ("mul", "ca")], "de")
    return {"forward": forward, "backward": backward, "results": 1}


def _exponential(type: TensorType) -> dict[str, Any]:
    """Build (exp(a), -a), which saves its first result."""
    forward = _graph("exponential", (type,), [("exp", "a"), ("neg", "a")], "bcb")
    backward = _graph("exponential_gradient", (type,) * 3, [("mul", "ab"), ("sub", "dc")], "e")
    return {"forward": forward, "backward": backward, "results": 2}


_WIDE = TensorType(float64, (2, 3))
_F = TensorType(float32, (2, 3))


def _identity(results: int = 1, gradient_inputs: str = "a", gradients: str = "a") -> dict[str, Any]:
    forward = _graph("identity", (_F,), [], "a")
    backward = _graph("identity_gradient", (_F,) * len(gradient_inputs), [], gradients)
    return {"forward": forward, "backward": backward, "results": results}


def _call_samples() -> list[Sample]:
    return [
        Sample((floats((2, 3)), floats((2, 3), seed=1)), _product(_WIDE)),
        Sample((floats((2, 3)),), _exponential(_WIDE)),
        Sample((floats(()),), _exponential(TensorType(float64))),
    ]


def _batched_call(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    """Batch both sub-graphs; an operand shared by all entries gets the sum of their gradients."""
    flags = [e.batched for e in operands]
    forward = batched_graph(attrs["forward"], size, flags)
    backward = batched_graph(attrs["backward"], size, [True] * len(attrs["backward"].inputs), flags)
    if attrs["ordered"]:
        raise ArgumentError(
            "vmap: the function calls Python, which does not support batches", remedy="write a loop instead of vmap"
        )
    return call(*(e.value for e in operands), forward=forward, backward=backward, results=attrs["results"])


call = define(
    "call",
    "Applies a sub-graph that has its own gradient rule. Its first outputs are the results, the others are saved for "
    "the backward graph, which takes the saved values, then the gradients of the results, and returns the gradients of "
    "the operands.",
    "*operands",
    _infer,
    attrs=[
        Attr("forward", "graph", "results and saved values from the operands"),
        Attr("backward", "graph", "gradients of the operands from saved values and gradients of the results"),
        Attr("results", "int", "how many outputs of the forward graph are results"),
        Attr("ordered", "bool", "whether operand 0 and result 0 are tokens, see host_call", False, False),
    ],
    reference=_reference,
    vjp=_gradient,
    traits=Trait.PURE | Trait.ORDERED,
    decompose=_decompose,
    runs=lambda attrs: (attrs["forward"], 1),
    batch=_batched_call,
    samples=_call_samples,
    error_samples=(
        ErrorSample((), "call: 0 operands for a sub-graph with 1 arguments", _identity(), ArgumentError),
        ErrorSample((_WIDE,), "operand 0 is f64, the sub-graph takes f32", _identity(), DTypeError),
        ErrorSample((TensorType(float32, (3, 2)),), "operand 0 has shape [3,2], the sub-g", _identity(), ShapeError),
        ErrorSample((_F,), "2 results of a sub-graph with 1 outputs", _identity(2), AttributeValueError),
        ErrorSample((_F,), "takes 2 arguments, not 0 saved values and 1 grad", _identity(1, "ab"), ArgumentError),
        ErrorSample((_F,), "gives 2 gradients for 1 operands", _identity(1, "a", "aa"), ArgumentError),
    ),
)


def has_all_tangents(graph: Graph) -> bool:
    """Check whether the gradient rules of a graph determine the tangents of the traced code.

    They do not where the graph contains only the gradient of a custom Function with its own tangent rule, or a value
    computed without gradients, which has tangents nevertheless. Such a value does not matter if it leads only to writes
    of states.
    """
    return _has_all_tangents(graph, live_nodes(graph, graph.outputs))


def _has_all_tangents(graph: Graph, visible: Collection[Node] | None) -> bool:
    for node in graph.nodes():
        is_hidden = node.op is untracked.op and visible is not None and node not in visible
        if node.op is call.op or (node.op.jvp is not None and not is_hidden):
            return False
        inner = (value for value in node.attrs.values() if isinstance(value, Graph))
        if not all(_has_all_tangents(value, None) for value in inner):
            return False
    return True
