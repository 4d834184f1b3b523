"""Loss scales, which keep gradients of f16 away from zero: how they follow the gradients, and ``GradScaler``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from graphc.base.errors import ArgumentError, GradientError
from graphc.ops import elementwise as ew
from graphc.tape.grad_mode import no_grad
from graphc.tensors import structure
from graphc.tensors.tensor import Tensor


@dataclass(frozen=True)
class DynamicScale:
    """How a loss scale follows the gradients: it grows after some updates in a row whose gradients were finite, and
    shrinks after each one whose gradients were not, which is left out."""

    start: float = 65536.0
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 2000

    def __post_init__(self) -> None:
        if not (self.start > 0 and self.growth_factor > 1 and 0 < self.backoff_factor < 1 and self.growth_interval > 0):
            raise ArgumentError(
                f"{self}: a start and an interval above 0, a growth factor above 1, and a backoff factor between 0 and "
                "1 are expected"
            )


_READY, _UNSCALED, _STEPPED = range(3)


class GradScaler:
    """Scales a loss before ``backward()``, divides the gradients by the scale before a step, leaves the step out where
    one of them is not finite, and adjusts the scale: ``scaler.scale(loss).backward()``, ``scaler.step(optimizer)``,
    ``scaler.update()``. Between the first two ``unscale_`` gives gradients that can be clipped.

    With ``enabled=False`` losses and gradients stay as they are. It reads numbers, so it is for eager training;
    ``compile_step(loss_scale=graphc.DynamicScale())`` does the same inside of a compiled step.
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
        """Updates in a row whose gradients were finite."""
        self._optimizers: dict[int, tuple[int, bool]] = {}
        """What was done with each optimizer since the last update, and whether its gradients are finite."""

    def scale(self, outputs: Any) -> Any:
        """A tensor times the scale, or each tensor in nested lists, tuples and dictionaries."""
        if not self._enabled:
            return outputs
        return structure.replace(outputs, lambda t: ew.mul(t, self._scale))

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of the optimizer's parameters by the scale, in place.

        Raises GradientError where that was done since the last ``update``, or a step was.
        """
        if not self._enabled:
            return
        if self._state(optimizer)[0] != _READY:
            raise GradientError(
                "unscale_: the gradients are divided by the scale since the last update()", remedy="scaler.update()"
            )
        finite = True
        with no_grad():
            for gradient in _gradients(optimizer):
                gradient.mul_(1.0 / self._scale)
                finite = finite and bool(gradient.isfinite().all())
        self._optimizers[id(optimizer)] = _UNSCALED, finite

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step(...)`` and its result, or None where a gradient is not finite.

        Raises GradientError for a second step before ``update``.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise ArgumentError("step: a closure computes the gradients again, unscaled", remedy="step(optimizer)")
        if self._state(optimizer)[0] == _STEPPED:
            raise GradientError("step: there was a step since the last update()", remedy="scaler.update()")
        if self._state(optimizer)[0] == _READY:
            self.unscale_(optimizer)
        finite = self._state(optimizer)[1]
        result = optimizer.step(*args, **kwargs) if finite else None
        self._optimizers[id(optimizer)] = _STEPPED, finite
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adjusts the scale after the steps of all optimizers, or sets it to ``new_scale``.

        Raises GradientError where no gradients were looked at since the last one.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._optimizers:
            raise GradientError("update: no gradients were looked at", remedy="scaler.step(optimizer) before")
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
        """Whether it does anything."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale of the next loss; 1 where it is not enabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._rule.growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets what the scale is multiplied by when it grows."""
        self._rule = replace(self._rule, growth_factor=new_factor)

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by when it shrinks."""
        return self._rule.backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets what the scale is multiplied by when it shrinks."""
        self._rule = replace(self._rule, backoff_factor=new_factor)

    def get_growth_interval(self) -> int:
        """The number of updates with finite gradients after which it grows."""
        return self._rule.growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of updates with finite gradients after which it grows."""
        self._rule = replace(self._rule, growth_interval=new_interval)

    def state_dict(self) -> dict[str, Any]:
        """The scale, its rule, and how long gradients have been finite, under PyTorch's names."""
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
        """Goes on from a state that ``state_dict`` gave; raises ArgumentError for an empty one."""
        if not self._enabled:
            return
        if not state_dict:
            raise ArgumentError("load_state_dict: the state is that of a GradScaler which is not enabled")
        factors = {k: state_dict[k] for k in ("growth_factor", "backoff_factor", "growth_interval")}
        self._rule = replace(self._rule, **factors)
        self._scale, self._finite = float(state_dict["scale"]), int(state_dict["_growth_tracker"])

    def __repr__(self) -> str:
        return f"GradScaler(scale={self.get_scale():g}, enabled={self._enabled})"


def _gradients(optimizer: Any) -> list[Tensor]:
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return [p.grad for p in params if p.grad is not None]
