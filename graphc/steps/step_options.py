"""What a compiled training step is made of: model, loss, optimizers, and all that its caller chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.calls.function import no_class
from graphc.calls.machine import HOST
from graphc.calls.memory import Budget
from graphc.optim.loss_scale import DynamicScale
from graphc.passes.base import Pass
from graphc.passes.precision import check_training_precision
from graphc.tracing.trace import graph_name


@dataclass(frozen=True)
class StepOptions:
    """The arguments of ``compile_step``."""

    model: Any
    loss: Callable[..., Any] | None
    optimizer: Any
    passes: tuple[Pass, ...] = ()
    target: str = HOST
    dims: Any = None
    memory: Budget | None = None
    """The most temporary memory that a step may plan for."""
    clip_norm: float | None = None
    clip_value: float | None = None
    norm_type: float = 2.0
    accumulate: int = 1
    ema: Any = None
    loss_scale: Any = None
    grad_norm: bool = False
    grads: bool = False
    precision: str | None = None
    """What factors of large products are rounded to."""
    first_nan: bool | str = False

    def __post_init__(self) -> None:
        if not callable(self.model) or not (self.loss is None or callable(self.loss)):
            raise ArgumentError("compile_step takes a model, a callable loss, and an optimizer")
        if self.optimizer is None:
            raise ArgumentError(
                "compile_step takes a model, a callable loss or None, and an optimizer",
                remedy="graphc.compile(function) for a function that calls backward and steps its optimizers itself",
            )
        for value in (self.model, self.loss):
            no_class("compile_step", value)
        for optimizer in self.optimizers:
            _check_optimizer(optimizer)
        self._check_parameters()
        for name in ("clip_norm", "clip_value"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value >= 0):
                raise ArgumentError(f"compile_step: {name} is a number that is not negative, got {value!r}")
        if not (isinstance(self.accumulate, int) and self.accumulate >= 1):
            raise ArgumentError(f"compile_step: accumulate is a number of micro-batches, got {self.accumulate!r}")
        if not isinstance(self.first_nan, bool) and self.first_nan != "all":
            raise ArgumentError(f"compile_step: first_nan is {self.first_nan!r}", remedy='True, False or "all"')
        self._check_scale()
        check_training_precision(self.precision)

    def _check_scale(self) -> None:
        scale = self.loss_scale
        if scale is None or isinstance(scale, DynamicScale) or (_is_number(scale) and scale > 0):
            return
        raise ArgumentError(
            f"compile_step: loss_scale is {scale!r}", remedy="a number above 0, 'dynamic', or gc.DynamicScale(...)"
        )

    def _check_parameters(self) -> None:
        seen: set[int] = set()
        for optimizer in self.optimizers:
            own = {id(p) for group in optimizer.param_groups for p in group["params"]}
            if own & seen:
                raise ArgumentError(
                    "compile_step: two optimizers hold the same parameter",
                    remedy="each parameter in one optimizer; or graphc.compile of a function that steps one after the "
                    "other",
                )
            seen |= own

    @property
    def name(self) -> str:
        """What the graphs of the step are called."""
        return f"{graph_name(self.model)}_step"

    @property
    def optimizers(self) -> tuple[Any, ...]:
        """All optimizers, in order."""
        given = self.optimizer
        if isinstance(given, Mapping):
            return tuple(given.values())
        return tuple(given) if isinstance(given, (list, tuple)) else (given,)

    @property
    def held(self) -> set[int]:
        """All parameters of the optimizers, by identity."""
        return {id(p) for optimizer in self.optimizers for group in optimizer.param_groups for p in group["params"]}

    @property
    def losses(self) -> tuple[Any, ...] | None:
        """The names of the losses, one for each optimizer; None where one loss serves all."""
        return tuple(self.optimizer) if isinstance(self.optimizer, Mapping) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check_optimizer(optimizer: Any) -> None:
    if not hasattr(optimizer, "update") or not hasattr(optimizer, "param_groups"):
        raise ArgumentError(
            f"compile_step: {type(optimizer).__name__} has no update rule", remedy="an optimizer of graphc.optim"
        )
    if not getattr(optimizer, "is_compilable", True):
        name = type(optimizer).__name__
        raise ArgumentError(
            f"compile_step: {name} evaluates the loss as often as its values ask for, which no one program does",
            remedy=f"{name}.step(closure), with a closure that calls graphc.compile(model) and backward()",
        )
