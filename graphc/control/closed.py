"""Functions without outside tensors: a trace makes the tensors that a function uses from outside its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.base.errors import TraceError
from graphc.base.interruptions import kept_outside
from graphc.control.vmap import ExampleTracer
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.flow.control import inline
from graphc.tape.grad_mode import enable_grad
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh


def closed(function: Callable[..., Any], *args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Trace a function once, and return ``pure(*args, outside)`` with the list ``outside`` of the tensors it uses.

    ``args`` are nested containers of tensors; ``pure`` takes others of the same nesting, shapes and types, and any
    tensors in place of those from outside.

    Raises:
        TraceError: the function writes to tensors from outside, draws random numbers among them.
    """
    leaves, form = flatten(args)
    tracer = ExampleTracer(Graph("closed"), front())
    examples = [
        Tensor._wrap(tracer.graph.add_input(TensorType(x.dtype, tuple(x.shape)), f"x{i}")) for i, x in enumerate(leaves)
    ]
    for example in examples:
        example._requires_grad = example.dtype.is_differentiable
    with kept_outside(), dispatch.use(tracer), enable_grad():
        returned, shape = flatten(function(*unflatten(form, examples)))
        results = [refresh(tracer.local(x))._data for x in returned]
    for entry in tracer.written():
        origin = entry.origin.describe() if entry.origin else None
        raise TraceError(
            "the function writes to a tensor from outside, or draws random numbers",
            origin=origin,
            remedy="make it an argument, or draw the numbers before",
        )
    tracer.graph.set_outputs(results)

    def pure(*args: Any) -> Any:
        *inputs, outside = args
        return unflatten(shape, list(inline(tracer.graph, [*flatten(tuple(inputs))[0], *outside])))

    return pure, list(tracer.origins)
