"""Base of metrics: sums in buffers that each batch adds to, and a value computed from the sums of all processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.base.dtypes import float64, int64
from graphc.base.errors import ShapeError
from graphc.distributed.group import group
from graphc.nn.module import Module
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import zeros
from graphc.tensors.tensor import Tensor


class Metric(Module):
    """Base of metrics. A call ``metric(output, target)`` adds a batch, also inside of compiled functions and steps.

    Subclasses make buffers by ``add_sum``, and define ``update`` (add a batch, without gradients) and ``value_of``.

    Example:
        >>> import graphc as gc
        >>> class Largest(gc.metrics.Metric):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.add_sum("correct")
        ...
        ...     def update(self, output, target):
        ...         self.correct += (output.argmax(1) == target).sum()
        ...
        ...     def value_of(self, sums):
        ...         return float(sums["correct"])
        >>> metric = Largest()
        >>> metric(gc.tensor([[0.1, 0.9], [0.8, 0.2]]), gc.tensor([1, 1]))
        >>> metric.compute()
        1.0
    """

    is_higher_better = False

    def add_sum(self, name: str, shape: tuple[int, ...] = (), *, whole: bool = False) -> None:
        """Make a buffer of zeros that processes add up, f64, or i64 if ``whole``; state dictionaries omit it."""
        self.register_buffer(name, zeros(shape, dtype=int64 if whole else float64), persistent=False)

    def forward(self, output: Any, target: Any) -> None:
        """Add a batch: the model's output, and what it should be."""
        with no_grad():
            self.update(_detached(output), _detached(target))

    def update(self, output: Any, target: Any) -> None:
        """Add a batch to the sums. Subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} does not define update")

    def value_of(self, sums: Mapping[str, np.ndarray]) -> Any:
        """Compute the value from the sums of all batches, by name. Subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} does not define value_of")

    def compute(self) -> Any:
        """Return the value over all batches since the last ``reset``, in all processes of the group.

        Every process calls it. Without a sample the value of a mean or a share is NaN.
        """
        sums = {name: np.array(tensor._values(force=True)) for name, tensor in self.named_buffers()}
        here = group()
        if here.size > 1:
            sums = {name: here.all_reduce(array) for name, array in sums.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.value_of(sums)

    def reset(self) -> None:
        """Forget all batches."""
        with no_grad():
            for tensor in self.buffers():
                tensor.zero_()


class Mean(Metric):
    """Mean of numbers, each with the number of samples that it is the mean of: ``mean(loss, samples)``."""

    total: Tensor
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.add_sum("total")
        self.add_sum("count")

    def update(self, output: Any, target: Any) -> None:
        """Add a scalar (or a number) that is the mean of ``target`` samples."""
        self.total += output * target
        self.count += target

    def value_of(self, sums: Mapping[str, np.ndarray]) -> float:
        return float(sums["total"] / sums["count"])


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def check_shapes(name: str, output: Any, target: Any) -> None:
    """Raise ShapeError unless a metric's output and target have the same shape."""
    if tuple(output.shape) != tuple(target.shape):
        raise ShapeError(
            f"{name} compares outputs {list(output.shape)} with targets {list(target.shape)}",
            remedy="give both the same shape, for example by output.squeeze(1)",
        )
