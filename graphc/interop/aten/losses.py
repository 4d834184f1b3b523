"""Rules of ATen's losses and of their backward operators."""

from __future__ import annotations

from typing import Any

from graphc.interop.aten.derivatives import pulled
from graphc.interop.aten.registry import Rule, rule
from graphc.nn import functional as F
from graphc.tensors import creation, functions
from graphc.tensors.tensor import Tensor

REDUCTIONS = ("none", "mean", "sum")
"""Reductions by their codes in ATen."""


def _reduced(name: str, function: Rule, arguments: str) -> Rule:
    """Register an operator whose ``arguments`` are those of a function by name, with a code for the reduction."""
    names = arguments.split()

    @rule(name)
    def forward(*args: Any, **named: Any) -> Tensor:
        bound = dict(zip(names[: len(args)], args, strict=True)) | named
        return function(**bound | {"reduction": REDUCTIONS[bound.get("reduction", 1)]})

    return forward


def _loss(name: str, function: Rule, *more: str) -> None:
    """Register an operator on inputs and targets, and its backward operator. Arguments ``more`` follow the
    reduction."""
    forward = _reduced(name, function, " ".join(("input target reduction", *more)))

    @rule(f"{name}_backward")
    def backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, *rest: Any) -> Tensor:
        return pulled(lambda x: forward(x, target, reduction, *rest), grad_output, self)


_loss("mse_loss", F.mse_loss)
_loss("smooth_l1_loss", F.smooth_l1_loss, "beta")
_loss("huber_loss", F.huber_loss, "delta")
_loss("soft_margin_loss", F.soft_margin_loss)
_reduced("l1_loss", F.l1_loss, "input target reduction")
_reduced("kl_div", F.kl_div, "input target reduction")
_reduced("binary_cross_entropy", F.binary_cross_entropy, "input target weight reduction")
_reduced(
    "binary_cross_entropy_with_logits",
    F.binary_cross_entropy_with_logits,
    "input target weight pos_weight reduction",
)
_reduced("cross_entropy_loss", F.cross_entropy, "input target weight reduction ignore_index label_smoothing")
_reduced("multilabel_margin_loss", F.multilabel_margin_loss, "input target reduction")
_reduced("poisson_nll_loss", F.poisson_nll_loss, "input target log_input full eps reduction")
_reduced("margin_ranking_loss", F.margin_ranking_loss, "input1 input2 target margin reduction")
_reduced("hinge_embedding_loss", F.hinge_embedding_loss, "input target margin reduction")
_reduced("cosine_embedding_loss", F.cosine_embedding_loss, "input1 input2 target margin reduction")
_reduced("triplet_margin_loss", F.triplet_margin_loss, "anchor positive negative margin p eps swap reduction")
_reduced("multi_margin_loss", F.multi_margin_loss, "input target p margin weight reduction")
nll_loss = _reduced("nll_loss", F.nll_loss, "input target weight reduction ignore_index")
for _name in ("nll_loss_nd", "nll_loss2d"):
    rule(_name)(nll_loss)


@rule("binary_cross_entropy_backward")
def binary_cross_entropy_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    gradient = grad_output * (self - target) / ((1 - self) * self).clamp(min=1e-12)
    gradient = gradient if weight is None else gradient * weight
    return gradient / self.numel() if REDUCTIONS[reduction] == "mean" else gradient


@rule("nll_loss_forward", "nll_loss2d_forward")
def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Return the loss, and the sum of the weights of the targets that count, by which only means are divided."""
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
