"""What a compiled training step is made of: model, loss, optimizer, and all that its caller chose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.compiled.function import no_class
from graphc.compiled.machine import HOST
from graphc.compiled.memory import Budget
from graphc.passes.base import Pass
from graphc.tracing.trace import graph_name


@dataclass(frozen=True)
class StepOptions:
    """The arguments of ``compile_step``."""

    model: Any
    loss: Callable[..., Any]
    optimizer: Any
    passes: tuple[Pass, ...] = ()
    target: str = HOST
    dims: Any = None
    memory: Budget | None = None
    """The most temporary memory that a step may plan for."""

    def __post_init__(self) -> None:
        if not callable(self.model) or not callable(self.loss):
            raise ArgumentError("compile_step takes a model, a callable loss, and an optimizer")
        for value in (self.model, self.loss):
            no_class("compile_step", value)
        if not hasattr(self.optimizer, "update") or not hasattr(self.optimizer, "param_groups"):
            raise ArgumentError(
                f"compile_step: {type(self.optimizer).__name__} has no update rule",
                remedy="an optimizer of graphc.optim",
            )

    @property
    def name(self) -> str:
        """What the graphs of the step are called."""
        return f"{graph_name(self.model)}_step"
