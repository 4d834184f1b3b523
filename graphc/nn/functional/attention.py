"""Scaled dot-product attention."""

from __future__ import annotations

import math
from itertools import pairwise

from graphc.base.dtypes import int32
from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.sizes.size import is_size, root
from graphc.nn.functional.dropout import dropout
from graphc.ops.contraction import matrix_product
from graphc.ops.movement import shape as shapes
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.selection import index
from graphc.tensors import composite
from graphc.tensors.mixed import product
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

_ROWS, _MOST = 256, 8
"""Least rows of a stretch of causal attention, and the largest number of stretches."""


@product
@compiled_when_repeated
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query key^T * scale + mask) value`` for query [..., L, E], key [..., S, E], value [..., S, F].

    ``attn_mask`` broadcasts to [..., L, S]: a bool one keeps where it is True, another is added. A row that is masked
    from end to end gives zeros. Scores that a bool mask hides have no effect and get gradient 0, be they or their
    gradient infinite or NaN; PyTorch adds -inf to them. ``is_causal`` keeps position i from seeing those after i.
    ``scale`` is 1 / sqrt(E) when None. ``enable_gqa`` lets several query heads (dimension -3) share one key and value
    head. Raises ShapeError when last dimensions do not fit.
    """
    if is_causal and attn_mask is not None:
        raise AttributeValueError("scaled_dot_product_attention: both attn_mask and is_causal are given")
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"scaled_dot_product_attention: query {list(query.shape)}, key {list(key.shape)} and "
            f"value {list(value.shape)} do not fit"
        )
    if enable_gqa:
        key, value = share_heads(query, key), share_heads(query, value)
    factor = 1.0 / root(query.shape[-1]) if scale is None else scale
    stretches = _stretches(query.shape[-2], key.shape[-2]) if is_causal else []
    if len(stretches) < 2:
        mask = _causal(query.shape[-2], key.shape[-2]) if is_causal else attn_mask
        return _attend(query, key, value, mask, factor, dropout_p, is_causal)
    parts = []
    for start, stop in stretches:
        rows, seen, weighed = query[..., start:stop, :], key[..., :stop, :], value[..., :stop, :]
        parts.append(_attend(rows, seen, weighed, _causal(stop - start, stop, start), factor, dropout_p, True))
    return shapes.concat(*parts, axis=query.ndim - 2)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    factor: float,
    dropout_p: float,
    causal: bool,
) -> Tensor:
    """``softmax(query key^T * factor + mask) value``; a bool mask keeps where it is True."""
    scores = ew.mul(matrix_product.matmul(query, key, transpose_b=True), factor)
    if mask is not None and mask.dtype.kind == "b":
        scores = ew.where(mask, scores, -math.inf)
    elif mask is not None:
        scores = ew.add(scores, mask)
    # Every query sees a key where the mask is the causal one.
    weights = composite.softmax(scores, -1) if mask is None or causal else composite.masked_softmax(scores, -1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return matrix_product.matmul(weights, value)


def _causal(rows: int, columns: int, first: int = 0) -> Tensor:
    """True at [i, j] where j is not after ``first`` + i."""
    size = (rows, columns)
    row, column = (index.iota(shape=size, axis=axis, dtype=int32) for axis in (0, 1))
    return ew.ge(ew.add(row, first) if first else row, column)


def _stretches(queries: int, keys: int) -> list[tuple[int, int]]:
    """Rows of long causal attention in stretches, each of which leaves out the keys after its end: of eight
    stretches, the scores that are computed are 9/16 of all."""
    if is_size(queries) or is_size(keys):
        return []
    count = min(_MOST, min(queries, keys) // _ROWS)
    ends = [queries * i // count for i in range(1, count)] if queries <= keys else []
    return list(pairwise([0, *ends, queries]))


def share_heads(query: Tensor, x: Tensor) -> Tensor:
    """``x`` with every head repeated until there are as many as in ``query``."""
    heads, shared = query.shape[-3], x.shape[-3]
    if heads % shared:
        raise ShapeError(f"scaled_dot_product_attention: {heads} query heads cannot share {shared} heads")
    lead, tail = tuple(x.shape[:-2]), tuple(x.shape[-2:])
    repeated = shapes.broadcast_to(x.reshape(*lead, 1, *tail), shape=(*lead, heads // shared, *tail))
    return repeated.reshape(*lead[:-1], heads, *tail)
