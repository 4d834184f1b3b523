"""The Python function of a training step: programs are compiled from its trace, debugging sessions run it op by op."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphc.autograd import engine
from graphc.base.errors import ArgumentError, GradientError, ShapeError, TraceError
from graphc.calls.bindings import Modules
from graphc.guards.attributes import recorder
from graphc.ir.graph.graph import input_path
from graphc.ir.types import TensorType
from graphc.nn.clip_grad import norm_of
from graphc.nn.parallel.reducer import reduced_by_graph
from graphc.ops.autodiff import complex_loss
from graphc.ops.define import as_type
from graphc.ops.movement.shape import filled
from graphc.ops.pointwise import elementwise as ew
from graphc.optim.loss_scale import unscaled
from graphc.passes.pipeline import arrange
from graphc.steps.forward_passes import passed_forward
from graphc.steps.step_forward import forward_and_loss
from graphc.steps.step_options import DynamicScale, StepOptions
from graphc.steps.step_state import StepState
from graphc.tape.grad_mode import enable_grad, no_grad
from graphc.tensors import composite
from graphc.tensors.structure import flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.trace import graph_name
from graphc.tracing.tracer import Tracer, named_tensors
from graphc.tracing.training import accumulated, check_instead

SCALE = "compile_step.loss_scale"
"""Path of the loss scale in graphs, and prefix of the path of its growth tracker."""
AVERAGE = "ema"
"""Prefix of the paths of averaged weights."""


class StepFunction:
    """One training step as a function of the batch, for one trace or one call in Python.

    It updates parameters, or only accumulates gradients. Everything that is not a batch is read and written in place:
    parameters, buffers, states of optimizers, and the state of the step.
    """

    def __init__(self, options: StepOptions, state: StepState, updates: bool):
        self.options, self.state, self.updates = options, state, updates
        self.params: tuple[Any, ...] = ()
        """The parameters that have a gradient, in the order of their optimizers; known after a call."""
        self._tracer: Any = None

    def __call__(self, x: tuple[Any, ...], y: tuple[Any, ...], more: Any = None) -> tuple[Any, ...]:
        """Return the loss's result and the model's output.

        They are followed, where requested, by the norm of the gradients before clipping (or None) and the final
        gradients of ``params``.
        """
        options = self.options
        self._tracer = tracer = front() if isinstance(front(), Tracer) else None
        if tracer is not None:
            self._begin(tracer)
        with enable_grad(), reduced_by_graph():
            result = forward_and_loss(options.model, options.loss, options.losses, x, y, more)
            if tracer is not None and (first := arrange(options.passes).first):
                result = passed_forward(tracer, first, options.target, (x, y, more), result)
        if tracer is not None:
            self._end_forward(tracer)
        norm = None
        with no_grad():
            losses = self._losses(result)
            if tracer is not None:
                self._tracer.training.require_finite(tracer, losses)
            by_param = self._gradients(losses)
            self.params = tuple(p for p in _held(options.optimizers) if id(p) in by_param)
            by_param = {id(p): self._added(p, by_param[id(p)]) for p in self.params}
            if self.updates:
                self.state.meet(frozenset(by_param), True)
                by_param, norm, finite = self._prepared(by_param)
                self._update(by_param, finite)
        gradients = tuple(by_param[id(p)] for p in self.params) if options.grads and self.updates else ()
        loss, output = result[-2:]
        if tracer is None:
            leaves, structure = flatten((loss, output))
            loss, output = unflatten(structure, [t.detach() for t in leaves])
        self._tracer = None
        return (loss, output) if norm is None and not gradients else (loss, output, norm, gradients)

    # ---- traces

    def _begin(self, tracer: Any) -> None:
        """Tell the trace what the step depends on besides its batch."""
        options, reads = self.options, recorder()
        average = self.state.average
        for value in (options.model, options.loss, average):
            if reads is not None and value is not None:
                reads.reach(value, "")
        if average is not None:
            locations = Modules([average]).locations()
            for tensor, cls, path in named_tensors(average):
                tracer.training.bind(tracer, tensor, f"{AVERAGE}.{path}", locations[id(tensor)], cls)

    def _end_forward(self, tracer: Any) -> None:
        if tracer.training.is_used:
            raise TraceError(
                f"{self.options.name}: the model or the loss calls backward or steps an optimizer itself",
                remedy="compile the whole training function with graphc.compile, and call it with the batch",
            )
        tracer.training.step = self
        tracer.differentiable = False  # the graph holds its gradients

    def _path(self, param: Any) -> str:
        """Return the path of a parameter in a trace."""
        return "" if self._tracer is None else input_path(self._tracer.captured[id(param)].value)

    def _bound(self, tensor: Tensor, path: str, table: Any, key: Any) -> Tensor:
        """Return a tensor of the step's state. A trace takes it as an argument with this path."""
        if self._tracer is not None:
            self._tracer.training.bind(self._tracer, tensor, path, (table, key))
        return tensor

    # ---- gradients

    def _losses(self, result: Sequence[Any]) -> list[Any]:
        """Return the losses, one for all optimizers or one for each."""
        first = result[0]
        losses = list(first) if self.options.losses else [first[0] if isinstance(first, (tuple, list)) else first]
        for loss in losses:
            if loss.numel() != 1:
                raise ShapeError(
                    f"the loss must be one number, got {TensorType(loss.dtype, tuple(loss.shape))}",
                    remedy="reduce it: loss.mean() or loss.sum()",
                )
            if not loss.requires_grad:
                raise GradientError("the loss does not depend on any parameter that requires gradients")
            if loss.dtype.is_complex:
                raise complex_loss(loss)
        return losses

    def _gradients(self, losses: Sequence[Any]) -> dict[int, Any]:
        """Return the gradients of this batch by ``id`` of the parameter."""
        options = self.options
        used = None if self._tracer is None else self._tracer.captured
        by_param: dict[int, Any] = {}
        for number, loss in enumerate(losses):
            optimizers = options.optimizers if options.losses is None else [options.optimizers[number]]
            params = [p for p in _held(optimizers) if used is None or id(p) in used]
            keep = number + 1 < len(losses)
            grads = engine.grad([loss], params, [self._seed(loss)], retain_graph=keep, allow_unused=True)
            pairs = [(p, g) for p, g in zip(params, grads, strict=True) if g is not None]
            if not pairs:
                raise ArgumentError(
                    "compile_step: the optimizer holds no parameter that the loss depends on",
                    remedy=f"give the optimizer the parameters of this {graph_name(options.model)}: model.parameters()",
                )
            by_param.update((id(p), as_type(g, p.dtype)) for p, g in pairs)
        return by_param

    def _seed(self, loss: Any) -> Any:
        """Return the initial gradient of a loss: the loss scale divided by the number of micro-batches."""
        scale, count = self.options.loss_scale, self.options.accumulate
        if not isinstance(scale, DynamicScale):
            return filled((1.0 if scale is None else scale) / count, loss.dtype, loss.shape)
        seed = ew.mul(filled(1.0, loss.dtype, loss.shape), as_type(self._scale(), loss.dtype))
        return seed if count == 1 else ew.div(seed, count)

    def _scale(self) -> Tensor:
        return self._bound(self.state.scaling["scale"], SCALE, self.state.scaling, "scale")

    def _added(self, param: Any, gradient: Any) -> Any:
        """Return a gradient added to those of earlier micro-batches, after the hooks of the parameter.

        Where the step updates the parameters, reset the sum.
        """
        total = None
        if self.options.accumulate > 1:
            total = self.state.sum_of(param)
            self._bound(total, f"compile_step.sum.{self._path(param)}", self.state.sums, id(param))
            gradient = total + gradient
        for hook in list((param._post_hooks or {}).values()):
            after = functools.partial(accumulated, param, hook)
            run = None if self._tracer is None else self._tracer.run_hook
            gradient = after(gradient) if run is None else run(after, gradient, "hook after accumulation")
        if total is not None:
            total.copy_(filled(0, total.dtype, total.shape) if self.updates else gradient)
        return gradient

    def _prepared(self, gradients: dict[int, Any]) -> tuple[dict[int, Any], Any, Any]:
        """Return the gradients averaged over all processes, divided by the loss scale, and clipped.

        Return also their norm before clipping where requested, and with a dynamic loss scale whether all are finite.
        """
        options, norm, finite = self.options, None, None
        if self.state.reductions.modules:
            gradients = self.state.reductions.reduced(gradients, options.held)
        if isinstance(options.loss_scale, DynamicScale):
            gradients, finite = self._unscaled(gradients, options.loss_scale)
        elif options.loss_scale is not None:
            gradients = {k: ew.mul(g, 1.0 / options.loss_scale) for k, g in gradients.items()}
        if options.clip_value is not None:
            limit = options.clip_value
            gradients = {k: composite.clamp(g, -limit, limit) for k, g in gradients.items()}
        if options.clip_norm is not None or options.grad_norm:
            norm = norm_of([*gradients.values()], options.norm_type)
        if options.clip_norm is not None:
            factor = ew.minimum(ew.div(options.clip_norm, ew.add(norm, 1e-6)), 1.0)
            gradients = {k: as_type(ew.mul(g, factor), g.dtype) for k, g in gradients.items()}
        if norm is not None and options.norm_type >= 1:
            check_instead(gradients.values(), norm)
        return gradients, norm, finite

    def _unscaled(self, gradients: dict[int, Any], rule: DynamicScale) -> tuple[dict[int, Any], Any]:
        """Divide by the loss scale; write the scale of the next call, as torch.amp.GradScaler does."""
        scale, name = self._scale(), "growth_tracker"
        values, finite = unscaled([*gradients.values()], scale)
        tracker = self._bound(self.state.scaling[name], f"{SCALE}.{name}", self.state.scaling, name)
        rule.adjust(scale, tracker, finite)
        return dict(zip(gradients, values, strict=True)), finite

    def _update(self, gradients: Mapping[int, Any], finite: Any) -> None:
        for optimizer in self.options.optimizers:
            optimizer.apply_gradients(gradients, finite)
        if self.state.average is not None:
            self.state.average.update_parameters(self.state.source)


def _held(optimizers: Iterable[Any]) -> list[Any]:
    """Return the parameters of optimizers that may have a gradient."""
    return [p for o in optimizers for group in o.param_groups for p in group["params"] if p.requires_grad]
