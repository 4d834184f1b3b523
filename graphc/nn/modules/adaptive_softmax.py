"""Adaptive softmax for many classes (Grave et al. 2017): frequent classes first, the others in clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.nn.module import Module
from graphc.nn.modules.container import ModuleList, Sequential
from graphc.nn.modules.linear import Linear
from graphc.ops.movement.shape import concat
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import composite
from graphc.tensors.indexing import require
from graphc.tensors.tensor import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class AdaptiveLogSoftmaxOutput(NamedTuple):
    """Output of ``AdaptiveLogSoftmaxWithLoss``."""

    output: Tensor
    """Log probability of each target."""
    loss: Tensor
    """Negative mean of the log probabilities."""


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of ``n_classes`` classes sorted by frequency, most frequent first.

    The classes from each of ``cutoffs`` up to the next form a cluster. The hidden size of cluster i is ``in_features /
    div_value ** (i + 1)``.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        limits = list(cutoffs)
        all_ints = all(isinstance(c, int) for c in limits)
        if not limits or not all_ints or limits != sorted(set(limits)) or limits[0] < 1 or limits[-1] > n_classes - 1:
            raise AttributeValueError(
                f"AdaptiveLogSoftmaxWithLoss: cutoffs {limits} must be increasing integers from 1 to {n_classes - 1}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*limits, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = limits[0]
        self.n_clusters = len(limits)
        self.head_size = self.shortlist_size + self.n_clusters
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            hidden = int(in_features // div_value ** (i + 1))
            first = Linear(in_features, hidden, bias=False, **options)
            self.tail.append(Sequential(first, Linear(hidden, high - low, bias=False, **options)))

    def reset_parameters(self) -> None:
        """Draw new values for all matrices."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> AdaptiveLogSoftmaxOutput:
        """Return the log probabilities of the targets, and the loss.

        Shapes: input [batch, in_features] and class indices [batch], or both without the batch. Raises IndexRangeError
        for a target that is not a class.
        """
        single = len(target.shape) == 0
        x, labels = (input.unsqueeze(0), target.unsqueeze(0)) if single else (input, target)
        if len(labels.shape) != 1 or len(x.shape) != 2 or x.shape[0] != labels.shape[0]:
            raise ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: input {list(input.shape)} and target {list(target.shape)} do not fit"
            )
        require(labels, 0, self.n_classes - 1, "target")
        head = composite.log_softmax(self.head(x), 1)
        column = ew.minimum(labels, self.shortlist_size - 1)
        output = head.gather(1, column.unsqueeze(1)).squeeze(1)
        for i, tail in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            local_class = ew.minimum(ew.maximum(ew.sub(labels, low), 0), high - low - 1)
            inside = composite.log_softmax(tail(x), 1).gather(1, local_class.unsqueeze(1)).squeeze(1)
            chosen = ew.logical_and(ew.ge(labels, low), ew.lt(labels, high))
            output = ew.where(chosen, ew.add(head[:, self.shortlist_size + i], inside), output)
        loss = ew.neg(composite.mean(output))
        return AdaptiveLogSoftmaxOutput(output.squeeze(0) if single else output, loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """Map [batch, in_features] to the log probabilities of all classes [batch, n_classes]."""
        head = composite.log_softmax(self.head(input), 1)
        columns = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            cluster = self.shortlist_size + i
            columns.append(ew.add(composite.log_softmax(tail(input), 1), head[:, cluster : cluster + 1]))
        return concat(*columns, axis=1)

    def predict(self, input: Tensor) -> Tensor:
        """Map [batch, in_features] to the most probable class of each row [batch]."""
        return self.log_prob(input).argmax(dim=1)
