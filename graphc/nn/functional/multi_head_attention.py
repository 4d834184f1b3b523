"""Multi-head attention as a function of its parameters (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.sizes.size import root
from graphc.nn.functional.affine import linear
from graphc.nn.functional.dropouts import dropout
from graphc.ops.contraction import matrix_product
from graphc.ops.movement import shape as shapes
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import composite
from graphc.tensors.tensor import Tensor

__all__ = ["multi_head_attention_forward"]


def as_added(mask: Tensor, like: Tensor) -> Tensor:
    """Convert a mask to additive form: a bool mask becomes minus infinity where it is True."""
    if mask.dtype.kind != "b":
        return mask
    return ew.where(mask, -math.inf, shapes.filled(0.0, like.dtype, ()))


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Compute ``nn.MultiheadAttention`` from its parameters, for query [L, N, E], key and value [S, N, *].

    All three may lack N. ``static_k`` and ``static_v`` [N * heads, S, E / heads] replace the projected key and value.
    Raises ShapeError for shapes that do not fit, AttributeValueError for ``is_causal`` without ``attn_mask``.
    """
    if query.shape[-1] != embed_dim_to_check or embed_dim_to_check % num_heads:
        raise ShapeError(
            f"attention: query {list(query.shape)} does not fit embed_dim {embed_dim_to_check} and {num_heads} heads"
        )
    single = len(query.shape) == 2
    if single:
        query, key, value = each(lambda t: t.unsqueeze(1), query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    q, k, v = project(query, key, value, weights, in_proj_bias)
    k = k if static_k is None else _static(static_k, q, num_heads)
    v = v if static_v is None else _static(static_v, q, num_heads)
    mask = joint_mask(q, k, num_heads, attn_mask, key_padding_mask, is_causal)
    k, v, mask = extend(k, v, mask, bias_k, bias_v, add_zero_attn)
    joined, attention = attend(q, k, v, num_heads, mask, dropout_p if training else 0.0, need_weights)
    output = linear(joined, out_proj_weight, out_proj_bias)
    returned = shown_weights(attention, need_weights, average_attn_weights)
    if single:
        return output.squeeze(1), None if returned is None else returned.squeeze(0)
    return output, returned


def each(
    change: Callable[[Tensor], Tensor], query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Apply ``change`` to all three; identical tensors stay identical, so that one product projects them."""
    q = change(query)
    k = q if key is query else change(key)
    return q, k, k if value is key else change(value)


def project(query: Tensor, key: Tensor, value: Tensor, weights: Any, bias: Tensor | None) -> list[Tensor]:
    """Project query, key and value to [length, batch, embed_dim]; ``weights`` are three, or one [3 embed_dim,
    embed_dim]."""
    size = query.shape[-1]
    biases: Any = (None,) * 3 if bias is None else bias.split(size)
    if not isinstance(weights, tuple):
        if query is key and key is value:
            return list(linear(query, weights, bias).split(size, -1))
        weights = weights.split(size)
    return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]


def _static(x: Tensor, q: Tensor, heads: int) -> Tensor:
    """Rearrange [N * heads, S, E / heads] to [S, N, E]."""
    batch, size = q.shape[1], q.shape[2]
    if len(x.shape) != 3 or x.shape[0] != batch * heads or x.shape[2] * heads != size:
        raise ShapeError(
            f"attention: a static key or value {list(x.shape)} is not [{batch * heads}, S, {size // heads}]"
        )
    return x.reshape(batch, heads, x.shape[1], -1).permute(2, 0, 1, 3).reshape(x.shape[1], batch, size)


def joint_mask(
    q: Tensor, k: Tensor, heads: int, attn_mask: Tensor | None, padding: Tensor | None, is_causal: bool
) -> Tensor | None:
    """Combine both masks into one additive mask for scores [batch, heads, L, S]."""
    if is_causal and attn_mask is None:
        raise AttributeValueError("attention: is_causal needs attn_mask too", remedy="pass the causal mask")
    length, batch, source = q.shape[0], q.shape[1], k.shape[0]
    total = None
    if attn_mask is not None:
        expected = (length, source) if len(attn_mask.shape) == 2 else (batch * heads, length, source)
        if tuple(attn_mask.shape) != expected:
            raise ShapeError(f"attention: attn_mask is {list(attn_mask.shape)}, not {list(expected)}")
        total = as_added(attn_mask, q)
        total = total if len(expected) == 2 else total.reshape(batch, heads, length, source)
    if padding is not None:
        if tuple(padding.shape) != (batch, source):
            raise ShapeError(f"attention: key_padding_mask is {list(padding.shape)}, not {[batch, source]}")
        hidden = as_added(padding, q).reshape(batch, 1, 1, source)
        total = hidden if total is None else ew.add(total, hidden)
    return total


def extend(
    k: Tensor, v: Tensor, mask: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, zeros: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Append the learned key and value, and a key and value of zeros; the mask lets them through."""
    learned = bias_k is not None and bias_v is not None
    if bias_k is not None and bias_v is not None:
        shape = (1, *k.shape[1:])
        k, v = shapes.concat(k, bias_k.expand(*shape), axis=0), shapes.concat(v, bias_v.expand(*shape), axis=0)
    if zeros:
        nothing = ((0, 0, 0), (1, 0, 0), (0, 0, 0))
        k, v = (shapes.pad(t, low=nothing[0], high=nothing[1], interior=nothing[2]) for t in (k, v))
    added = learned + bool(zeros)
    if mask is not None and added:
        none = (0,) * (len(mask.shape) - 1)
        mask = shapes.pad(mask, low=(*none, 0), high=(*none, added), interior=(*none, 0))
    return k, v, mask


def _heads(x: Tensor, heads: int) -> Tensor:
    """Rearrange [length, batch, size] to [batch, heads, length, size / heads]."""
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).permute(1, 2, 0, 3)


def attend(
    q: Tensor, k: Tensor, v: Tensor, heads: int, mask: Tensor | None, dropout_p: float, need_weights: bool
) -> tuple[Tensor, Tensor]:
    """Return (values of all heads concatenated [L, N, E], weights [N, heads, L, S]).

    A query whose keys are all hidden gives zeros, or, as in PyTorch, NaN when the weights are requested.
    """
    length, batch, size = q.shape
    queries, keys, values = (_heads(t, heads) for t in (q, k, v))
    scores = matrix_product.matmul(ew.mul(queries, 1.0 / root(size // heads)), keys, transpose_b=True)
    scores = scores if mask is None else ew.add(scores, mask)
    plain = mask is None or need_weights
    weights = composite.softmax(scores, -1) if plain else composite.masked_softmax(scores, -1)
    if dropout_p:
        weights = dropout(weights, dropout_p)
    return matrix_product.matmul(weights, values).permute(2, 0, 1, 3).reshape(length, batch, size), weights


def shown_weights(weights: Tensor, need_weights: bool, average: bool) -> Tensor | None:
    """Return the weights for the caller: their mean over heads, one per head, or None."""
    if not need_weights:
        return None
    return composite.mean(weights, 1) if average else weights
