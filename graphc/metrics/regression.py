"""Metrics of numbers: mean absolute error, mean squared error and its root, and the coefficient of determination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.distributed.group import group
from graphc.metrics.metric import Mean, Metric, check_shapes
from graphc.tensors.tensor import Tensor


class MSE(Mean):
    """Mean squared error over all elements.

    Example:
        >>> import graphc as gc
        >>> mse = gc.metrics.MSE()
        >>> mse(gc.tensor([1.0, 2.0]), gc.tensor([1.0, 4.0]))
        >>> mse.compute()
        2.0
    """

    def update(self, output: Any, target: Any) -> None:
        """Add outputs and targets of the same shape."""
        check_shapes(type(self).__name__, output, target)
        self.total += self._error(output.double() - target.double()).sum()
        self.count += output.numel()

    def _error(self, difference: Any) -> Any:
        return difference * difference


class RMSE(MSE):
    """Root of the mean squared error over all elements."""

    def value_of(self, sums: Mapping[str, np.ndarray]) -> float:
        return float(np.sqrt(super().value_of(sums)))


class MAE(MSE):
    """Mean absolute error over all elements."""

    def _error(self, difference: Any) -> Any:
        return difference.abs()


class R2(Metric):
    """Coefficient of determination: 1 - sum((target - output)**2) / sum((target - mean of targets)**2).

    All elements count as samples of one variable. Constant targets give NaN if the outputs equal them, else -inf. The
    deviation from the mean is updated batch by batch (Chan, Golub and LeVeque 1979), so that targets far from zero lose
    no precision.
    """

    is_higher_better = True
    squares: Tensor
    count: Tensor
    mean: Tensor
    deviation: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("squares", "count", "mean", "deviation"):
            self.add_sum(name)

    def update(self, output: Any, target: Any) -> None:
        """Add outputs and targets of the same shape."""
        check_shapes("R2", output, target)
        target = target.double()
        difference = target - output.double()
        self.squares += (difference * difference).sum()
        count, mean = target.numel(), target.mean()
        centered = target - mean
        total, shift = self.count + count, mean - self.mean
        self.deviation += (centered * centered).sum() + shift * shift * self.count * count / total
        self.mean += shift * count / total
        self.count += count

    def compute(self) -> float:
        parts = np.array([[t._values(force=True) for t in (self.squares, self.count, self.mean, self.deviation)]])
        here = group()
        squares, count, mean, deviation = (here.all_gather(parts[0]) if here.size > 1 else parts).T
        with np.errstate(divide="ignore", invalid="ignore"):
            center = (count * mean).sum() / count.sum()
            return float(1 - squares.sum() / (deviation + count * (mean - center) ** 2).sum())
