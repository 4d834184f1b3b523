"""Rules of ONNX's classification losses."""

from __future__ import annotations

from graphc.interop.onnx.registry import op
from graphc.nn import functional as F
from graphc.tensors.tensor import Tensor

_NONE_IGNORED = -(1 << 31)
"""Index that no class has."""


@op("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int = _NONE_IGNORED,
) -> Tensor:
    """Return minus the log-probability of each target's class."""
    return F.nll_loss(x, target, weight, ignore_index=ignore_index, reduction=reduction)


@op("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy(
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int = _NONE_IGNORED,
) -> tuple[Tensor, Tensor]:
    """Return the loss, and the log-probabilities."""
    logs = F.log_softmax(scores, 1)
    return F.nll_loss(logs, labels, weights, ignore_index=ignore_index, reduction=reduction), logs
