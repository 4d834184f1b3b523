"""Multi-head attention."""

from __future__ import annotations

import math
from typing import Any

from graphc import composite
from graphc.errors import AttributeValueError, ShapeError
from graphc.nn import functional as F
from graphc.nn import init
from graphc.nn.module import Module
from graphc.nn.modules.linear import Linear
from graphc.nn.parameter import Parameter, empty_parameter
from graphc.ops import contraction
from graphc.ops import elementwise as ew
from graphc.ops import shape as shapes
from graphc.tensor import Tensor


def as_added(mask: Tensor, like: Tensor) -> Tensor:
    """A mask to be added: a bool one becomes minus infinity where it is True."""
    if mask.dtype.kind != "b":
        return mask
    return ew.where(mask, -math.inf, shapes.filled(0.0, like.dtype, ()))


class MultiheadAttention(Module):
    """Attention of ``num_heads`` heads between projections of query, key and value (Vaswani et al. 2017).

    With equal dimensions the three projections are one parameter ``in_proj_weight`` [3 embed_dim, embed_dim], else
    ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight``. ``add_bias_kv`` appends a learned key and value,
    ``add_zero_attn`` one of zeros.
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None
    out_proj: Linear

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise AttributeValueError(
                f"MultiheadAttention: embed_dim {embed_dim} is not divisible by num_heads {num_heads}"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        joint = self.kdim == embed_dim and self.vdim == embed_dim
        sizes = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        for name, size in sizes.items():
            self.register_parameter(name, None if joint else empty_parameter((embed_dim, size), dtype, device))
        self.register_parameter(
            "in_proj_weight", empty_parameter((3 * embed_dim, embed_dim), dtype, device) if joint else None
        )
        self.register_parameter("in_proj_bias", empty_parameter((3 * embed_dim,), dtype, device) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, empty_parameter((1, 1, embed_dim), dtype, device) if add_bias_kv else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the projections by Glorot's uniform rule; biases are 0, ``bias_k`` and ``bias_v`` normal."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Query [L, N, E], key [S, N, kdim] and value [S, N, vdim] (batch first with ``batch_first``, or without N) to
        the output [L, N, E] in the same layout and the attention weights [N, L, S] (None unless ``need_weights``; one
        per head unless ``average_attn_weights``).

        ``attn_mask`` is [L, S] or [N * heads, L, S], ``key_padding_mask`` [N, S]; bool ones hide where they are True,
        others are added. ``is_causal`` is a hint that ``attn_mask``, which must be given, is causal.
        """
        single = len(query.shape) == 2
        if single:
            query, key, value = (t.unsqueeze(1) for t in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif self.batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        self._check(query, key, value)
        if is_causal and attn_mask is None:
            raise AttributeValueError(
                "MultiheadAttention: is_causal needs attn_mask too", remedy="pass the causal mask"
            )
        q, k, v = self._projected(query, key, value)
        mask = self._mask(q, k, attn_mask, key_padding_mask)
        k, v, mask = self._extended(k, v, mask)
        output, weights = self._attend(q, k, v, mask, need_weights)
        if weights is not None and average_attn_weights:
            weights = composite.mean(weights, 1)
        if single:
            return output.squeeze(1), None if weights is None else weights.squeeze(0)
        return (output.transpose(0, 1) if self.batch_first else output), weights

    def _check(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        shapes_ = [list(t.shape) for t in (query, key, value)]
        sizes = (self.embed_dim, self.kdim, self.vdim)
        fits = all(len(s) == 3 and s[-1] == n for s, n in zip(shapes_, sizes, strict=True))
        if not fits or shapes_[1][:2] != shapes_[2][:2] or shapes_[0][1] != shapes_[1][1]:
            raise ShapeError(
                f"MultiheadAttention: query {shapes_[0]}, key {shapes_[1]} and value {shapes_[2]} do not fit "
                f"embed_dim {self.embed_dim}, kdim {self.kdim}, vdim {self.vdim}"
            )

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """Query, key and value as [length, batch, embed_dim]."""
        size = self.embed_dim
        biases: Any = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.split(size)
        if self.in_proj_weight is None:
            weights: Any = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        elif query is key and key is value:
            return list(F.linear(query, self.in_proj_weight, self.in_proj_bias).split(size, -1))
        else:
            weights = self.in_proj_weight.split(size)
        return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]

    def _mask(self, q: Tensor, k: Tensor, attn_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Both masks as one that is added to scores [batch, heads, L, S]."""
        length, batch, source = q.shape[0], q.shape[1], k.shape[0]
        total = None
        if attn_mask is not None:
            wanted = (length, source) if len(attn_mask.shape) == 2 else (batch * self.num_heads, length, source)
            if tuple(attn_mask.shape) != wanted:
                raise ShapeError(f"MultiheadAttention: attn_mask is {list(attn_mask.shape)}, not {list(wanted)}")
            total = as_added(attn_mask, q)
            total = total if len(wanted) == 2 else total.reshape(batch, self.num_heads, length, source)
        if padding is not None:
            if tuple(padding.shape) != (batch, source):
                raise ShapeError(
                    f"MultiheadAttention: key_padding_mask is {list(padding.shape)}, not {[batch, source]}"
                )
            hidden = as_added(padding, q).reshape(batch, 1, 1, source)
            total = hidden if total is None else ew.add(total, hidden)
        return total

    def _extended(self, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Keys and values with those that the options append; the mask lets them through."""
        batch = k.shape[1]
        if self.bias_k is not None and self.bias_v is not None:
            k = shapes.concat(k, self.bias_k.expand(1, batch, self.embed_dim), axis=0)
            v = shapes.concat(v, self.bias_v.expand(1, batch, self.embed_dim), axis=0)
        if self.add_zero_attn:
            nothing = ((0, 0, 0), (1, 0, 0), (0, 0, 0))
            k, v = (shapes.pad(t, low=nothing[0], high=nothing[1], interior=nothing[2]) for t in (k, v))
        added = (self.bias_k is not None) + bool(self.add_zero_attn)
        if mask is not None and added:
            none = (0,) * (len(mask.shape) - 1)
            mask = shapes.pad(mask, low=(*none, 0), high=(*none, added), interior=(*none, 0))
        return k, v, mask

    def _heads(self, x: Tensor) -> Tensor:
        """[length, batch, embed_dim] as [batch, heads, length, head_dim]."""
        return x.reshape(x.shape[0], x.shape[1], self.num_heads, self.head_dim).permute(1, 2, 0, 3)

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        length, batch = q.shape[:2]
        heads = [self._heads(t) for t in (q, k, v)]
        scores = contraction.matmul(ew.mul(heads[0], 1.0 / math.sqrt(self.head_dim)), heads[1], transpose_b=True)
        weights = composite.softmax(scores if mask is None else ew.add(scores, mask), -1)
        if self.dropout and self.training:
            weights = F.dropout(weights, self.dropout)
        joined = contraction.matmul(weights, heads[2]).permute(2, 0, 1, 3).reshape(length, batch, self.embed_dim)
        return self.out_proj(joined), weights if need_weights else None
