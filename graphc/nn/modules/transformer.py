"""Transformer layers and stacks of them (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from graphc.base.dtypes import dtype_of, float32
from graphc.base.errors import AttributeValueError, ShapeError
from graphc.nn import functional as F
from graphc.nn import init
from graphc.nn.module import Module
from graphc.nn.modules.attention import MultiheadAttention
from graphc.nn.modules.container import ModuleList
from graphc.nn.modules.dropout import Dropout
from graphc.nn.modules.linear import Linear
from graphc.nn.modules.normalization import LayerNorm
from graphc.ops.movement import shape as shapes
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.selection import index
from graphc.tensors.tensor import Tensor

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder"]
__all__ += ["TransformerEncoderLayer"]

Activation = str | Callable[[Tensor], Tensor]


def _activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    if callable(activation):
        return activation
    if activation not in ("relu", "gelu"):
        raise AttributeValueError(f"activation {activation!r} is not known", remedy="pass 'relu', 'gelu' or a function")
    return F.relu if activation == "relu" else F.gelu


class _Layer(Module):
    """Base of encoder and decoder layers."""

    _attends_to_memory = False

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **options)
        if self._attends_to_memory:
            attention = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **options)
            self.multihead_attn = attention
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        if self._attends_to_memory:
            self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        if self._attends_to_memory:
            self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _self_attention(self, x: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor:
        return self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0]


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear layers, each with a residual connection and a layer norm.

    The norm follows the residual sum, or with ``norm_first`` precedes each sublayer.

    Example:
        >>> import graphc as gc
        >>> layer = gc.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)
        >>> layer(gc.zeros(4, 5, 8)).shape
        (4, 5, 8)
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Map [L, N, E] to the same shape (batch first with ``batch_first``, or without N).

        Masks are as in MultiheadAttention.
        """
        x = src
        masks = (src_mask, src_key_padding_mask)
        if self.norm_first:
            x = x + self.dropout1(self._self_attention(self.norm1(x), *masks))
            return x + self.dropout2(self._feed_forward(self.norm2(x)))
        x = self.norm1(x + self.dropout1(self._self_attention(x, *masks)))
        return self.norm2(x + self.dropout2(self._feed_forward(x)))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to ``memory`` and two linear layers, each with a residual connection and a norm."""

    _attends_to_memory = True

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Map [L, N, E] and memory [S, N, E] to [L, N, E] (batch first with ``batch_first``, or without N)."""
        own, other = (tgt_mask, tgt_key_padding_mask), (memory, memory_mask, memory_key_padding_mask)
        x = tgt
        if self.norm_first:
            x = x + self.dropout1(self._self_attention(self.norm1(x), *own))
            x = x + self.dropout2(self._attend(self.norm2(x), *other))
            return x + self.dropout3(self._feed_forward(self.norm3(x)))
        x = self.norm1(x + self.dropout1(self._self_attention(x, *own)))
        x = self.norm2(x + self.dropout2(self._attend(x, *other)))
        return self.norm3(x + self.dropout3(self._feed_forward(x)))

    def _attend(self, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor:
        attention = self.multihead_attn
        return attention(x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0]


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """``num_layers`` copies of an encoder layer in sequence, and a final norm."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Map [L, N, E] to the same shape, as one layer does."""
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """``num_layers`` copies of a decoder layer in sequence, and a final norm."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Map [L, N, E] and memory [S, N, E] to [L, N, E], as one layer does."""
        x = tgt
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        for layer in self.layers:
            x = layer(x, memory, *masks)
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """Encoder of the source, and decoder that attends to the encoder's output."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        options = {"bias": bias, "device": device, "dtype": dtype}
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*sizes, **options)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **options)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*sizes, **options)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **options)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for parameter in self.parameters():
            if len(parameter.shape) > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Map source [S, N, E] and target [T, N, E] to [T, N, E] (batch first with ``batch_first``, or without N)."""
        if len(src.shape) != len(tgt.shape) or src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                f"Transformer: source {list(src.shape)} and target {list(tgt.shape)} do not fit {self.d_model} features"
            )
        axis = 0 if self.batch_first else 1
        if len(src.shape) == 3 and src.shape[axis] != tgt.shape[axis]:
            raise ShapeError(
                f"Transformer: source and target differ in batch size: {src.shape[axis]} and {tgt.shape[axis]}"
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, *masks)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return a mask [sz, sz]: minus infinity where a position would attend to a later one, else 0."""
        later = ew.gt(index.iota(shape=(sz, sz), axis=1), index.iota(shape=(sz, sz), axis=0))
        element_type = float32 if dtype is None else dtype_of(dtype)
        return ew.where(later, -math.inf, shapes.filled(0.0, element_type, ()))
