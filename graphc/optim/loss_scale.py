"""Loss scales, which keep f16 gradients away from zero: the rule that adjusts them, and ``GradScaler``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from graphc.base.errors import ArgumentError, GradientError
from graphc.ops.pointwise import elementwise as ew
from graphc.tape.grad_mode import no_grad
from graphc.tensors import structure
from graphc.tensors.tensor import Tensor


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


_READY, _UNSCALED, _STEPPED = range(3)


class GradScaler:
    """Scale a loss before ``backward()``, unscale the gradients before a step, skip the step if one of them is not
    finite, and adjust the scale.

    Call ``scaler.scale(loss).backward()``, ``scaler.step(optimizer)``, ``scaler.update()``. Between the first two,
    ``unscale_`` unscales gradients for clipping.

    With ``enabled=False`` losses and gradients are unchanged. The scaler reads numbers, so it only works in eager
    training; ``compile_step(loss_scale=graphc.DynamicScale())`` does the same in a compiled step.

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
        self._scale = self._rule.start
        self._enabled = bool(enabled)
        self._finite = 0
        """Consecutive updates with finite gradients."""
        self._optimizers: dict[int, tuple[int, bool]] = {}
        """Stage of each optimizer since the last update, and whether its gradients are finite."""

    def scale(self, outputs: Any) -> Any:
        """Multiply a tensor by the scale, or each tensor in nested lists, tuples and dictionaries."""
        if not self._enabled:
            return outputs
        return structure.replace(outputs, lambda t: ew.mul(t, self._scale))

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, in place.

        Raises GradientError after an earlier ``unscale_`` or ``step`` since the last ``update``.
        """
        if not self._enabled:
            return
        if self._state(optimizer)[0] != _READY:
            raise GradientError(
                "unscale_: the gradients were already unscaled since the last update()", remedy="call scaler.update()"
            )
        finite = True
        with no_grad():
            for gradient in _gradients(optimizer):
                gradient.mul_(1.0 / self._scale)
                finite = finite and bool(gradient.isfinite().all())
        self._optimizers[id(optimizer)] = _UNSCALED, finite

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call ``optimizer.step(...)`` and return its result; skip it and return None if a gradient is not finite.

        Raises GradientError for a second step before ``update``.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise ArgumentError("step: a closure computes the gradients again, unscaled", remedy="call step(optimizer)")
        if self._state(optimizer)[0] == _STEPPED:
            raise GradientError("step: called twice since the last update()", remedy="call scaler.update()")
        if self._state(optimizer)[0] == _READY:
            self.unscale_(optimizer)
        finite = self._state(optimizer)[1]
        result = optimizer.step(*args, **kwargs) if finite else None
        self._optimizers[id(optimizer)] = _STEPPED, finite
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adjust the scale after the steps of all optimizers, or set it to ``new_scale``.

        Raises GradientError if no gradients were checked since the last one.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._optimizers:
            raise GradientError("update: no gradients were checked", remedy="call scaler.step(optimizer) before")
        elif not all(finite for _, finite in self._optimizers.values()):
            self._scale, self._finite = self._scale * self._rule.backoff_factor, 0
        else:
            self._finite += 1
            if self._finite == self._rule.growth_interval:
                self._scale, self._finite = self._scale * self._rule.growth_factor, 0
        self._optimizers.clear()

    def _state(self, optimizer: Any) -> tuple[int, bool]:
        return self._optimizers.get(id(optimizer), (_READY, True))

    def is_enabled(self) -> bool:
        """Return whether the scaler is enabled."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the scale of the next loss; 1 if the scaler is disabled."""
        return self._scale if self._enabled else 1.0

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
            "scale": self._scale,
            "growth_factor": self._rule.growth_factor,
            "backoff_factor": self._rule.backoff_factor,
            "growth_interval": self._rule.growth_interval,
            "_growth_tracker": self._finite,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state of ``state_dict``; raise ArgumentError for an empty one."""
        if not self._enabled:
            return
        if not state_dict:
            raise ArgumentError("load_state_dict: the state is from a disabled GradScaler")
        factors = {k: state_dict[k] for k in ("growth_factor", "backoff_factor", "growth_interval")}
        self._rule = replace(self._rule, **factors)
        self._scale, self._finite = float(state_dict["scale"]), int(state_dict["_growth_tracker"])

    def __repr__(self) -> str:
        return f"GradScaler(scale={self.get_scale():g}, enabled={self._enabled})"


def _gradients(optimizer: Any) -> list[Tensor]:
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return [p.grad for p in params if p.grad is not None]
