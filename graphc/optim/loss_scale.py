"""Loss scales, which keep f16 gradients away from zero: the rule that adjusts them, and ``GradScaler``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, GradientError, TraceError
from graphc.base.records import dataclass
from graphc.ops.define import as_type
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.optim.traced_step import step_in_trace
from graphc.tape.grad_mode import no_grad
from graphc.tensors import structure
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.trace import is_tracing
from graphc.tracing.training import check_instead


@dataclass(frozen=True)
class DynamicScale:
    """Rule of a loss scale: it grows after some consecutive updates with finite gradients, and shrinks after each
    update with a non-finite one, which is skipped."""

    start: float = 65536.0
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 2000

    def __post_init__(self) -> None:
        if not (self.start > 0 and self.growth_factor > 1 and 0 < self.backoff_factor < 1 and self.growth_interval > 0):
            raise ArgumentError(
                f"{self}: start and growth_interval must be above 0, growth_factor above 1, backoff_factor between 0 "
                f"and 1"
            )

    def state(self) -> dict[str, Tensor]:
        """Return the scale and the number of consecutive finite updates before the first one."""
        scale, tracker = np.full((), self.start, np.float32), np.zeros((), np.int64)
        return {"scale": front().constant(scale), "growth_tracker": front().constant(tracker)}

    def adjust(self, scale: Any, tracker: Any, finite: Any) -> None:
        """Write the scale and the tracker after an update, whose gradients were ``finite`` or not."""
        count = tracker + 1
        grown = ew.mul(scale, self.growth_factor)
        grows = ew.logical_and(count >= self.growth_interval, mathematics.isfinite(grown))
        after = ew.where(finite, ew.where(grows, grown, scale), ew.mul(scale, self.backoff_factor))
        goes_on = ew.logical_and(finite, count < self.growth_interval)
        tracker.copy_(ew.where(goes_on, count, count * 0))
        scale.copy_(after)


def unscaled(gradients: Sequence[Any], scale: Any) -> tuple[list[Any], Any]:
    """Return gradients divided by the scale, and whether all of them are finite."""
    inverse = ew.div(1.0, scale)
    gradients = [ew.mul(g, as_type(inverse, g.dtype)) for g in gradients]
    return gradients, functools.reduce(ew.logical_and, [mathematics.isfinite(g).all() for g in gradients])


_READY, _UNSCALED, _STEPPED = range(3)


class _Settings:
    """Fact that a scaler has the same rule and no unscaled gradients when a compiled function is called."""

    def __init__(self, scaler: GradScaler):
        self._scaler = scaler
        self._settings = self._now()

    def _now(self) -> tuple[Any, ...]:
        return self._scaler._rule, self._scaler._enabled, bool(self._scaler._optimizers)

    def holds(self) -> bool:
        """Return whether they are unchanged."""
        return self._now() == self._settings

    def why(self) -> str:
        """Describe the change."""
        return "the settings of a GradScaler were changed, or unscale_ was called before the compiled function"


class GradScaler:
    """Scale a loss before ``backward()``, unscale the gradients before a step, skip the step if one of them is not
    finite, and adjust the scale.

    Call ``scaler.scale(loss).backward()``, ``scaler.step(optimizer)``, ``scaler.update()``. Between the first two,
    ``unscale_`` unscales gradients for clipping.

    With ``enabled=False`` losses and gradients are unchanged. In a function of ``graphc.compile`` all of it is part of
    the program, as in ``compile_step(loss_scale=graphc.DynamicScale())``; ``step_count`` of the optimizer then counts
    skipped steps, too.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Linear(2, 1)
        >>> optimizer, scaler = gc.optim.SGD(model.parameters(), lr=0.1), gc.amp.GradScaler(init_scale=8.0)
        >>> scaler.scale(model(gc.ones(2)).sum()).backward()
        >>> model.bias.grad
        tensor([8.])
        >>> scaler.step(optimizer)
        >>> scaler.update()
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        self._rule = DynamicScale(float(init_scale), growth_factor, backoff_factor, growth_interval)
        self._state = self._rule.state()
        self._enabled = bool(enabled)
        self._optimizers: dict[int, tuple[int, Any]] = {}
        """Stage of each optimizer since the last update, and whether its gradients are finite."""

    def scale(self, outputs: Any) -> Any:
        """Multiply a tensor by the scale, or each tensor in nested lists, tuples and dictionaries."""
        training, scale = self._begin()
        if not self._enabled:
            return outputs
        if training is None:
            return structure.replace(outputs, lambda t: ew.mul(t, scale.item()))
        return structure.replace(outputs, lambda t: _scaled(t, scale))

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, in place.

        Raises GradientError after an earlier ``unscale_`` or ``step`` since the last ``update``.
        """
        training, scale = self._begin()
        if not self._enabled:
            return
        stages, params = self._stages(training), _with_gradients(optimizer)
        if id(optimizer) in stages:
            raise GradientError(
                "unscale_: the gradients were already unscaled since the last update()", remedy="call scaler.update()"
            )
        finite: Any = True
        with no_grad():
            if training is None:
                inverse = float(np.float32(1) / np.float32(scale.item()))
                for param in params:
                    param.grad.mul_(inverse)
                    finite = finite and bool(param.grad.isfinite().all())
            elif params:
                values, finite = unscaled([p.grad for p in params], scale)
                for param, value in zip(params, values, strict=True):
                    param.grad = value
        stages[id(optimizer)] = _UNSCALED, finite

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call ``optimizer.step(...)`` and return its result; skip it and return None if a gradient is not finite.

        Raises GradientError for a second step before ``update``.
        """
        training, _ = self._begin()
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise ArgumentError("step: a closure computes the gradients again, unscaled", remedy="call step(optimizer)")
        stages = self._stages(training)
        if stages.get(id(optimizer), (_READY, True))[0] == _STEPPED:
            raise GradientError("step: called twice since the last update()", remedy="call scaler.update()")
        if id(optimizer) not in stages:
            self.unscale_(optimizer)
        finite, result = stages[id(optimizer)][1], None
        if training is not None and finite is not True:
            step_in_trace(optimizer, *args, condition=finite, **kwargs)
        elif finite:
            result = optimizer.step(*args, **kwargs)
        stages[id(optimizer)] = _STEPPED, finite
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adjust the scale after the steps of all optimizers, or set it to ``new_scale``.

        Raises GradientError if no gradients were checked since the last one.
        """
        training, scale = self._begin()
        if not self._enabled:
            return
        stages = self._stages(training)
        with no_grad():
            if new_scale is not None:
                scale.fill_(new_scale)
            elif not stages:
                raise GradientError(
                    "update: no gradients were checked",
                    remedy="call scaler.step(optimizer) before, in the same compiled function",
                )
            else:
                results = [finite for _, finite in stages.values()]
                tensors = [front().constant(np.asarray(f)) if isinstance(f, bool) else f for f in results]
                tracker = self._tensor(training, "growth_tracker")
                self._rule.adjust(scale, tracker, functools.reduce(ew.logical_and, tensors))
        stages.clear()

    def _begin(self) -> tuple[Any, Any]:
        """Return the effects of the running trace, or None, and the scale. Raise TraceError in a trace without them."""
        if not is_tracing():
            return None, self._state["scale"]
        training: Any = getattr(front(), "training", None)
        if training is None:
            raise TraceError(
                "a GradScaler is used in a trace where it would take effect only once, during the trace",
                remedy="compile the full training function and call it with the batch",
            )
        if self._optimizers:
            raise GradientError(
                "a compiled function uses a GradScaler between unscale_ and update",
                remedy="call unscale_, step and update in the same function",
            )
        if ("scaler", id(self)) not in training.memory:
            training.memory["scaler", id(self)] = {}
            training.facts.append(_Settings(self))
        return training, self._tensor(training, "scale")

    def _tensor(self, training: Any, name: str) -> Any:
        tensor = self._state[name]
        if training is not None:
            training.bind(front(), tensor, f"grad_scaler.{name}", (self._state, name))
        return tensor

    def _stages(self, training: Any) -> dict[int, tuple[int, Any]]:
        """Return the stage of each optimizer since the last update, with whether its gradients are finite."""
        return self._optimizers if training is None else training.memory["scaler", id(self)]

    def is_enabled(self) -> bool:
        """Return whether the scaler is enabled."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the scale of the next loss; 1 if the scaler is disabled."""
        return self._state["scale"].item() if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._rule.growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._rule = replace(self._rule, growth_factor=new_factor)

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale shrinks."""
        return self._rule.backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale shrinks."""
        self._rule = replace(self._rule, backoff_factor=new_factor)

    def get_growth_interval(self) -> int:
        """Return the number of updates with finite gradients before the scale grows."""
        return self._rule.growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of updates with finite gradients before the scale grows."""
        self._rule = replace(self._rule, growth_interval=new_interval)

    def state_dict(self) -> dict[str, Any]:
        """Return the scale, its rule, and the count of finite updates, under PyTorch's names."""
        if not self._enabled:
            return {}
        return {
            "scale": self._state["scale"].item(),
            "growth_factor": self._rule.growth_factor,
            "backoff_factor": self._rule.backoff_factor,
            "growth_interval": self._rule.growth_interval,
            "_growth_tracker": self._state["growth_tracker"].item(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state of ``state_dict``; raise ArgumentError for an empty one."""
        if not self._enabled:
            return
        if not state_dict:
            raise ArgumentError("load_state_dict: the state is from a disabled GradScaler")
        factors = {k: state_dict[k] for k in ("growth_factor", "backoff_factor", "growth_interval")}
        self._rule = replace(self._rule, **factors)
        self._state["scale"].fill_(float(state_dict["scale"]))
        self._state["growth_tracker"].fill_(int(state_dict["_growth_tracker"]))

    def __repr__(self) -> str:
        return f"GradScaler(scale={self.get_scale():g}, enabled={self._enabled})"


def _scaled(loss: Any, scale: Any) -> Any:
    result = ew.mul(loss, as_type(scale, loss.dtype))
    check_instead([result], loss)
    return result


def _with_gradients(optimizer: Any) -> list[Any]:
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return [p for p in params if p.grad is not None]
