"""Options of a compiled training step: model, loss, optimizers, and the choices of its caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.foreign import no_class
from graphc.base.records import dataclass
from graphc.calls.first_nan.level import check_level
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
    """Limit on the temporary memory that a step may plan for."""
    clip_norm: float | None = None
    clip_value: float | None = None
    norm_type: float = 2.0
    accumulate: int = 1
    ema: Any = None
    loss_scale: Any = None
    grad_norm: bool = False
    grads: bool = False
    precision: str | None = None
    """Type to which factors of large products are rounded."""
    first_nan: bool | str = False

    def __post_init__(self) -> None:
        if not callable(self.model) or not (self.loss is None or callable(self.loss)):
            raise ArgumentError("compile_step takes a model, a callable loss, and an optimizer")
        if self.optimizer is None:
            raise ArgumentError(
                "compile_step takes a model, a callable loss or None, and an optimizer",
                remedy="use graphc.compile(function) for a function that calls backward and steps optimizers itself",
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
        check_level("compile_step", self.first_nan)
        self._check_scale()
        check_training_precision(self.precision)

    def _check_scale(self) -> None:
        scale = self.loss_scale
        if scale is None or isinstance(scale, DynamicScale) or (_is_number(scale) and scale > 0):
            return
        raise ArgumentError(
            f"compile_step: loss_scale is {scale!r}", remedy="pass a number above 0, 'dynamic', or gc.DynamicScale(...)"
        )

    def _check_parameters(self) -> None:
        parameter_ids: set[int] = set()
        for optimizer in self.optimizers:
            own = {id(p) for group in optimizer.param_groups for p in group["params"]}
            if own & parameter_ids:
                raise ArgumentError(
                    "compile_step: two optimizers hold the same parameter",
                    remedy="put each parameter into one optimizer; or compile a function that steps one after the "
                    "other with graphc.compile",
                )
            parameter_ids |= own

    @property
    def name(self) -> str:
        """Name of the step's graphs."""
        return f"{graph_name(self.model)}_step"

    @property
    def optimizers(self) -> tuple[Any, ...]:
        """The optimizers, in order."""
        optimizer = self.optimizer
        if isinstance(optimizer, Mapping):
            return tuple(optimizer.values())
        return tuple(optimizer) if isinstance(optimizer, (list, tuple)) else (optimizer,)

    @property
    def held(self) -> set[int]:
        """The ``id`` of each parameter of the optimizers."""
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
            f"compile_step: {type(optimizer).__name__} has no update rule", remedy="pass an optimizer of graphc.optim"
        )
    if not getattr(optimizer, "is_compilable", True):
        name = type(optimizer).__name__
        raise ArgumentError(
            f"compile_step: {name} evaluates the loss a number of times that depends on its values, which one program "
            "cannot do",
            remedy=f"call {name}.step(closure), with a closure that calls graphc.compile(model) and backward()",
        )
