"""A small decoder of text with its keys and values in buffers, for as many rows and tokens as each call has."""

from __future__ import annotations

import graphc as gc
from graphc import nn
from graphc.nn import functional as F

CHARACTERS = 128  # ASCII
PLACES = 512  # that the caches have room for
BLOCK = 64  # most tokens of a call
ROWS = 8  # most texts side by side


class Attention(nn.Module):
    """Causal attention to the tokens of a call and, in the caches, to those of earlier calls."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.parts, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        for name in ("keys", "values"):
            self.register_buffer(name, gc.zeros(ROWS, heads, PLACES, self.size), persistent=False)

    def forward(self, x: gc.Tensor, position: int | None = None) -> gc.Tensor:
        rows, count, width = x.shape
        query, key, value = self.parts(x).view(rows, count, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        if position is None:  # training: nothing came before
            attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            end = position + count
            self.keys[:rows, :, position:end] = key
            self.values[:rows, :, position:end] = value
            visible = gc.arange(end)[None, :] <= gc.arange(position, end)[:, None]
            keys, values = self.keys[:rows, :, :end], self.values[:rows, :, :end]
            attended = F.scaled_dot_product_attention(query, keys, values, attn_mask=visible)
        return self.out(attended.transpose(1, 2).reshape(rows, count, width))


class Decoder(nn.Module):
    """Characters to logits of the characters after them."""

    def __init__(self, width: int = 128, heads: int = 4, layers: int = 3):
        super().__init__()
        self.tokens, self.places = nn.Embedding(CHARACTERS, width), nn.Embedding(PLACES, width)
        self.norms = nn.ModuleList([nn.RMSNorm(width) for _ in range(2 * layers)])
        self.attentions = nn.ModuleList([Attention(width, heads) for _ in range(layers)])
        self.perceptrons = nn.ModuleList(
            [nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers)]
        )
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, CHARACTERS, bias=False)

    def hidden(self, tokens: gc.Tensor, position: int | None = None) -> gc.Tensor:
        first = 0 if position is None else position
        x = self.tokens(tokens) + self.places(gc.arange(first, first + tokens.shape[1]))
        for i, (attention, perceptron) in enumerate(zip(self.attentions, self.perceptrons, strict=True)):
            x = x + attention(self.norms[2 * i](x), position)
            x = x + perceptron(self.norms[2 * i + 1](x))
        return self.norm(x)

    def forward(self, tokens: gc.Tensor) -> gc.Tensor:
        return self.head(self.hidden(tokens)).flatten(0, 1)
