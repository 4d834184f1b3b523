"""Rules of ATen's distance and similarity operators."""

from __future__ import annotations

from graphc.interop.aten.registry import rule
from graphc.nn import functional as F
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor


@rule("cosine_similarity")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    return F.cosine_similarity(x1, x2, dim, eps)


@rule("pairwise_distance")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    return F.pairwise_distance(x1, x2, p, eps, keepdim)


@rule("pdist", "_pdist_forward")
def pdist(self: Tensor, p: float = 2) -> Tensor:
    return F.pdist(self, p)


@rule("cdist", "_cdist_forward")
def cdist(x1: Tensor, x2: Tensor, p: float = 2, compute_mode: int | None = None) -> Tensor:
    """Return the distances between the rows of two matrices, for each pair of matrices in batches."""
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return functions.norm(difference, p, -1)
