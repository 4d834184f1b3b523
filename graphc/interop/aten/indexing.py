"""Rules of ATen operators that read and write at positions given by tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.dtypes import int32
from graphc.interop.aten.registry import rule, same
from graphc.nn import functional as F
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor

same("gather index_select take index_add index_copy masked_select nonzero masked_scatter scatter_add")
same("index_fill", "int_Scalar int_Tensor")
same("repeat_interleave", "self_int self_Tensor")
same("take_along_dim")


@rule("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    sorted_sequence: Tensor,
    self: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    ordered = sorted_sequence if sorter is None else functions.gather(sorted_sequence, -1, sorter)
    positions = free.searchsorted(ordered, self, right=right or side == "right")
    return positions.to(int32) if out_int32 else positions


@rule("bucketize.Tensor", "bucketize.Scalar")
def bucketize(self: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return searchsorted(boundaries, self, out_int32=out_int32, right=right)


def _full_index(indices: Sequence[Tensor | None]) -> tuple[Any, ...]:
    """Return an index tuple in which a dimension without indices is taken entirely."""
    return tuple([slice(None) if i is None else i for i in indices])


@rule("index.Tensor", "_unsafe_index.Tensor")
def index(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return self[_full_index(indices)]


@rule("index_put", "_unsafe_index_put")
def index_put(self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    return functions.index_put(self, _full_index(indices), values, accumulate)


@rule("scatter.src", "scatter.value")
def scatter(self: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    return functions.scatter(self, dim, index, src)


@rule("scatter_reduce.two")
def scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    return functions.scatter_reduce(self, dim, index, src, reduce, include_self=include_self)


@rule("embedding")
def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    padding = None if padding_idx < 0 else padding_idx
    return F.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq)


@rule("embedding_renorm_")
def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale too long rows of the table, in place."""
    F.embedding(indices, self, None, max_norm, norm_type)
    return self


@rule("embedding_bag", "embedding_bag.padding_idx", "_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Any, ...]:
    """Compute the first result. The others only serve PyTorch's own backward pass."""
    padding = None if padding_idx is None or padding_idx < 0 else padding_idx
    options: Any = {"mode": ("sum", "mean", "max")[mode], "scale_grad_by_freq": scale_grad_by_freq}
    more: Any = {"per_sample_weights": per_sample_weights, "include_last_offset": include_last_offset}
    return F.embedding_bag(indices, weight, offsets, padding_idx=padding, **options, **more), None, None, None
