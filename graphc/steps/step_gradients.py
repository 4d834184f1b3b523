"""Processing of gradients in a training step before the optimizers: sums, loss scale, clipping, and their norm."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from graphc.base.dtypes import float32, int64
from graphc.base.errors import HookError
from graphc.calls.bindings import Slot
from graphc.ir.graph.graph import Graph, Value, input_path
from graphc.ir.types import TensorType
from graphc.nn.clip_grad import norm_of
from graphc.ops.define import as_type
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement.shape import broadcast_to, filled
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.steps.step_options import DynamicScale, StepOptions
from graphc.steps.step_state import StepState
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor
from graphc.tracing.host import run_gradient_hook
from graphc.tracing.tracer import Tracer

SCALE = "compile_step.loss_scale"
"""Path of the loss scale in graphs, and prefix of the path of its growth tracker."""


def seed_of(options: StepOptions, graph: Graph, loss: Value) -> Value:
    """Return the initial gradient of a loss: the loss scale divided by the number of micro-batches."""
    scale, count = options.loss_scale, options.accumulate
    with use(GraphDispatcher(graph, prefix=f"grad.{loss.name}.")):
        if isinstance(scale, DynamicScale):
            seed: Any = as_type(scale_argument(graph), loss.dtype)
            seed = seed if count == 1 else ew.div(seed, graph.scalar(count, loss.dtype))
        else:
            seed = graph.scalar((1.0 if scale is None else scale) / count, loss.dtype)
        return broadcast_to(seed, shape=loss.shape) if loss.shape else seed


def scale_argument(graph: Graph) -> Value:
    """Return the loss scale as an argument of a graph; add it at the first use."""
    existing = [v for v in graph.inputs if input_path(v) == SCALE]
    return existing[0] if existing else graph.add_input(TensorType(float32), SCALE, "state", SCALE)


class Gradients:
    """The gradients of one graph as tensors of its trace, by the argument of the parameter."""

    def __init__(self, options: StepOptions, state: StepState, tracer: Tracer, slots: dict[str, Slot]):
        self.options = options
        self.state = state
        self.tracer = tracer
        self.slots = slots
        """Slots of the program's states by path, including those added here."""
        self.by_argument: dict[Value, Any] = {}
        self.finite: Any = None
        """Whether all gradients are finite; set with a dynamic loss scale."""
        self.norm: Any = None
        """Norm of the gradients before clipping; set with ``clip_norm`` or ``grad_norm``."""

    def take(self, parameters: Mapping[Value, tuple[Value, Any]], updates: bool) -> None:
        """Start from the gradients of a backward pass: apply the parameters' hooks and add the sums of micro-batches.

        Where the step updates the parameters, reset the sums.
        """
        if self.state.scaling:
            self._scaling("scale", SCALE)
        for argument, (gradient, param) in parameters.items():
            value: Any = Tensor._wrap(gradient)
            for hook in list((param._hooks or {}).values()):
                value = run_gradient_hook(self.tracer, "hook of a parameter", hook, value)
            total = self._sum(argument, param) if self.options.accumulate > 1 else None
            if total is not None:
                value = Tensor._wrap(total) + value
            for hook in list((param._post_hooks or {}).values()):
                after = functools.partial(accumulated, param, hook)
                value = run_gradient_hook(self.tracer, "hook after accumulation", after, value)
            self.by_argument[argument] = value
            if total is not None:
                self.tracer.write(total, filled(0, total.dtype, total.shape) if updates else value)

    def _sum(self, argument: Value, param: Any) -> Value:
        """Return the sum of a parameter's gradients as an argument of the graph."""
        tensor, path = self.state.sum_of(param), f"compile_step.sum.{input_path(argument)}"
        self.slots[path] = Slot(tensor, (self.state.sums, id(param)), f"state {path!r}")
        return self.tracer.graph.add_input(TensorType(tensor.dtype, tensor.shape), path, "state", path)

    def prepare(self, parameters: Mapping[Value, tuple[Value, Any]]) -> None:
        """Average the gradients over all processes, divide them by the loss scale, and clip them."""
        options = self.options
        if self.state.reductions.modules:
            params = {argument: param for argument, (_, param) in parameters.items()}
            self.by_argument = self.state.reductions.append(self.tracer, self.by_argument, params)
        if options.loss_scale is not None:
            self._unscale(options.loss_scale)
        if options.clip_value is not None:
            limit = options.clip_value
            self.by_argument = {a: composite.clamp(g, -limit, limit) for a, g in self.by_argument.items()}
        if options.clip_norm is not None or options.grad_norm:
            self.norm = norm_of([*self.by_argument.values()], options.norm_type)
        if options.clip_norm is not None:
            factor = ew.minimum(ew.div(options.clip_norm, ew.add(self.norm, 1e-6)), 1.0)
            self.by_argument = {a: as_type(ew.mul(g, factor), g.dtype) for a, g in self.by_argument.items()}

    def decisive(self) -> list[Any]:
        """Return the values that must be finite in a good step: the gradients, or their norm.

        Return none with a dynamic loss scale, which overflows as part of its search.
        """
        if self.state.scaling:
            return []
        is_norm = self.norm is not None and self.options.norm_type >= 1
        return [self.norm] if is_norm else list(self.by_argument.values())

    def _unscale(self, scale: Any) -> None:
        if not isinstance(scale, DynamicScale):
            self.by_argument = {a: ew.mul(g, 1.0 / scale) for a, g in self.by_argument.items()}
            return
        inverse = ew.div(1.0, Tensor._wrap(self._scaling("scale", SCALE)))
        self.by_argument = {a: ew.mul(g, as_type(inverse, g.dtype)) for a, g in self.by_argument.items()}
        for gradient in self.by_argument.values():
            one = mathematics.isfinite(gradient).all()
            self.finite = one if self.finite is None else ew.logical_and(self.finite, one)
        self._follow(scale)

    def _scaling(self, name: str, path: str) -> Value:
        tensor, graph = self.state.scaling[name], self.tracer.graph
        self.slots[path] = Slot(tensor, (self.state.scaling, name), f"state {path!r}")
        if name == "scale":
            return scale_argument(graph)
        return graph.add_input(TensorType(int64), path, "state", path)

    def _follow(self, rule: DynamicScale) -> None:
        """Write the scale of the next call, as torch.amp.GradScaler does."""
        scale, tracker = scale_argument(self.tracer.graph), self._scaling("growth_tracker", f"{SCALE}.growth_tracker")
        now, count = Tensor._wrap(scale), Tensor._wrap(tracker) + 1
        grown = ew.mul(now, rule.growth_factor)
        grows = ew.logical_and(count >= rule.growth_interval, mathematics.isfinite(grown))
        after = ew.where(self.finite, ew.where(grows, grown, now), ew.mul(now, rule.backoff_factor))
        self.tracer.write(scale, after)
        goes_on = ew.logical_and(self.finite, count < rule.growth_interval)
        self.tracer.write(tracker, ew.where(goes_on, count, count * 0))


def accumulated(param: Any, hook: Any, gradient: Tensor) -> Tensor:
    """Run a hook with the gradient in ``param.grad``, and return the gradient left there by the hook."""
    before, param._grad, version = param._grad, gradient.clone(), param._version
    try:
        hook(param)
        changed = param._grad
    finally:
        param._grad = before
    if changed is None or param._version != version:
        raise HookError(
            "compile_step: a hook after accumulation wrote to the parameter or removed its gradient, although the "
            "step still has to update it",
            remedy="change only `grad`; or call loss.backward() and optimizer.step() in a loop",
        )
    return changed
