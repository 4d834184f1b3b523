"""Averages of weights during training: stochastic weight averaging (Izmailov et al. 2018) and moving averages."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.nn.module import Module
from graphc.nn.modules.normalization import _BatchNorm, _InstanceNorm
from graphc.ops.pointwise import elementwise as ew
from graphc.optim.optimizer import Optimizer
from graphc.optim.schedule import LRScheduler
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.trace import is_tracing

Average = Callable[[Tensor, Tensor, Any], Tensor]
"""``average(mean so far, new value, number of averaged values)``."""
Averages = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]
"""The same for lists, in place."""


def get_swa_avg_fn() -> Average:
    """Return the function that averages all values."""
    return _mean


def _mean(mean: Tensor, value: Tensor, count: Any) -> Tensor:
    return mean + (value - mean) / (count + 1)


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the function of a moving average that keeps the fraction ``decay`` of its former value."""
    if not 0.0 <= decay <= 1.0:
        raise AttributeValueError(f"get_ema_avg_fn: decay must be between 0 and 1, got {decay}")
    return functools.partial(_moving_mean, decay)


def _moving_mean(decay: float, mean: Tensor, value: Tensor, count: Any) -> Tensor:
    return mean * decay + value * (1.0 - decay)


def _in_place(average: Average) -> Averages:
    return functools.partial(_average_in_place, average)


def _average_in_place(average: Average, means: Sequence[Tensor], values: Sequence[Tensor], count: Any) -> None:
    with no_grad():
        for mean, value in zip(means, values, strict=True):
            mean.copy_(average(mean, value, count))


def get_swa_multi_avg_fn() -> Averages:
    """Return ``get_swa_avg_fn`` for lists of tensors."""
    return _in_place(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Return ``get_ema_avg_fn`` for lists of tensors."""
    return _in_place(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """Copy of a model with averaged parameters; ``update_parameters(model)`` adds the current ones to the averages.

    The first update copies the parameters. ``avg_fn`` or ``multi_avg_fn`` computes the average, by default the mean of
    all. Each update copies buffers, or averages them with ``use_buffers``.

    Example:
        >>> import graphc as gc
        >>> model = gc.nn.Linear(1, 1, bias=False)
        >>> average = gc.optim.swa_utils.AveragedModel(model)
        >>> with gc.no_grad():
        ...     for value in (1.0, 3.0):
        ...         filled = model.weight.fill_(value)
        ...         average.update_parameters(model)
        >>> average.module.weight.item()
        2.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("AveragedModel: pass only one of avg_fn and multi_avg_fn")
        self.module = deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", front().constant(np.zeros((), np.int64)))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the averaged copy."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the parameters of ``model`` to the average; raise ArgumentError if their number differs from the
        copy's."""
        means, values = list(self.module.parameters()), list(model.parameters())
        buffers, model_buffers = list(self.module.buffers()), list(model.buffers())
        _check_same("parameters", means, values)
        _check_same("buffers", buffers, model_buffers)
        if self.use_buffers:
            means, values = [*chain(means, buffers)], [*chain(values, model_buffers)]
        means, values = [m.detach() for m in means], [v.detach() for v in values]
        average = self.multi_avg_fn or get_swa_multi_avg_fn()
        average = average if self.avg_fn is None else _in_place(self.avg_fn)
        with no_grad():
            if is_tracing():
                average(means, values, self.n_averaged)
                _copy(means, [ew.where(self.n_averaged == 0, v, m) for m, v in zip(means, values, strict=True)])
            elif self.n_averaged.item() == 0:
                _copy(means, values)
            else:
                average(means, values, self.n_averaged)
            if not self.use_buffers:
                _copy(buffers, model_buffers)
            self.n_averaged.add_(1)


def _check_same(kind: str, means: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Raise ArgumentError if the averaged copy and the model have different numbers of parameters or buffers."""
    if len(means) != len(values):
        raise ArgumentError(
            f"AveragedModel: the model has {len(values)} {kind}, its averaged copy {len(means)}",
            remedy="create the AveragedModel after parameters are tied, untied, added or removed",
        )


def _copy(targets: Iterable[Tensor], values: Iterable[Tensor]) -> None:
    for target, value in zip(targets, values, strict=True):
        target.copy_(value)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of all batch normalizations as means over the batches of ``loader``: each an
    input, or a tuple or list that starts with it."""
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm) and not isinstance(m, _InstanceNorm)]
    if not norms:
        return
    momenta, training = [m.momentum for m in norms], model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    try:
        with no_grad():
            for batch in loader:
                x = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(x if device is None else x.to(device))
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """Move the rate of each group to ``swa_lr`` within ``anneal_epochs`` steps, along a cosine or a line."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        if anneal_strategy not in ("cos", "linear"):
            raise AttributeValueError(f"SWALR: anneal_strategy {anneal_strategy!r} is neither 'cos' nor 'linear'")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise AttributeValueError(f"SWALR: anneal_epochs must be an int of 0 or more, got {anneal_epochs!r}")
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(optimizer.param_groups)
        if len(rates) != len(optimizer.param_groups):
            raise AttributeValueError(f"SWALR: {len(rates)} rates for {len(optimizer.param_groups)} groups")
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs = anneal_epochs
        self._strategy = anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _fraction(self, step: int) -> float:
        """Return the weight of ``swa_lr`` after some steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1.0 - math.cos(math.pi * t)) / 2.0 if self._strategy == "cos" else t

    def get_lr(self) -> list[float]:
        """Return the rates after one more step."""
        step = self._steps - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._fraction(step - 1), self._fraction(step)
        rates = []
        for group in self.optimizer.param_groups:
            target, lr = group["swa_lr"], group["lr"]
            start = target if before == 1 else (lr - before * target) / (1.0 - before)
            rates.append(target * now + start * (1.0 - now))
        return rates
