"""Metrics of predicted tokens: cross-entropy and perplexity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.metrics.classification import check_scores
from graphc.metrics.metric import Metric
from graphc.nn.functional import log_softmax
from graphc.tensors.tensor import Tensor


class CrossEntropy(Metric):
    """Mean of -log softmax(scores)[target], in nats.

    Args:
        dim: dimension of the classes in the scores; the others are those of the targets.
        ignore_index: a class in targets whose samples are left out, such as padding.
    """

    total: Tensor
    count: Tensor

    def __init__(self, *, dim: int = -1, ignore_index: int = -100) -> None:
        super().__init__()
        self.dim, self.ignore_index = dim, ignore_index
        self.add_sum("total")
        self.add_sum("count", whole=True)

    def update(self, output: Any, target: Any) -> None:
        """Add scores and the right classes."""
        check_scores(type(self).__name__, output, target, self.dim)
        counted = target != self.ignore_index
        index = target.long().where(counted, 0).unsqueeze(self.dim)
        losses = -log_softmax(output.double(), self.dim).gather(self.dim, index).squeeze(self.dim)
        self.total += losses.where(counted, 0.0).sum()
        self.count += counted.sum()

    def value_of(self, sums: Mapping[str, np.ndarray]) -> float:
        return float(sums["total"] / sums["count"])


class Perplexity(CrossEntropy):
    """Perplexity of predicted tokens: exp of the mean cross-entropy.

    Args:
        dim, ignore_index: as for ``CrossEntropy``.

    Example:
        >>> import graphc as gc
        >>> perplexity = gc.metrics.Perplexity()
        >>> perplexity(gc.zeros(2, 5, 8), gc.zeros(2, 5, dtype=gc.int64))
        >>> round(perplexity.compute(), 6)
        8.0
    """

    def value_of(self, sums: Mapping[str, np.ndarray]) -> float:
        return float(np.exp(super().value_of(sums)))
