"""Connectionist temporal classification (Graves et al. 2006): a loss for sequences of unknown alignment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.lazy import deferred
from graphc.nn.functional.loss import reduction_of
from graphc.ops.movement import shape as shapes
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tensors import composite
from graphc.tensors.indexing import require
from graphc.tensors.mixed import loss
from graphc.tensors.placement import beside
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

__all__ = ["ctc_loss"]

scan = deferred("graphc.control.scan:scan")

_LOG_ZERO = -1e30
"""Logarithm of a probability of 0, finite so that gradients are not NaN."""


@loss
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Compute the negative log probability of ``targets`` [batch, length] under ``log_probs`` [time, batch, classes].

    Lengths are tensors or lists, one number per sequence. ``targets`` may be one concatenated vector if their lengths
    are known while tracing. ``mean`` divides each loss by the length of its target first. A sequence too short for its
    target costs infinity, or with ``zero_infinity`` 0 without a gradient. Without a batch dimension the result has
    none.

    Sums the probabilities of all alignments, forward in time: ``alpha[t, s]`` is the log probability of all alignments
    of the first t frames which end at symbol s of the target with blanks between its labels.
    """
    reduction_name = reduction_of(reduction)
    single = len(log_probs.shape) == 2
    x = log_probs.unsqueeze(1) if single else log_probs
    if len(x.shape) != 3 or not x.shape[0]:
        raise ShapeError(f"ctc_loss: log_probs {list(log_probs.shape)} are not [time, batch, classes]")
    _steps, batch, classes = x.shape
    if not 0 <= blank < classes:
        raise AttributeValueError(f"ctc_loss: blank {blank} is not one of the {classes} classes")
    inputs = _lengths("input_lengths", input_lengths, batch)
    label_counts = _lengths("target_lengths", target_lengths, batch)
    labels = _padded_targets(targets, target_lengths, batch, blank)
    require(labels, 0, classes - 1, "ctc_loss: target")
    extended = _with_blanks(labels, blank)
    score = _final_scores(x, extended, _may_skip(extended, blank), inputs, label_counts)
    loss = ew.neg(score)
    impossible = ew.gt(loss, -0.1 * _LOG_ZERO)
    loss = ew.where(impossible, 0.0 if zero_infinity else math.inf, loss)
    if reduction_name == "mean":
        loss = composite.mean(ew.div(loss, beside(ew.maximum(label_counts, 1), loss).to(loss.dtype)))
    elif reduction_name == "sum":
        loss = composite.total(loss)
    return loss.reshape(()) if single else loss


def _lengths(name: str, lengths: Any, batch: int) -> Tensor:
    tensor = lengths if isinstance(lengths, Tensor) else front().constant(np.asarray(lengths, np.int64))
    flat = tensor.reshape(-1)
    if flat.shape[0] != batch:
        raise ShapeError(f"ctc_loss: {name} must have one number for each of {batch} sequences, got {flat.shape[0]}")
    return flat.long()


def _padded_targets(targets: Tensor, lengths: Any, batch: int, blank: int) -> Tensor:
    """Return the targets as i64 [batch, longest]."""
    labels = targets.long()
    if len(labels.shape) == 2:
        if labels.shape[0] != batch:
            raise ShapeError(f"ctc_loss: targets {list(labels.shape)} do not fit a batch of {batch} sequences")
        return labels
    counts = np.asarray(lengths.tolist() if isinstance(lengths, Tensor) else lengths, np.int64).reshape(-1)
    if len(labels.shape) != 1 or (batch > 1 and counts.sum() != labels.shape[0]):
        raise ShapeError(f"ctc_loss: targets {list(labels.shape)} do not fit lengths {counts.tolist()}")
    if not labels.shape[0]:
        return labels.reshape(1, 0).expand(batch, 0)
    positions = (np.cumsum(counts) - counts)[:, None] + np.arange(max(int(counts.max()), 1))[None, :]
    inside = np.minimum(positions, labels.shape[0] - 1)
    return labels[front().constant(inside.reshape(-1))].reshape(*inside.shape)


def _with_blanks(labels: Tensor, blank: int) -> Tensor:
    """Extend [batch, length] to [batch, 2 length + 1]: a blank before, between and after the labels."""
    count = labels.shape[1]
    if not count:
        return labels.new_full((labels.shape[0], 1), blank)
    pairs = shapes.pad(labels.unsqueeze(-1), low=(0, 0, 1), high=(0, 0, 0), interior=(0, 0, 0), value=blank)
    flat = pairs.reshape(labels.shape[0], 2 * count)
    return shapes.pad(flat, low=(0, 0), high=(0, 1), interior=(0, 0), value=blank)


def _may_skip(extended: Tensor, blank: int) -> Tensor:
    """Mark the symbols which a path may reach from two positions before: labels different from the previous label."""
    count = extended.shape[1]
    if count < 3:
        return shapes.filled(False, front().constant(np.zeros(1, bool)).dtype, tuple(extended.shape))
    differs = ew.logical_and(ew.ne(extended[:, 2:], extended[:, :-2]), ew.ne(extended[:, 2:], blank))
    return shapes.pad(differs, low=(0, 2), high=(0, 0), interior=(0, 0), value=False)


def _shifted(x: Tensor, by: int) -> Tensor:
    count = x.shape[1]
    if by >= count:
        return ew.add(ew.mul(x, 0.0), _LOG_ZERO)
    return shapes.pad(x[:, : count - by], low=(0, by), high=(0, 0), interior=(0, 0), value=_LOG_ZERO)


def _log_sum_exp(*logs: Tensor) -> Tensor:
    """Compute the logarithm of the sum of probabilities, given their logarithms."""
    top = logs[0]
    for log in logs[1:]:
        top = ew.maximum(top, log)
    top = top.detach()
    total = mathematics.exp(ew.sub(logs[0], top))
    for log in logs[1:]:
        total = ew.add(total, mathematics.exp(ew.sub(log, top)))
    return ew.add(top, mathematics.log(total))


def _final_scores(x: Tensor, extended: Tensor, skip: Tensor, inputs: Tensor, label_counts: Tensor) -> Tensor:
    """Compute the log probability of each target: the forward recursion over time, which sums over all paths."""
    steps, batch, _ = x.shape
    count = extended.shape[1]
    emitted = ew.maximum(x.gather(2, extended.unsqueeze(0).expand(steps, batch, count)), _LOG_ZERO)
    running = ew.lt(front().constant(np.arange(steps)).reshape(-1, 1), inputs.reshape(1, -1)).unsqueeze(-1)
    start = np.full((batch, count), _LOG_ZERO, x.dtype.numpy)
    start[:, 0] = 0.0

    def following(alpha: Tensor, slices: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[()]]:
        emission, runs = slices
        skipped = ew.where(skip, _shifted(alpha, 2), _LOG_ZERO)
        reached = ew.add(_log_sum_exp(alpha, _shifted(alpha, 1), skipped), emission)
        return ew.where(runs, reached, alpha), ()

    alpha, _ = scan(following, beside(front().constant(start), x), (emitted, running))
    # A path may end in the last label or in the blank after it.
    end = ew.mul(label_counts, 2).reshape(-1, 1)
    last = alpha.gather(1, end)
    label = ew.where(ew.gt(end, 0), alpha.gather(1, ew.maximum(ew.sub(end, 1), 0)), _LOG_ZERO)
    return _log_sum_exp(last, label).reshape(-1)
