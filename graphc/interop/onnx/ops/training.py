"""ONNX operators of training (ai.onnx.preview.training): steps of optimizers, and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.base.errors import AttributeValueError
from graphc.eager.engine import grad
from graphc.interop.onnx.call import Call
from graphc.interop.onnx.graph import ABSENT, Node, OnnxGraph, Port, captured
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.tape.grad_mode import enable_grad
from graphc.tensors.free_functions import where
from graphc.tensors.tensor import Tensor

DOMAIN = "ai.onnx.preview.training"
Tensors = Sequence[Tensor]


def _each(tensors: Tensors, roles: int, update: Callable[..., tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """The results of ``update`` for each parameter, by role: all new parameters, then all new states."""
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
    """Parameters, then gradients, then accumulated squares; new parameters, then new squares."""
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
    """Parameters, gradients, averages of gradients and of their squares; all but the gradients anew."""
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
    """Parameters, gradients and momenta; new parameters, then new momenta."""
    if mode not in ("standard", "nesterov"):
        raise AttributeValueError(f"Momentum: mode {mode!r}", remedy="standard or nesterov")
    share = where(T > 0, beta, 1.0)

    def update(x: Tensor, g: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        g = g + x * norm_coefficient
        v = v * alpha + g * share.to(g.dtype)
        step = g + v * alpha if mode == "nesterov" else v
        return x - (step * R).to(x.dtype), v

    return _each(tensors, 3, update)


@op("Gradient", domain=DOMAIN, values=True)
def gradient(*inputs: Value, xs: Sequence[str], y: str, zs: Sequence[str] = (), call: Call) -> tuple[Value, ...]:
    """Of the value ``y`` of the graph, by the values ``xs``; with ``zs`` these are all that it is computed of."""
    part = call.kept(lambda: call.runner_of(_part(call.runner.graph, [*xs, *zs], y)))
    with enable_grad():
        leaves = [v.tensor.detach().requires_grad_() for v in inputs[: len(xs)]]
        given = [Value(v.element, t) for v, t in zip(inputs, leaves, strict=False)]
        (found,) = part.run(call.scope, [*given, *inputs[len(xs) :]])
        grads = grad(found.tensor.sum(), leaves)
    return tuple([Value(v.element, g) for v, g in zip(given, grads, strict=True)])


def _part(graph: OnnxGraph, inputs: Sequence[str], result: str) -> OnnxGraph:
    """What of a graph computes a value from others."""
    needed, nodes = {result}, list[Node]()
    for node in reversed(graph.nodes):
        made = set(node.outputs) - set(inputs)
        if made & needed:
            nodes.insert(0, node)
            inner = {name for g in node.graphs() for name in captured(g)}
            needed |= {n for n in (*node.inputs, *inner) if n != ABSENT}
    ports = [Port(name, "other", None, None) for name in (*inputs, result)]
    return OnnxGraph(graph.name, ports[:-1], ports[-1:], nodes, {})
