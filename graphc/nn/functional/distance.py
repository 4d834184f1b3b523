"""Distances and similarities of vectors."""

from __future__ import annotations

from graphc.base.sizes.dims import dims_of
from graphc.ops.movement.shape import broadcast_to, concat
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.reduction import reduce
from graphc.tensors import composite
from graphc.tensors.mixed import in_f32
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]


@in_f32
@compiled_when_repeated
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Divide the dot product along ``dim`` by both norms, each taken as at least ``eps``."""
    product = ew.mul(x1, x2)
    dot = reduce.sum(product, axes=dims_of(dim, len(product.shape)), keepdims=False)
    full = tuple(product.shape)
    wide = [x if tuple(x.shape) == full else broadcast_to(x, shape=full) for x in (x1, x2)]
    norms = [ew.maximum(composite.norm(x, 2.0, dim), eps) for x in wide]
    return ew.div(dot, ew.mul(*norms))


@in_f32
@compiled_when_repeated
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Compute the p-norm of ``x1 - x2 + eps`` along the last dimension."""
    return composite.norm(ew.add(ew.sub(x1, x2), eps), p, -1, keepdim)


@in_f32
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Compute the p-norm distances of all pairs i < j of the rows of ``input`` [n, m], as [n (n - 1) / 2]."""
    rows = input.shape[0]
    distances = [composite.norm(ew.sub(input[i : i + 1], input[i + 1 :]), p, -1) for i in range(rows - 1)]
    if not distances:
        return input.reshape(-1)[:0]
    return concat(*distances, axis=0)
