"""Scaled dot-product attention."""

from __future__ import annotations

import math
from itertools import pairwise

from graphc.base.dtypes import int32
from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.sizes.size import is_size, root
from graphc.nn.functional.dropouts import dropout
from graphc.ops.contraction import matrix_product
from graphc.ops.movement import shape as shapes
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.selection import index
from graphc.tensors import composite
from graphc.tensors.mixed import product
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

__all__ = ["scaled_dot_product_attention"]

_MIN_ROWS, _MAX_SEGMENTS = 256, 8
"""Minimum rows of a segment of causal attention, and the maximum number of segments."""


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
    """Compute ``softmax(query key^T * scale + mask) value``.

    Shapes: query [..., L, E], key [..., S, E], value [..., S, F]; result [..., L, F].

    ``attn_mask`` broadcasts to [..., L, S]: a bool mask keeps scores where it is True, another is added. A fully masked
    row gives zeros. Scores hidden by a bool mask have no effect and get gradient 0, even if they or their gradient are
    infinite or NaN; PyTorch adds -inf to them. ``is_causal`` masks the positions after i for query i. ``scale`` is 1 /
    sqrt(E) when None. With ``enable_gqa`` several query heads (dimension -3) share one key and value head. Raises
    ShapeError when the last dimensions do not fit.

    Example:
        >>> import graphc as gc
        >>> query, key, value = gc.zeros(1, 2, 4), gc.zeros(1, 2, 4), gc.tensor([[[1.0], [3.0]]])
        >>> gc.nn.functional.scaled_dot_product_attention(query, key, value)
        tensor([[[2.],
                 [2.]]])
        >>> gc.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        tensor([[[1.],
                 [2.]]])
    """
    if is_causal and attn_mask is not None:
        raise AttributeValueError("scaled_dot_product_attention: attn_mask and is_causal exclude each other")
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"scaled_dot_product_attention: query {list(query.shape)}, key {list(key.shape)} and "
            f"value {list(value.shape)} do not fit"
        )
    if enable_gqa:
        key, value = share_heads(query, key), share_heads(query, value)
    factor = 1.0 / root(query.shape[-1]) if scale is None else scale
    segments = _segments(query.shape[-2], key.shape[-2]) if is_causal else []
    if len(segments) < 2:
        mask = _causal(query.shape[-2], key.shape[-2]) if is_causal else attn_mask
        return _attend(query, key, value, mask, factor, dropout_p, is_causal)
    outputs = []
    for start, stop in segments:
        rows, visible_keys, visible_values = query[..., start:stop, :], key[..., :stop, :], value[..., :stop, :]
        mask = _causal(stop - start, stop, start)
        outputs.append(_attend(rows, visible_keys, visible_values, mask, factor, dropout_p, True))
    return shapes.concat(*outputs, axis=query.ndim - 2)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    factor: float,
    dropout_p: float,
    causal: bool,
) -> Tensor:
    """Compute ``softmax(query key^T * factor + mask) value``; a bool mask keeps scores where it is True."""
    scores = ew.mul(matrix_product.matmul(query, key, transpose_b=True), factor)
    if mask is not None and mask.dtype.kind == "b":
        scores = ew.where(mask, scores, -math.inf)
    elif mask is not None:
        scores = ew.add(scores, mask)
    # With the causal mask every query sees at least one key, so plain softmax does.
    weights = composite.softmax(scores, -1) if mask is None or causal else composite.masked_softmax(scores, -1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return matrix_product.matmul(weights, value)


def _causal(rows: int, columns: int, first: int = 0) -> Tensor:
    """Return a bool mask, True at [i, j] where j <= ``first`` + i."""
    size = (rows, columns)
    row, column = (index.iota(shape=size, axis=axis, dtype=int32) for axis in (0, 1))
    return ew.ge(ew.add(row, first) if first else row, column)


def _segments(queries: int, keys: int) -> list[tuple[int, int]]:
    """Split the rows of long causal attention into segments, each of which leaves out the keys after its end.

    With eight segments, only 9/16 of all scores are computed.
    """
    if is_size(queries) or is_size(keys):
        return []
    count = min(_MAX_SEGMENTS, min(queries, keys) // _MIN_ROWS)
    ends = [queries * i // count for i in range(1, count)] if queries <= keys else []
    return list(pairwise([0, *ends, queries]))


def share_heads(query: Tensor, x: Tensor) -> Tensor:
    """Repeat every head of ``x`` until there are as many as in ``query``."""
    heads, shared = query.shape[-3], x.shape[-3]
    if heads % shared:
        raise ShapeError(f"scaled_dot_product_attention: {heads} query heads cannot share {shared} heads")
    lead, tail = tuple(x.shape[:-2]), tuple(x.shape[-2:])
    repeated = shapes.broadcast_to(x.reshape(*lead, 1, *tail), shape=(*lead, heads // shared, *tail))
    return repeated.reshape(*lead[:-1], heads, *tail)
