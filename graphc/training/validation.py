"""Validation of a compiled step: means of the loss and metrics over the batches of a loader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.calls.function import compile
from graphc.metrics.metric import Mean, Metric
from graphc.nn.module import Module
from graphc.nn.modules.container import ModuleList
from graphc.steps.step import CompiledStep
from graphc.steps.step_forward import Inputs, forward_and_loss
from graphc.tape.grad_mode import enable_grad, no_grad
from graphc.tracing.trace import modules_of
from graphc.training.batches import LoaderBatches
from graphc.training.history import VALID
from graphc.training.loop import samples_in
from graphc.training.stateful_step import arguments, numbers_in


class Validation:
    """Loss and metrics of a step's model on other data, in evaluation mode and without gradients."""

    def __init__(self, step: CompiledStep, loader: Any, metrics: Mapping[str, Metric]):
        if metrics and step.loss is None:
            raise ArgumentError(
                "fit: metrics compare the model's output with the target, and the step has no loss function",
                remedy="pass loss= to compile_step, or as valid= a function that returns numbers by name",
            )
        self.metrics = dict(metrics)
        self._modules = [module for _, module in modules_of(step.model)]
        self._batches = LoaderBatches(loader)
        self._step = step
        self._measures: _Measures | None = None
        self._add: Any = None

    def measure(self, names: Sequence[str]) -> dict[str, float]:
        """Return the means of the numbers in the loss's result, which have these names, and the metrics, by column."""
        if self._measures is None:
            self._measures = _Measures(self._step, names, self.metrics)
            self._add = compile(self._measures)
        modes = [(module, module.training) for top in self._modules for module in top.modules()]
        self._measures.eval()
        for top in self._modules:
            top.eval()
        try:
            with no_grad():
                for batch in self._batches.epoch(0, 0):
                    self._add(*arguments(batch))
        finally:
            for module, is_training in modes:
                module.training = is_training
        return self._measures.compute()


class _Measures(Module):
    """Sums of the numbers in a step's loss, and of metrics."""

    def __init__(self, step: CompiledStep, names: Sequence[str], metrics: Mapping[str, Metric]):
        super().__init__()
        self.model, self.loss, self._losses = step.model, step.loss, step.options.losses
        self.means = ModuleList([Mean() for _ in names])
        self.metrics = ModuleList(list(metrics.values()))
        self._names = [*names, *metrics]
        self._inputs = Inputs(step.model)

    def forward(self, *batch: Any) -> None:
        """Add a batch."""
        x, y, more = self._inputs.split(batch, {})
        # NOTE: with gradients, by which the loss is recognized in the output of a model that computes it.
        with enable_grad():
            *_, result, output = forward_and_loss(self.model, self.loss, self._losses, x, y, more)
        for mean, number in zip(self.means, numbers_in(result).values(), strict=True):
            mean(number, samples_in(batch))
        for metric in self.metrics:
            metric(output, y[0])

    def compute(self) -> dict[str, float]:
        """Return the values by column, and forget the batches."""
        values = {}
        for name, metric in zip(self._names, [*self.means, *self.metrics], strict=True):
            values[f"{VALID}{name}"] = column_value(name, metric.compute())
            metric.reset()
        return values


def column_value(name: str, value: Any) -> float:
    """Return a measure as a number. Raise ArgumentError for an array."""
    if getattr(value, "shape", ()) != ():
        raise ArgumentError(
            f"fit: {name} is an array {list(value.shape)}, and columns of a history hold numbers",
            remedy="compute it in a callback, or choose an average such as average='macro'",
        )
    return float(value)
