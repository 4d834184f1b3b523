"""Multi-head attention."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.nn import init
from graphc.nn.functional.multi_head_attention import (
    attend,
    each,
    extend,
    joint_mask,
    project,
    shown_weights,
)
from graphc.nn.module import Module
from graphc.nn.modules.linear import Linear
from graphc.nn.parameter import Parameter, empty_parameter
from graphc.tensors.tensor import Tensor

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention with ``num_heads`` heads on projections of query, key and value (Vaswani et al. 2017).

    If ``embed_dim``, ``kdim`` and ``vdim`` are equal, the three projections are one parameter ``in_proj_weight`` [3
    embed_dim, embed_dim]; otherwise they are ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight``.
    ``add_bias_kv`` appends a learned key and value, ``add_zero_attn`` a key and value of zeros.

    Example:
        >>> import graphc as gc
        >>> attention = gc.nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)
        >>> x = gc.zeros(4, 5, 8)
        >>> output, weights = attention(x, x, x)
        >>> output.shape, weights.shape
        ((4, 5, 8), (4, 5, 5))
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
        """Draw the projections by Glorot's uniform rule; set biases to 0, and ``bias_k`` and ``bias_v`` to normal
        values."""
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
        """Return the output [L, N, E], and the attention weights [N, L, S].

        Shapes: query [L, N, E], key [S, N, kdim] and value [S, N, vdim] (batch first with ``batch_first``, or without
        N). The output has the same layout. The weights are None unless ``need_weights``, and one per head unless
        ``average_attn_weights``.

        ``attn_mask`` is [L, S] or [N * heads, L, S], ``key_padding_mask`` [N, S]. A bool mask hides keys where it is
        True, others are added. ``is_causal`` is a hint that ``attn_mask``, which must be given, is causal.
        """
        single = len(query.shape) == 2
        if single:
            query, key, value = each(lambda t: t.unsqueeze(1), query, key, value)
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif self.batch_first:
            query, key, value = each(lambda t: t.transpose(0, 1), query, key, value)
        self._check(query, key, value)
        weights: Any = self.in_proj_weight
        if weights is None:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        q, k, v = project(query, key, value, weights, self.in_proj_bias)
        mask = joint_mask(q, k, self.num_heads, attn_mask, key_padding_mask, is_causal)
        k, v, mask = extend(k, v, mask, self.bias_k, self.bias_v, self.add_zero_attn)
        joined, attention = attend(q, k, v, self.num_heads, mask, self.dropout if self.training else 0.0, need_weights)
        output, returned = self.out_proj(joined), shown_weights(attention, need_weights, average_attn_weights)
        if single:
            return output.squeeze(1), None if returned is None else returned.squeeze(0)
        return (output.transpose(0, 1) if self.batch_first else output), returned

    def _check(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        shapes_ = [list(t.shape) for t in (query, key, value)]
        sizes = (self.embed_dim, self.kdim, self.vdim)
        fits = all(len(s) == 3 and s[-1] == n for s, n in zip(shapes_, sizes, strict=True))
        if not fits or shapes_[1][:2] != shapes_[2][:2] or shapes_[0][1] != shapes_[1][1]:
            raise ShapeError(
                f"MultiheadAttention: query {shapes_[0]}, key {shapes_[1]} and value {shapes_[2]} do not fit "
                f"embed_dim {self.embed_dim}, kdim {self.kdim}, vdim {self.vdim}"
            )
