"""What a training step does with gradients before the optimizers see them: sums, loss scale, limits, and their norm."""

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
from graphc.ops import elementwise as ew
from graphc.ops import math as mathematics
from graphc.ops.define import as_type
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.shape import broadcast_to, filled
from graphc.steps.step_options import DynamicScale, StepOptions
from graphc.steps.step_state import StepState
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor
from graphc.tracing.host import run_gradient_hook
from graphc.tracing.tracer import Tracer

SCALE = "compile_step.loss_scale"
"""Path of the loss scale in graphs; the count of finite updates stands below it."""


def seed_of(options: StepOptions, graph: Graph, loss: Value) -> Value:
    """The gradient of a loss: 1, divided by the number of micro-batches and times the loss scale."""
    scale, count = options.loss_scale, options.accumulate
    with use(GraphDispatcher(graph, prefix=f"grad.{loss.name}.")):
        if isinstance(scale, DynamicScale):
            found: Any = as_type(scale_argument(graph), loss.dtype)
            found = found if count == 1 else ew.div(found, graph.scalar(count, loss.dtype))
        else:
            found = graph.scalar((1.0 if scale is None else scale) / count, loss.dtype)
        return broadcast_to(found, shape=loss.shape) if loss.shape else found


def scale_argument(graph: Graph) -> Value:
    """The loss scale as an argument of a graph."""
    known = [v for v in graph.inputs if input_path(v) == SCALE]
    return known[0] if known else graph.add_input(TensorType(float32), SCALE, "state", SCALE)


class Gradients:
    """The gradients of one graph, as tensors of its trace, by the argument that stands for the parameter."""

    def __init__(self, options: StepOptions, state: StepState, tracer: Tracer, slots: dict[str, Slot]):
        self.options = options
        self.state = state
        self.tracer = tracer
        self.slots = slots
        """Where the program finds its states, by path; those that are added here, too."""
        self.found: dict[Value, Any] = {}
        self.finite: Any = None
        """Whether all gradients are finite, where the loss scale asks."""
        self.norm: Any = None
        """Their norm before it was limited, where it is asked for."""

    def take(self, parameters: Mapping[Value, tuple[Value, Any]], updates: bool) -> None:
        """Begins with the gradients of a backward pass, after the hooks of the parameters, added to the sums of micro-
        batches; where the parameters are updated then, the sums begin anew."""
        if self.state.scaling:
            self._scaling("scale", SCALE)
        for argument, (gradient, param) in parameters.items():
            found: Any = Tensor._wrap(gradient)
            for hook in list((param._hooks or {}).values()):
                found = run_gradient_hook(self.tracer, "hook of a parameter", hook, found)
            known = self._sum(argument, param) if self.options.accumulate > 1 else None
            if known is not None:
                found = Tensor._wrap(known) + found
            for hook in list((param._post_hooks or {}).values()):
                after = functools.partial(accumulated, param, hook)
                found = run_gradient_hook(self.tracer, "hook after accumulation", after, found)
            self.found[argument] = found
            if known is not None:
                self.tracer.write(known, filled(0, known.dtype, known.shape) if updates else found)

    def _sum(self, argument: Value, param: Any) -> Value:
        """The sum of the gradients of a parameter as an argument of the graph."""
        tensor, path = self.state.sum_of(param), f"compile_step.sum.{input_path(argument)}"
        self.slots[path] = Slot(tensor, (self.state.sums, id(param)), f"state {path!r}")
        return self.tracer.graph.add_input(TensorType(tensor.dtype, tensor.shape), path, "state", path)

    def prepare(self, parameters: Mapping[Value, tuple[Value, Any]]) -> None:
        """Makes them the means of all processes, takes the loss scale out of them, and limits them."""
        options = self.options
        if self.state.reductions.modules:
            params = {argument: param for argument, (_, param) in parameters.items()}
            self.found = self.state.reductions.append(self.tracer, self.found, params)
        if options.loss_scale is not None:
            self._unscale(options.loss_scale)
        if options.clip_value is not None:
            limit = options.clip_value
            self.found = {a: composite.clamp(g, -limit, limit) for a, g in self.found.items()}
        if options.clip_norm is not None or options.grad_norm:
            self.norm = norm_of([*self.found.values()], options.norm_type)
        if options.clip_norm is not None:
            factor = ew.minimum(ew.div(options.clip_norm, ew.add(self.norm, 1e-6)), 1.0)
            self.found = {a: as_type(ew.mul(g, factor), g.dtype) for a, g in self.found.items()}

    def decisive(self) -> list[Any]:
        """What is finite in a step that is fine: the gradients, or their norm. None with a loss scale that follows
        them, for then it is part of the loop that they are not."""
        if self.state.scaling:
            return []
        is_norm = self.norm is not None and self.options.norm_type >= 1
        return [self.norm] if is_norm else list(self.found.values())

    def _unscale(self, scale: Any) -> None:
        if not isinstance(scale, DynamicScale):
            self.found = {a: ew.mul(g, 1.0 / scale) for a, g in self.found.items()}
            return
        inverse = ew.div(1.0, Tensor._wrap(self._scaling("scale", SCALE)))
        self.found = {a: ew.mul(g, as_type(inverse, g.dtype)) for a, g in self.found.items()}
        for gradient in self.found.values():
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
        """Writes the scale of the next call, as torch.amp.GradScaler does."""
        scale, tracker = scale_argument(self.tracer.graph), self._scaling("growth_tracker", f"{SCALE}.growth_tracker")
        now, count = Tensor._wrap(scale), Tensor._wrap(tracker) + 1
        grown = ew.mul(now, rule.growth_factor)
        grows = ew.logical_and(count >= rule.growth_interval, mathematics.isfinite(grown))
        after = ew.where(self.finite, ew.where(grows, grown, now), ew.mul(now, rule.backoff_factor))
        self.tracer.write(scale, after)
        goes_on = ew.logical_and(self.finite, count < rule.growth_interval)
        self.tracer.write(tracker, ew.where(goes_on, count, count * 0))


def accumulated(param: Any, hook: Any, gradient: Tensor) -> Tensor:
    """What a hook leaves in ``grad``, which is the gradient while it runs."""
    before, param._grad, version = param._grad, gradient.clone(), param._version
    try:
        hook(param)
        found = param._grad
    finally:
        param._grad = before
    if found is None or param._version != version:
        raise HookError(
            "compile_step: a hook after accumulation has written to the parameter or removed its gradient, while the "
            "step goes on to update it",
            remedy="change `grad` only; or loss.backward() and optimizer.step() in a loop",
        )
    return found
