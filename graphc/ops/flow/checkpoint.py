"""Recomputation: ``later`` delays a value, and the gradient of ``checkpoint`` runs its graph a second time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64
from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.base.location import UNKNOWN
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import Evaluator
from graphc.ir.op import REGISTRY, Attr, Attrs, ErrorSample, OpDef, Sample, Trait, Types
from graphc.ir.types import TensorType
from graphc.ops import bounds, dispatch
from graphc.ops.autodiff import vjp_graph
from graphc.ops.batch import BatchedOperand
from graphc.ops.batching import batched_graph
from graphc.ops.define import define
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.flow.control import Inliner
from graphc.ops.movement.shape import filled
from graphc.ops.rules import show
from graphc.ops.samples import booleans, floats, integers, plain

# ---- later


def _batched_later(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    x, after = operands
    return later(x.value, after.value) if x.batched else None


later = define(
    "later",
    "Returns x, and delays its computation until `after` is computed. The elements of `after` are not read.",
    "x after",
    lambda x, after: x,
    reference=lambda x, after: x,
    vjp=(lambda g, result, x, after: g, None),
    lower=lambda c, index, x, after: c.load(x, index),
    traits=Trait.PURE | Trait.VIEW | Trait.WAITS,
    bounds=bounds.of_first,
    batch=_batched_later,
    samples=lambda: [
        Sample((floats((2, 3)), floats((4,), seed=1))),
        Sample((floats((), "float32"), floats((2,), "float32", seed=1))),
        Sample((floats((0, 2), "float32"), floats((1,), "float32"))),
        plain(integers((5,), "int8"), floats((2,))),
        plain(booleans((3,)), integers((2,), "int64")),
    ],
    error_samples=(ErrorSample((TensorType(float32, (2,)),), "later takes 2 operands, got 1"),),
)


# ---- checkpoint


def _infer(*operands: TensorType, body: Graph, results: int) -> Types:
    if len(operands) != len(body.inputs):
        raise ArgumentError(f"checkpoint: {len(operands)} operands for a sub-graph with {len(body.inputs)} arguments")
    for i, (type, value) in enumerate(zip(operands, body.inputs, strict=True)):
        if type.dtype is not value.dtype:
            raise DTypeError(f"checkpoint: operand {i} is {type.dtype.name}, the sub-graph takes {value.dtype.name}")
        if type.shape != value.shape:
            text = f"checkpoint: operand {i} has shape {show(type.shape)}, the sub-graph takes {show(value.shape)}"
            raise ShapeError(text, remedy="pass the shapes that the sub-graph was traced with")
    if not 1 <= results <= len(body.outputs):
        raise ArgumentError(f"checkpoint: {results} results of a sub-graph with {len(body.outputs)} outputs")
    return tuple(value.type for value in body.outputs)


def _reference(*operands: np.ndarray, body: Graph, results: int) -> tuple[np.ndarray, ...]:
    return tuple(np.array(array) for array in Evaluator().run(body, operands))


class _Located(Inliner):
    """Inliner that keeps the locations of nodes, and takes precomputed results for some of them."""

    def __init__(self, precomputed: Mapping[Node, Sequence[Any]] | None = None):
        self.precomputed = precomputed or {}

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Return the node's precomputed results, or apply its op."""
        results, active = self.precomputed.get(node), dispatch.current()
        if results is not None:
            return results
        if node.location == UNKNOWN:
            return super().apply(node, operands)
        if (locate := getattr(active, "locate", None)) is not None:  # a gradient that is traced
            site = locate(None)
            locate((node.location, site[1] if site else ""))
            applied = super().apply(node, operands)
            locate(site)
            return applied
        if not isinstance(active, GraphDispatcher):
            return super().apply(node, operands)
        with dispatch.use(GraphDispatcher(active.graph, node.location, active.prefix)):
            return super().apply(node, operands)


def _gradient(g: Any, result: Any, *operands: Any, body: Graph, results: int) -> tuple[Any, ...]:
    """Run the body again on operands delayed until the gradients exist, then its gradient rules."""
    gradients, values = (g, result) if isinstance(g, tuple) else ((g,), (result,))
    first = next(gradient for gradient in gradients if gradient is not None)
    delayed = [later(operand, first) for operand in operands]
    chosen = [i for i, gradient in enumerate(gradients) if gradient is not None]
    differentiable = [i for i, v in enumerate(body.inputs) if v.dtype.is_differentiable]
    joint = vjp_graph(body, [body.inputs[i] for i in differentiable], chosen)
    outputs = dict(zip(body.outputs, values, strict=True))
    precomputed: dict[Node, Sequence[Any]] = {}
    for node, copied in zip(body.nodes(), joint.nodes(), strict=False):
        assert node.op is copied.op
        if _runs_once(node):
            precomputed[copied] = [outputs.get(v) for v in node.results]
    gradients_out = _Located(precomputed).run(joint, [*delayed, *(gradients[i] for i in chosen)])[len(body.outputs) :]
    by_input = dict(zip(differentiable, gradients_out, strict=True))
    return tuple(by_input[i] if i in by_input else filled(0, v.dtype, v.shape) for i, v in enumerate(body.inputs))


def kept_values(body: Graph) -> list[Value]:
    """Return the values that a checkpoint saves besides its results: results of nodes that must not run twice, if
    anything reads them."""
    return [v for n in body.nodes() if _runs_once(n) for v in n.results if body.is_used(v)]


def _runs_once(node: Node) -> bool:
    """Check whether a node, or one in its sub-graphs, has effects besides its results."""
    if node.op.decompose is None:
        return not node.op.has(Trait.PURE)
    inner = [value for value in node.attrs.values() if isinstance(value, Graph)]
    return any(_runs_once(n) for graph in inner for n in graph.nodes())


def _decompose(*operands: Any, body: Graph, results: int) -> Any:
    outputs = _Located().run(body, operands)
    return outputs[0] if len(outputs) == 1 else outputs


def _batched_checkpoint(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    body = batched_graph(attrs["body"], size, [e.batched for e in operands])
    return checkpoint(*(e.value for e in operands), body=body, results=attrs["results"])


def _sample_graph(type: TensorType, ops: Sequence[tuple[str, str]], outputs: str) -> Graph:
    """Build a graph of two arguments a and b; each op takes the listed letters and defines the next letter."""
    graph = Graph("body")
    values = {letter: graph.add_input(type, letter) for letter in "ab"}
    for op, operands in ops:
        (result,) = emit(graph, REGISTRY[op], [values[letter] for letter in operands])
        values[chr(97 + len(values))] = result
    graph.set_outputs(values[letter] for letter in outputs)
    return graph


_WIDE, _F = TensorType(float64, (2, 3)), TensorType(float32, (2, 3))


def _product(type: TensorType, outputs: str = "e", results: int = 1) -> dict[str, Any]:
    """Build exp(a * b) * a."""
    return {"body": _sample_graph(type, [("mul", "ab"), ("exp", "c"), ("mul", "da")], outputs), "results": results}


checkpoint = define(
    "checkpoint",
    "Applies a sub-graph without saving values for its gradient, which computes them again from the operands. Outputs "
    "after the first `results` belong to nodes that run once, whoever reads them.",
    "*operands",
    _infer,
    attrs=[
        Attr("body", "graph", "the results from the operands"),
        Attr("results", "int", "how many outputs of the sub-graph are results"),
    ],
    reference=_reference,
    vjp=_gradient,
    decompose=_decompose,
    runs=lambda attrs: (attrs["body"], 1),
    batch=_batched_checkpoint,
    samples=lambda: [
        Sample((floats((2, 3)), floats((2, 3), seed=1)), _product(_WIDE)),
        Sample((floats((2, 3)), floats((2, 3), seed=1)), _product(_WIDE, "ce", 2)),
        Sample((floats(()), floats((), seed=1)), _product(TensorType(float64))),
    ],
    error_samples=(
        ErrorSample((), "checkpoint: 0 operands for a sub-graph with 2 arguments", _product(_F), ArgumentError),
        ErrorSample((_F, _WIDE), "operand 1 is f64, the sub-graph takes f32", _product(_F), DTypeError),
        ErrorSample(
            (_F, TensorType(float32, (3, 2))), "operand 1 has shape [3,2], the sub-g", _product(_F), ShapeError
        ),
        ErrorSample(
            (_F, _F), "checkpoint: 2 results of a sub-graph with 1 outputs", _product(_F, "e", 2), ArgumentError
        ),
    ),
)
