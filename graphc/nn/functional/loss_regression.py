"""Losses on differences and margins: squared, absolute, Huber, ranking, hinge, triplet."""

from __future__ import annotations

import warnings

from graphc.base.errors import AttributeValueError
from graphc.nn.functional.distance import pairwise_distance
from graphc.nn.functional.loss import reduced, reduction_of
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tensors import composite
from graphc.tensors.mixed import loss
from graphc.tensors.native import native_after_compiled
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

__all__ = ["cosine_embedding_loss", "hinge_embedding_loss", "huber_loss", "l1_loss", "margin_ranking_loss", "mse_loss"]
__all__ += ["poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss"]


def _difference(name: str, input: Tensor, target: Tensor) -> Tensor:
    if tuple(input.shape) != tuple(target.shape):
        warnings.warn(
            f"{name}: the target {list(target.shape)} is broadcast against the input {list(input.shape)}; "
            "give both the same shape if that is not meant",
            stacklevel=3,
        )
    return ew.sub(input, target)


def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Reduce the loss; with weights, ``mean`` divides by their sum."""
    if weight is None:
        return reduced(loss, reduction)
    loss = ew.mul(loss, weight)
    if reduction == "mean":
        return ew.div(composite.total(loss), composite.total(weight.expand(*loss.shape)))
    return reduced(loss, reduction)


@native_after_compiled
@loss
@compiled_when_repeated
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute the squared difference.

    Example:
        >>> import graphc as gc
        >>> gc.nn.functional.mse_loss(gc.tensor([1.0, 2.0]), gc.tensor([1.0, 4.0]), reduction="none")
        tensor([0., 4.])
    """
    difference = _difference("mse_loss", input, target)
    return _weighted(ew.mul(difference, difference), weight, reduction_of(reduction, size_average, reduce))


@native_after_compiled
@loss
@compiled_when_repeated
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute the absolute difference."""
    reduction_name = reduction_of(reduction, size_average, reduce)
    return _weighted(ew.abs(_difference("l1_loss", input, target)), weight, reduction_name)


@native_after_compiled
@loss
@compiled_when_repeated
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Compute the squared difference over ``2 beta`` where it is below ``beta``, else the absolute one minus ``beta /
    2``."""
    if beta < 0:
        raise AttributeValueError(f"smooth_l1_loss: beta {beta} is negative")
    reduction_name = reduction_of(reduction, size_average, reduce)
    if beta == 0:
        return reduced(ew.abs(_difference("smooth_l1_loss", input, target)), reduction_name)
    return reduced(_huber(_difference("smooth_l1_loss", input, target), beta, 1.0 / beta), reduction_name)


@native_after_compiled
@loss
@compiled_when_repeated
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Compute half the squared difference where it is below ``delta``, else ``delta * (|difference| - delta / 2)``.

    With weights, ``mean`` still divides by the number of elements.
    """
    if delta <= 0:
        raise AttributeValueError(f"huber_loss: delta {delta} is not positive")
    loss = _huber(_difference("huber_loss", input, target), delta, 1.0)
    return reduced(loss if weight is None else ew.mul(loss, weight), reduction_of(reduction))


def _huber(difference: Tensor, delta: float, scale: float) -> Tensor:
    size = ew.abs(difference)
    large = ew.ge(size, delta)
    near = ew.where(large, 0, difference)  # The gradient of an infinite square would be NaN.
    inner = ew.mul(ew.mul(near, near), 0.5 * scale)
    outer = ew.mul(ew.sub(size, 0.5 * delta), delta * scale)
    return ew.where(large, outer, inner)


@native_after_compiled
@loss
@compiled_when_repeated
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``exp(input) - target * input``, or without ``log_input`` ``input - target log(input)``.

    ``full`` adds Stirling's approximation of log(target!) where the target exceeds 1.
    """
    if log_input:
        loss = ew.sub(mathematics.exp(input), ew.mul(target, input))
    else:
        loss = ew.sub(input, ew.mul(target, mathematics.log(ew.add(input, eps))))
    if full:
        large = ew.gt(target, 1)
        safe = ew.where(large, target, 1)
        stirling = ew.sub(ew.mul(safe, mathematics.log(safe)), safe)
        stirling = ew.add(stirling, ew.mul(mathematics.log(ew.mul(safe, 6.283185307179586)), 0.5))
        loss = ew.add(loss, ew.where(large, stirling, 0))
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@loss
@compiled_when_repeated
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """Compute ``log(1 + exp(-target * input))`` for targets 1 and -1."""
    margin = ew.neg(ew.mul(target, input))
    tail = mathematics.log1p(mathematics.exp(ew.neg(ew.abs(margin))))
    return reduced(ew.add(ew.maximum(margin, 0), tail), reduction_of(reduction, size_average, reduce))


@loss
@compiled_when_repeated
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return x where the target is 1, ``max(0, margin - x)`` where it is -1, and the sum of both for any other
    target."""
    far = ew.where(ew.eq(target, 1), 0, composite.clamp(ew.sub(margin, input), 0))
    loss = ew.add(far, ew.where(ew.eq(target, -1), 0, input))
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@loss
@compiled_when_repeated
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``max(0, -target (input1 - input2) + margin)``.

    Target 1 asks for a larger input1, -1 for a smaller one.
    """
    loss = composite.clamp(ew.add(ew.mul(ew.neg(target), ew.sub(input1, input2)), margin), 0)
    return reduced(loss, reduction_of(reduction, size_average, reduce))


_LEAST_SQUARE = 1e-12
"""Added to squared norms in ``cosine_embedding_loss``, as in PyTorch."""


@loss
@compiled_when_repeated
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``1 - cos`` where the target is 1, ``max(0, cos - margin)`` where it is -1."""
    squares = [ew.add(composite.total(ew.mul(x, x), -1), _LEAST_SQUARE) for x in (input1, input2)]
    cosine = ew.div(composite.total(ew.mul(input1, input2), -1), mathematics.sqrt(ew.mul(*squares)))
    loss = ew.where(ew.eq(target, 1), ew.sub(1.0, cosine), composite.clamp(ew.sub(cosine, margin), 0))
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@loss
@compiled_when_repeated
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``max(0, |anchor - positive| - |anchor - negative| + margin)``.

    With ``swap``, the second distance is the smaller of the negative's distances to anchor and positive.
    """
    if margin <= 0:
        raise AttributeValueError(f"triplet_margin_loss: margin is {margin}", remedy="pass a margin above 0")
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = ew.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced(composite.clamp(ew.add(ew.sub(near, far), margin), 0), reduction_of(reduction, size_average, reduce))
