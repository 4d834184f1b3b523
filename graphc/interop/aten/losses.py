"""ATen operators of losses, and those of their backward passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.interop.aten.derivatives import pulled
from graphc.interop.aten.registry import rule
from graphc.nn import functional as F
from graphc.tensors import creation, functions
from graphc.tensors.tensor import Tensor

REDUCTIONS = ("none", "mean", "sum")
"""By the numbers that ATen gives them."""


def _loss(name: str, function: Callable[..., Tensor], *more: str) -> None:
    """Enters an operator on results and targets, and its backward operator; arguments of names ``more`` follow the
    reduction."""

    def forward(self: Tensor, target: Tensor, reduction: int = 1, *rest: Any, **named: Any) -> Tensor:
        return function(self, target, reduction=REDUCTIONS[reduction], **named, **dict(zip(more, rest, strict=False)))

    def backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, *rest: Any) -> Tensor:
        return pulled(lambda x: forward(x, target, reduction, *rest), grad_output, self)

    rule(name)(forward)
    rule(f"{name}_backward")(backward)


_loss("mse_loss", F.mse_loss)
_loss("smooth_l1_loss", F.smooth_l1_loss, "beta")
_loss("huber_loss", F.huber_loss, "delta")
_loss("soft_margin_loss", F.soft_margin_loss)


@rule("l1_loss")
def l1_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    return F.l1_loss(self, target, reduction=REDUCTIONS[reduction])


@rule("kl_div")
def kl_div(self: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    return F.kl_div(self, target, reduction=REDUCTIONS[reduction], log_target=log_target)


@rule("binary_cross_entropy")
def binary_cross_entropy(self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1) -> Tensor:
    return F.binary_cross_entropy(self, target, weight, reduction=REDUCTIONS[reduction])


@rule("binary_cross_entropy_backward")
def binary_cross_entropy_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    found = grad_output * (self - target) / ((1 - self) * self).clamp(min=1e-12)
    found = found if weight is None else found * weight
    return found / self.numel() if REDUCTIONS[reduction] == "mean" else found


@rule("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    kind = REDUCTIONS[reduction]
    return F.binary_cross_entropy_with_logits(self, target, weight, reduction=kind, pos_weight=pos_weight)


@rule("cross_entropy_loss")
def cross_entropy(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    kind = REDUCTIONS[reduction]
    return F.cross_entropy(
        self, target, weight, ignore_index=ignore_index, reduction=kind, label_smoothing=label_smoothing
    )


@rule("nll_loss", "nll_loss_nd", "nll_loss2d")
def nll_loss(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, ignore_index: int = -100
) -> Tensor:
    return F.nll_loss(self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])


@rule("nll_loss_forward", "nll_loss2d_forward")
def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """The second result is the sum of the weights of what counts, which only means are divided by."""
    loss = nll_loss(self, target, weight, reduction, ignore_index)
    if REDUCTIONS[reduction] == "none":
        return loss, creation.zeros((), dtype=self.dtype)
    counted = functions.ne(target, ignore_index)
    if weight is None:
        return loss, counted.to(self.dtype).sum()
    return loss, (F.embedding(target * counted, weight.unsqueeze(1)).squeeze(-1) * counted).sum()


@rule("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    return pulled(lambda x: nll_loss(x, target, weight, reduction, ignore_index), grad_output, self)


@rule("multilabel_margin_loss")
def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    return F.multilabel_margin_loss(self, target, reduction=REDUCTIONS[reduction])


@rule("poisson_nll_loss")
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=REDUCTIONS[reduction])


@rule("margin_ranking_loss")
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=REDUCTIONS[reduction])


@rule("hinge_embedding_loss")
def hinge_embedding_loss(self: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    return F.hinge_embedding_loss(self, target, margin, reduction=REDUCTIONS[reduction])


@rule("cosine_embedding_loss")
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=REDUCTIONS[reduction])


@rule("triplet_margin_loss")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=REDUCTIONS[reduction])


@rule("multi_margin_loss")
def multi_margin_loss(
    self: Tensor,
    target: Tensor,
    p: Any = 1,
    margin: Any = 1,
    weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    return F.multi_margin_loss(self, target, p, margin, weight, reduction=REDUCTIONS[reduction])
