"""A training step run as Python, op by op: the semantics of ``compile_step``, for debugging sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from graphc.autograd import engine
from graphc.base import module_path
from graphc.base.errors import ArgumentError, GradientError, ShapeError
from graphc.nn.clip_grad import norm_of
from graphc.nn.parallel.reducer import reduced_by_graph
from graphc.ops.define import as_type
from graphc.ops.movement.shape import filled
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.steps.step_forward import forward_and_loss
from graphc.steps.step_gradients import accumulated
from graphc.steps.step_options import DynamicScale, StepOptions
from graphc.steps.step_program import StepResult
from graphc.steps.step_state import StepState
from graphc.tape.grad_mode import enable_grad, no_grad
from graphc.tensors import composite
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor


class _Trained(NamedTuple):
    """The tensors updated by a step."""

    params: list[Any]

    def tensors(self) -> list[Any]:
        """Return all updated tensors."""
        return self.params


class PythonStep:
    """One call of a step, in place of a program. Ignores passes and reduced precision."""

    def __init__(self, options: StepOptions, state: StepState, batch: Sequence[Any]):
        self.options, self.state, self.batch = options, state, batch
        self.updates = state.is_update
        params = [p for o in options.optimizers for group in o.param_groups for p in group["params"]]
        self.binding = _Trained(params)
        self.params = frozenset(id(p) for p in params if p.requires_grad)
        """The ``id`` of each parameter that may have a gradient; after the call, of each that has one."""
        self._finite: Any = None

    def run(self, leaves: Sequence[Any], sizes: Any) -> StepResult:
        """Run the step on its batch. Ignore the arguments, which describe the same batch."""
        options = self.options
        with module_path.outside(), enable_grad(), reduced_by_graph():
            result = forward_and_loss(options.model, options.loss, options.losses, *self.batch)
        gradients = self._gradients(result)
        self.params = frozenset(gradients)
        norm = None
        with no_grad():
            if self.updates:
                self.state.meet(self.params, True)
                gradients, norm = self._prepared(gradients)
                self._update(gradients)
        leaves, structure = flatten(result[-2:])
        loss, output = unflatten(structure, [t.detach() for t in leaves])
        return StepResult(loss, output, norm)

    def _losses(self, result: Sequence[Any]) -> list[Any]:
        first = result[0]
        if self.options.losses:
            return list(first)
        return [first[0] if isinstance(first, (tuple, list)) else first]

    def _gradients(self, result: Sequence[Any]) -> dict[int, Any]:
        """Return the gradients of this batch by ``id`` of the parameter, added to those of earlier micro-batches."""
        options, losses = self.options, self._losses(result)
        by_param: dict[int, Any] = {}
        for number, loss in enumerate(losses):
            if loss.numel() != 1:
                raise ShapeError(
                    f"the loss must be one number, got {list(loss.shape)}",
                    remedy="reduce it: loss.mean() or loss.sum()",
                )
            if not loss.requires_grad:
                raise GradientError("the loss does not depend on any parameter that requires gradients")
            optimizers = options.optimizers if options.losses is None else [options.optimizers[number]]
            params = [p for o in optimizers for group in o.param_groups for p in group["params"] if p.requires_grad]
            seeds = [self._seed(loss)]
            grads = engine.grad([loss], params, seeds, retain_graph=number + 1 < len(losses), allow_unused=True)
            pairs = [(p, g) for p, g in zip(params, grads, strict=True) if g is not None]
            if not pairs:
                raise ArgumentError("compile_step: the optimizer holds no parameter that the loss depends on")
            by_param.update((id(p), self._summed(p, g)) for p, g in pairs)
        return by_param

    def _seed(self, loss: Any) -> Any:
        scale, count = self.options.loss_scale, self.options.accumulate
        with no_grad():
            now = self.state.scaling["scale"] if isinstance(scale, DynamicScale) else scale
            one = filled(1.0, loss.dtype, loss.shape)
            one = one if now is None else ew.mul(one, as_type(now, loss.dtype) if isinstance(now, Tensor) else now)
            return one if count == 1 else ew.div(one, count)

    def _summed(self, param: Any, gradient: Any) -> Any:
        with no_grad():
            total = self.state.sum_of(param) if self.options.accumulate > 1 else None
            value = gradient if total is None else total + gradient
            for hook in list((param._post_hooks or {}).values()):
                value = accumulated(param, hook, value)
            if total is not None:
                total.copy_(total * 0 if self.updates else value)
        return value

    def _prepared(self, gradients: dict[int, Any]) -> tuple[dict[int, Any], Any]:
        """Return the gradients averaged over processes, unscaled and clipped, and their norm where requested."""
        options, scale, norm = self.options, self.options.loss_scale, None
        if self.state.reductions.modules:
            params = {id(p): p for p in self.binding.params if id(p) in gradients}
            gradients = self.state.reductions.run(gradients, params)
        if isinstance(scale, DynamicScale):
            inverse = ew.div(1.0, self.state.scaling["scale"])
            gradients = {k: ew.mul(g, as_type(inverse, g.dtype)) for k, g in gradients.items()}
            self._finite = all(bool(mathematics.isfinite(g).all()) for g in gradients.values())
            self._follow(scale)
        elif scale is not None:
            gradients = {k: ew.mul(g, 1.0 / scale) for k, g in gradients.items()}
        if options.clip_value is not None:
            limit = options.clip_value
            gradients = {k: composite.clamp(g, -limit, limit) for k, g in gradients.items()}
        if options.clip_norm is not None or options.grad_norm:
            norm = norm_of([*gradients.values()], options.norm_type)
        if options.clip_norm is not None:
            factor = ew.minimum(ew.div(options.clip_norm, ew.add(norm, 1e-6)), 1.0)
            gradients = {k: as_type(ew.mul(g, factor), g.dtype) for k, g in gradients.items()}
        return gradients, norm

    def _follow(self, rule: DynamicScale) -> None:
        """Compute the loss scale of the next call."""
        scale, tracker = self.state.scaling["scale"], self.state.scaling["growth_tracker"]
        count = int(tracker.item()) + 1
        grown = ew.mul(scale, rule.growth_factor)
        grows = count >= rule.growth_interval and bool(mathematics.isfinite(grown).all())
        if not self._finite:
            scale.copy_(ew.mul(scale, rule.backoff_factor))
        elif grows:
            scale.copy_(grown)
        tracker.fill_(count if self._finite and count < rule.growth_interval else 0)

    def _update(self, gradients: dict[int, Any]) -> None:
        options = self.options
        for optimizer in options.optimizers if self._finite is not False else ():
            changes: list[tuple[Any, Any]] = []
            params = [p for group in optimizer.param_groups for p in group["params"] if id(p) in gradients]
            for group in optimizer.param_groups:
                hyper = optimizer.hyper(group)
                for param in optimizer.owned([p for p in group["params"] if id(p) in gradients]):
                    state = optimizer.state_of(param)
                    value, after = optimizer.new_values(param, gradients[id(param)], state, hyper)
                    changes += [(param, value), *((state[name], after[name]) for name in state)]
            changes += optimizer.from_others(params, {id(target): value for target, value in changes})
            for target, value in changes:
                target.copy_(value)
        if options.grads:
            for param in self.binding.params:
                if id(param) in gradients:
                    param.grad = gradients[id(param)]
        if self.state.average is not None:
            self.state.average.update_parameters(self.state.source)
