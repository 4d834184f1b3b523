"""Rules of ONNX's training operators (ai.onnx.preview.training): optimizer steps, and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.autograd.engine import grad
from graphc.base.errors import AttributeValueError
from graphc.interop.onnx.call import Call
from graphc.interop.onnx.graph import ABSENT, OnnxGraph, OnnxNode, Port, captured
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.tape.grad_mode import enable_grad
from graphc.tensors.free_functions import where
from graphc.tensors.tensor import Tensor

DOMAIN = "ai.onnx.preview.training"
Tensors = Sequence[Tensor]


def _each(tensors: Tensors, roles: int, update: Callable[..., tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Apply ``update`` to each parameter. Returns results by role: all new parameters, then all new states."""
    count = len(tensors) // roles
    rows = [update(*tensors[i::count]) for i in range(count)]
    return tuple([t for column in zip(*rows, strict=True) for t in column])


@op("Adagrad", domain=DOMAIN)
def adagrad(
    R: Tensor,
    T: Tensor,
    *tensors: Tensor,
    decay_factor: float = 0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0,
) -> tuple[Tensor, ...]:
    """Take parameters, gradients and accumulated squares. Return new parameters, then new squares."""
    rate = R / (1 + T * decay_factor)

    def update(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        g = g + x * norm_coefficient
        h = h + g * g
        return x - (g / (h.sqrt() + epsilon) * rate).to(x.dtype), h

    return _each(tensors, 3, update)


@op("Adam", domain=DOMAIN)
def adam(
    R: Tensor,
    T: Tensor,
    *tensors: Tensor,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0,
    norm_coefficient_post: float = 0,
) -> tuple[Tensor, ...]:
    """Take parameters, gradients, and averages of gradients and of their squares. Return new parameters and
    averages."""
    steps = T.to(R.dtype)
    started = where(steps > 0, (1 - beta**steps).sqrt() / (1 - alpha**steps), 1.0)
    rate = R * started

    def update(x: Tensor, g: Tensor, v: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        g = g + x * norm_coefficient
        v = v * alpha + g * (1 - alpha)
        h = h * beta + g * g * (1 - beta)
        after = x - (v / (h.sqrt() + epsilon) * rate).to(x.dtype)
        return after * (1 - norm_coefficient_post), v, h

    return _each(tensors, 4, update)


@op("Momentum", domain=DOMAIN)
def momentum(
    R: Tensor, T: Tensor, *tensors: Tensor, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> tuple[Tensor, ...]:
    """Take parameters, gradients and momenta. Return new parameters, then new momenta."""
    if mode not in ("standard", "nesterov"):
        raise AttributeValueError(f"Momentum: mode {mode!r}", remedy="use standard or nesterov")
    factor = where(T > 0, beta, 1.0)

    def update(x: Tensor, g: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        g = g + x * norm_coefficient
        v = v * alpha + g * factor.to(g.dtype)
        step = g + v * alpha if mode == "nesterov" else v
        return x - (step * R).to(x.dtype), v

    return _each(tensors, 3, update)


@op("Gradient", domain=DOMAIN, values=True)
def gradient(*inputs: Value, xs: Sequence[str], y: str, zs: Sequence[str] = (), call: Call) -> tuple[Value, ...]:
    """Return the gradients of the value ``y`` of the graph with respect to the values ``xs``.

    ``zs``, where given, are the other values from which ``y`` is computed.
    """
    segment = call.kept(lambda: call.runner_of(_segment(call.runner.graph, [*xs, *zs], y)))
    with enable_grad():
        leaves = [v.tensor.detach().requires_grad_() for v in inputs[: len(xs)]]
        operands = [Value(v.element, t) for v, t in zip(inputs, leaves, strict=False)]
        (result,) = segment.run(call.scope, [*operands, *inputs[len(xs) :]])
        grads = grad(result.tensor.sum(), leaves)
    return tuple([Value(v.element, g) for v, g in zip(operands, grads, strict=True)])


def _segment(graph: OnnxGraph, inputs: Sequence[str], result: str) -> OnnxGraph:
    """Return the subgraph that computes a value from others."""
    needed, nodes = {result}, list[OnnxNode]()
    for node in reversed(graph.nodes):
        computed = set(node.outputs) - set(inputs)
        if computed & needed:
            nodes.insert(0, node)
            inner = {name for g in node.graphs() for name in captured(g)}
            needed |= {n for n in (*node.inputs, *inner) if n != ABSENT}
    ports = [Port(name, "other", None, None) for name in (*inputs, result)]
    return OnnxGraph(graph.name, ports[:-1], ports[-1:], nodes, {})
