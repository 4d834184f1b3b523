"""Decoders with keys and values in buffers, for any library whose layers are named as PyTorch's are."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from benchmarks.models.more import package_of
from benchmarks.models.standard import module


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder."""

    width: int = 768
    heads: int = 12
    layers: int = 8
    vocabulary: int = 8192
    places: int = 512
    """Capacity of the caches, in tokens."""
    gated: bool = True
    """RMS norms, gated perceptrons and no biases; else layer norms, GELU, biases, and logits by the table of tokens."""

    @property
    def weights(self) -> int:
        """Return elements of the matrices with which a token is multiplied."""
        return self.layers * (16 if self.gated else 12) * self.width**2 + self.vocabulary * self.width

    def used(self, position: int) -> int:
        """Return elements of the caches up to a position."""
        return 2 * self.layers * self.width * (position + 1)


SHAPES = {"gated": Shape(), "gpt2": Shape(layers=12, vocabulary=50257, places=1024, gated=False)}
"""Shapes by name; ``gpt2`` has the sizes of GPT-2 with 124M parameters (Radford et al. 2019)."""


def make_layer(nn: ModuleType, shape: Shape) -> Any:
    F, package, width = nn.functional, package_of(nn), shape.width
    gated = shape.gated

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = (nn.RMSNorm(width) if gated else nn.LayerNorm(width) for _ in range(2))
            self.heads, self.out = (nn.Linear(width, n * width, bias=not gated) for n in (3, 1))
            self.gate = nn.Linear(width, 4 * width, bias=False) if gated else None
            self.up, self.down = (nn.Linear(*size, bias=not gated) for size in ((width, 4 * width), (4 * width, width)))
            for name in ("keys", "values"):
                empty = package.zeros(1, shape.heads, shape.places, width // shape.heads)
                self.register_buffer(name, empty)

        def split(self, x):
            """Return the token's queries, keys and values, ``[1, heads, 1, size]`` each."""
            heads = self.heads(self.norm1(x)).view(1, 1, 3, shape.heads, width // shape.heads)
            return heads.permute(2, 0, 3, 1, 4)

        def finish(self, x, attended):
            x = x + self.out(attended.transpose(1, 2).reshape(1, 1, width))
            y = self.norm2(x)
            inside = F.silu(self.gate(y)) * self.up(y) if gated else F.gelu(self.up(y), approximate="tanh")
            return x + self.down(inside)

    return Layer()


def build_decoder(nn: ModuleType, shape: Shape) -> Any:
    """Return a decoder with learned positions, keys and values in buffers, and perceptrons of four times the width."""
    F, package, width = nn.functional, package_of(nn), shape.width
    gated = shape.gated

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(shape.vocabulary, width), nn.Embedding(shape.places, width)
            self.layers = nn.ModuleList([make_layer(nn, shape) for _ in range(shape.layers)])
            self.norm = nn.RMSNorm(width) if gated else nn.LayerNorm(width)
            self.head = nn.Linear(width, shape.vocabulary, bias=False) if gated else None

        def begin(self, token, position):
            return self.tokens(token)[None] + self.places(position)[None]

        def end(self, x):
            x = self.norm(x)
            return self.head(x) if gated else F.linear(x, self.tokens.weight)

        def up_to(self, token, position: int):
            """Attend up to a position given as a size: later entries are not even read."""
            x = self.begin(token, package.arange(position, position + 1))
            for layer in self.layers:
                query, key, value = layer.split(x)
                layer.keys[:, :, position] = key[:, :, 0]
                layer.values[:, :, position] = value[:, :, 0]
                cached = layer.keys[:, :, : position + 1], layer.values[:, :, : position + 1]
                x = layer.finish(x, F.scaled_dot_product_attention(query, *cached))
            return self.end(x)

        def forward(self, token, position):
            x = self.begin(token, position)
            mask = (package.arange(shape.places) <= position)[None, None, None, :]
            for layer in self.layers:
                query, key, value = layer.split(x)
                layer.keys.index_copy_(2, position, key)
                layer.values.index_copy_(2, position, value)
                attended = F.scaled_dot_product_attention(query, layer.keys, layer.values, attn_mask=mask)
                x = layer.finish(x, attended)
            return self.end(x)

    return Decoder().eval()


def without_states(torch: ModuleType, decoder: Any, shape: Shape) -> Any:
    """Return the decoder for libraries whose models keep nothing between calls: it takes the caches, and returns the
    token's keys and values for the caller to write. It attends to these beside the cache, so that nothing large is
    copied."""
    scale = (shape.width // shape.heads) ** -0.5

    def forward(self, token, position, caches):
        x, written = decoder.begin(token, position), []
        hidden = torch.where(torch.arange(shape.places) < position, 0.0, float("-inf"))
        for layer, keys, values in zip(decoder.layers, caches[::2], caches[1::2], strict=True):
            query, key, value = layer.split(x)
            old = query @ keys.transpose(-1, -2) * scale + hidden
            own = (query * key).sum(-1, keepdim=True) * scale
            share = torch.softmax(torch.cat((old, own), -1), -1)
            x = layer.finish(x, share[..., :-1] @ values + share[..., -1:] * value)
            written += [key, value]
        return decoder.end(x), *written

    return module(torch.nn, "WithoutStates", forward, decoder=decoder).eval()
