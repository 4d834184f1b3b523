"""Losses over several classes at once: margins between classes, several labels per item, triplets by any distance."""

from __future__ import annotations

from collections.abc import Callable

from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.nn.functional.activation import logsigmoid
from graphc.nn.functional.distance import pairwise_distance
from graphc.nn.functional.loss import reduced, reduction_of
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.reduction.reduce import any as any_of
from graphc.ops.selection import index
from graphc.tensors import composite
from graphc.tensors.indexing import require
from graphc.tensors.mixed import loss
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

__all__ = ["multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss"]
__all__ += ["triplet_margin_with_distance_loss"]


def _rows(name: str, input: Tensor, target: Tensor, labels: int) -> tuple[Tensor, Tensor]:
    """Return input [batch, classes] and target with ``labels`` more dimensions than the batch."""
    if len(input.shape) not in (1, 2) or tuple(target.shape) != tuple(input.shape)[: len(input.shape) - 1 + labels]:
        raise ShapeError(f"{name}: input {list(input.shape)} and target {list(target.shape)} do not fit")
    return (input.unsqueeze(0), target.unsqueeze(0)) if len(input.shape) == 1 else (input, target)


@loss
@compiled_when_repeated
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Average ``max(0, margin - x[target] + x[class]) ** p`` over classes.

    The target's own class and NaN terms count as 0.
    """
    if p not in (1, 2):
        raise AttributeValueError(f"multi_margin_loss: p must be 1 or 2, got {p}")
    reduction_name = reduction_of(reduction, size_average, reduce)
    if weight is not None and tuple(weight.shape) != tuple(input.shape[-1:]):
        raise ShapeError(f"multi_margin_loss: weight {list(weight.shape)} does not fit input {list(input.shape)}")
    if not target.dtype.is_integer:
        raise DTypeError(
            f"multi_margin_loss: classes must be integers, got {target.dtype.name}", remedy="pass target.long()"
        )
    input = input.reshape(1) if not input.shape else input
    single = len(input.shape) == 1 and tuple(target.shape) == (1,)
    x, t = (input.unsqueeze(0), target) if single else _rows("multi_margin_loss", input, target, 0)
    require(t, 0, x.shape[1] - 1, "multi_margin_loss: target")
    own = x.gather(1, t.unsqueeze(1))
    gap = ew.add(ew.sub(margin, own), x)
    gap = ew.where(ew.gt(gap, 0), gap, 0)  # as in PyTorch a gap that is NaN counts as none
    gap = gap if p == 1 else ew.mul(gap, gap)
    if weight is not None:
        gap = ew.mul(gap, index.gather(weight, t, axis=0).unsqueeze(1))
    others = ew.ne(index.iota(shape=(1, x.shape[1]), axis=1), t.unsqueeze(1))
    loss = ew.mul(composite.total(ew.where(others, gap, 0), 1), 1.0 / x.shape[1])
    return reduced(loss if len(input.shape) == 2 or single else loss.squeeze(0), reduction_name)


@loss
@compiled_when_repeated
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Sum ``max(0, 1 - (x[label] - x[other]))`` over labels and other classes, divided by the number of classes.

    Labels are the entries of the target before the first -1; all remaining classes are other classes.
    """
    reduction_name = reduction_of(reduction, size_average, reduce)
    if not input.shape and not target.shape:
        input, target = input.reshape(1), target.reshape(1)
    x, t = _rows("multilabel_margin_loss", input, target, 1)
    classes = x.shape[1]
    require(t, -1, classes - 1, "multilabel_margin_loss: target")
    present = ew.eq(ew.cast(ew.ge(t, 0), dtype=t.dtype).cumprod(1), 1)
    labels = ew.where(present, t, 0)
    named = ew.logical_and(ew.eq(labels.unsqueeze(2), index.iota(shape=(1, 1, classes), axis=2)), present.unsqueeze(2))
    is_label = any_of(named, axes=(1,), keepdims=False)
    gaps = ew.add(ew.sub(1.0, x.gather(1, labels).unsqueeze(2)), x.unsqueeze(1))
    gaps = ew.where(ew.gt(gaps, 0), gaps, 0)  # as in PyTorch a gap that is NaN counts as none
    counted = ew.logical_and(present.unsqueeze(2), ew.logical_not(is_label).unsqueeze(1))
    loss = ew.mul(composite.total(ew.where(counted, gaps, 0), (1, 2)), 1.0 / classes)
    return reduced(loss if len(input.shape) == 2 else loss.squeeze(0), reduction_name)


@loss
@compiled_when_repeated
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Average the binary cross entropy of sigmoids over classes."""
    reduction_name = reduction_of(reduction, size_average, reduce)
    near = ew.mul(target, logsigmoid(input))
    far = ew.mul(ew.sub(1.0, target), logsigmoid(ew.neg(input)))
    loss = ew.neg(ew.add(near, far))
    loss = loss if weight is None else ew.mul(loss, weight)
    return reduced(composite.mean(loss, -1), reduction_name)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` for any distance d.

    See triplet_margin_loss.
    """
    if margin <= 0:
        raise AttributeValueError(
            f"triplet_margin_with_distance_loss: margin is {margin}", remedy="pass a margin above 0"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    far = distance(anchor, negative)
    if swap:
        far = ew.minimum(far, distance(positive, negative))
    gap = ew.sub(distance(anchor, positive), far)
    return reduced(composite.relu(ew.add(gap, margin)), reduction_of(reduction))
