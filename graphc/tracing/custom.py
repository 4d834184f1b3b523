"""Custom functions in a trace: a ``call`` of two sub-graphs, or a host call if only Python can run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from graphc.autograd.function import reduced
from graphc.base.errors import GradientError, TraceError, ValueNeededError
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.effects.state import stop_gradient
from graphc.ops.movement.shape import filled
from graphc.ops.pointwise import elementwise as ew
from graphc.tape.grad_mode import is_grad_enabled, no_grad
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.host import no_python, opaque_call
from graphc.tracing.tracer import Tracer

Rules = tuple[Callable[..., Any], Callable[..., Any]]
"""The forward and the backward function."""


def apply(
    tracer: Tracer, name: str, context: Any, operands: Sequence[Any], rules: Rules, again: Callable[..., Any] | None
) -> Any:
    """Apply a custom function in a trace. ``again`` applies it in eager mode; None if it may not run as a host call."""
    if again is not None and getattr(getattr(again, "__self__", None), "opaque", False):
        return opaque_call(tracer, name, again, operands)
    try:
        if not is_grad_enabled() or not any(isinstance(a, Tensor) and a.dtype.is_differentiable for a in operands):
            with no_grad():
                return rules[0](*operands)
        return _CustomCall(tracer, name, context).run(operands, *rules)
    except ValueNeededError as error:
        if again is None:
            raise
        if tracer.host is None:
            raise no_python(tracer, name, str(error).partition("\n")[0]) from error
        return opaque_call(tracer, name, again, operands)


class _CustomCall:
    """The trace of one application of a custom function."""

    def __init__(self, tracer: Tracer, name: str, context: Any):
        self.tracer = tracer
        self.name = name
        self.context = context
        self.forward = Tracer(Graph(f"{name}.forward"), parent=tracer)
        self.backward = Tracer(Graph(f"{name}.backward"), parent=self.forward)
        self.forward.differentiable = False

    def run(self, operands: Sequence[Any], forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
        """Trace the function and return its results, nested as forward returned them."""
        with dispatch.use(self.forward), no_grad():
            tensors = [t for t in operands if isinstance(t, Tensor)]
            for tensor in tensors:
                self.forward.local(tensor)
            self.context.needs_input_grad = tuple(isinstance(a, Tensor) and a.dtype.is_differentiable for a in operands)
            output = forward(*operands)
            results = list(output) if isinstance(output, tuple) else [output]
            values = [refresh(self.forward.local(r))._data for r in results if isinstance(r, Tensor)]
            self.context.keep_traced(lambda t: Tensor._wrap(refresh(self.forward.local(t))._data))
        with dispatch.use(self.backward):
            gradients = self._gradients(operands, results, backward)
        self.context._for_forward = None
        self._check_writes()
        saved = [t._data for t in self.backward.origins]
        arguments = list(self.backward.lifted.values())
        self.backward.graph.inputs[:] = [*arguments, *(v for v in self.backward.graph.inputs if v not in arguments)]
        self.backward.graph.set_outputs(gradients)
        self.forward.graph.set_outputs([*values, *saved])
        attrs = {"forward": self.forward.graph, "backward": self.backward.graph, "results": len(values)}
        # Imported here: its module imports graphs and interpreters, which few traces need.
        call = import_module("graphc.ops.flow.control").call
        outputs = self.tracer.apply(call.op, self.forward.origins, attrs)
        outputs = list(outputs if isinstance(outputs, tuple) else (outputs,))[: len(values)]
        finished = [self._finish(r, outputs.pop(0)) if isinstance(r, Tensor) else r for r in results]
        return tuple(finished) if isinstance(output, tuple) else finished[0]

    def _gradients(self, operands: Sequence[Any], results: list[Any], backward: Callable[..., Any]) -> list[Value]:
        """Return the gradients of the forward graph's arguments, as values of the backward graph."""
        incoming: list[Any] = []
        for i, result in enumerate(results):
            if not isinstance(result, Tensor):
                incoming.append(None)
                continue
            gradient = Tensor._wrap(self.backward.graph.add_input(TensorType(result.dtype, result.shape), f"grad.{i}"))
            plain = result.dtype.is_differentiable and not self._has_no_gradient(result)
            incoming.append(gradient if plain else filled(0, result.dtype, result.shape))
        returned = backward(self.context, *incoming)
        returned = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if len(returned) < len(operands) or any(extra is not None for extra in returned[len(operands) :]):
            raise GradientError(f"{self.name}.backward returned {len(returned)} gradients, expected {len(operands)}")
        sums: dict[Value, Any] = {}
        for i, (operand, gradient) in enumerate(zip(operands, returned, strict=False)):
            if isinstance(operand, Tensor) and gradient is not None and operand.dtype.is_differentiable:
                argument = self.forward.captured[id(operand)].value
                gradient = reduced(f"{self.name}.backward", i, gradient, operand.shape)
                sums[argument] = ew.add(sums[argument], gradient) if argument in sums else gradient
        arguments = list(self.forward.graph.inputs)
        values = [self.backward.local(sums[a] if a in sums else filled(0, a.dtype, a.shape))._data for a in arguments]
        return [*values, *(filled(0, a.dtype, a.shape)._data for a in self.forward.graph.inputs[len(arguments) :])]

    def _has_no_gradient(self, result: Any) -> bool:
        return any(result is t for t in self.context._non_differentiable)

    def _check_writes(self) -> None:
        for entry in (*self.forward.written(), *self.backward.written()):
            if not any(entry.tensor is t for t in self.context._dirty):
                raise TraceError(
                    f"{self.name} writes to a tensor from outside",
                    origin=entry.origin.describe() if entry.origin else None,
                    remedy="return the new value, or ctx.mark_dirty(tensor) for an argument that is returned",
                )

    def _finish(self, result: Any, output: Tensor) -> Any:
        if any(result is t for t in self.context._dirty):
            self.tracer.assign(result, output)
            return result
        return stop_gradient(output) if output.dtype.is_differentiable and self._has_no_gradient(result) else output
