"""Decoder-only transformers: token embedding, layers of attention and gated perceptron, logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphc.base.dtypes import int32
from graphc.base.errors import ArgumentError
from graphc.base.lazy import deferred
from graphc.base.sizes.named_dims import Dim
from graphc.llm.config import DecoderConfig, Rotary
from graphc.llm.token_programs import BLOCK
from graphc.nn import functional as F
from graphc.nn.module import Module
from graphc.nn.modules.container import ModuleList
from graphc.nn.modules.linear import Linear
from graphc.nn.modules.normalization import RMSNorm
from graphc.nn.modules.sparse import Embedding
from graphc.tensors import functions
from graphc.tensors.creation import arange, from_numpy, zeros
from graphc.tensors.free_functions import cat, where
from graphc.tensors.tensor import Tensor

if TYPE_CHECKING:
    from graphc.models.model_entries import Entry

# Import the export of models only where it is wanted: it imports optimizers and processes, too.
entry_of = deferred("graphc.models.model_entries:Entry")

__all__ = ["Decoder"]

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


class TokenTable(Embedding):
    """Table of vectors that also serves as the matrix of the logits."""

    def project(self, hidden: Tensor) -> Tensor:
        """Return the products [..., tokens] of vectors [..., width] with all rows."""
        return F.linear(hidden, self.weight)


class LayerMaker:
    """Makes the layers with weights, by their paths in the decoder; these have random weights."""

    def linear(self, path: str, inputs: int, outputs: int, bias: bool) -> Module:
        return Linear(inputs, outputs, bias=bias)

    def table(self, path: str, count: int, width: int) -> Module:
        return TokenTable(count, width)

    def norm(self, path: str, size: int, config: DecoderConfig) -> Module:
        return RMSNorm(size, config.epsilon)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate pairs ``(x[i], x[i + n])`` of the first 2n elements of x [..., count, size]; cos, sin: [count, n]."""
    half = cos.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    rotated = [first * cos - second * sin, second * cos + first * sin]
    return cat([*rotated, rest] if rest.shape[-1] else rotated, -1)


class Positions(NamedTuple):
    """Positions of tokens [rows, count] in the caches."""

    first: int | Tensor
    """Position of the first token of each row, or i64[rows], one of the only token of each row."""
    end: int
    """Position after the last token of all rows."""
    row: int = 0
    """First row of the caches, where ``first`` is a number."""
    is_cached: bool = True
    """Whether the tokens attend to the caches, and not to each other alone."""

    def own(self, count: int) -> Tensor:
        """Return the positions of the tokens: [count, 1], or [rows, 1, 1, 1, 1]."""
        if isinstance(self.first, Tensor):
            return self.first[:, None, None, None, None]
        return arange(self.first, self.first + count)[:, None]

    def angles(self, table: Tensor, count: int) -> Tensor:
        """Return the rows of a table [places, n] for the tokens: [count, n], or [rows, 1, 1, n]."""
        if isinstance(self.first, Tensor):
            return table[self.first][:, None, None]
        return table[self.first : self.first + count]

    def write(self, cache: Tensor, new: Tensor) -> Tensor:
        """Write [rows, heads, count, size] to a cache; return the elements of its rows up to the last token. Return
        ``new`` where there is no cache."""
        if not self.is_cached:
            return new
        rows = new.shape[0]
        if isinstance(self.first, Tensor):
            cache[arange(rows), :, self.first] = new[:, :, 0]
        else:
            cache[self.row : self.row + rows, :, self.first : self.end] = new
        return cache[self.row : self.row + rows, :, : self.end]


class Attention(Module):
    """Causal attention whose query heads share keys and values in groups."""

    keys: Tensor
    values: Tensor

    def __init__(self, config: DecoderConfig, layer: int, rows: int, places: int, make: LayerMaker):
        super().__init__()
        self.config, self.window, self.rotary = config, config.windows[layer], config.rotary[layer]
        inner, shared = config.heads * config.head_size, config.shared_heads * config.head_size
        width, path = config.width, f"layers.{layer}.self_attn"
        inputs = {"q_proj": (width, inner), "k_proj": (width, shared), "v_proj": (width, shared)}
        for name, size in (inputs | {"o_proj": (inner, width)}).items():
            self.add_module(name, make.linear(f"{path}.{name}", *size, bias=name in config.biases))
        if config.head_norms:
            self.q_norm, self.k_norm = (make.norm(f"{path}.{name}_norm", config.head_size, config) for name in "qk")
        for name in ("keys", "values"):
            cache = zeros(rows, config.shared_heads, places, config.head_size)
            self.register_buffer(name, cache, persistent=False)

    def _split(self, x: Tensor, heads: int) -> Tensor:
        """Return [rows, heads, count, size] for [rows, count, heads * size]."""
        return x.view(*x.shape[:2], heads, self.config.head_size).transpose(1, 2)

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor] | None, positions: Positions) -> Tensor:
        config = self.config
        query = self._split(self.q_proj(x), config.heads)
        key, value = (self._split(f(x), config.shared_heads) for f in (self.k_proj, self.v_proj))
        if config.head_norms:
            query, key = self.q_norm(query), self.k_norm(key)
        if angles is not None:
            query, key = rotate(query, *angles), rotate(key, *angles)
        key, value = positions.write(self.keys, key), positions.write(self.values, value)
        return self.o_proj(self._attend(query, key, value, positions.own(x.shape[1])))

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, own: Tensor) -> Tensor:
        """Attend to keys and values [rows, shared heads, end, size] for queries at positions ``own``."""
        config = self.config
        rows, heads, count, size = query.shape
        shared, end = config.shared_heads, key.shape[2]
        group = heads // shared
        scores = (query.reshape(rows, shared, group * count, size) @ key.transpose(-1, -2)) * config.scale
        if config.score_cap is not None:
            scores = functions.tanh(scores / config.score_cap) * config.score_cap
        seen = arange(end)[None, :]
        visible = seen <= own
        if self.window is not None:
            visible = visible & (own - seen < self.window)
        scores = where(visible, scores.view(rows, shared, group, count, end), float("-inf"))
        weights = scores.softmax(-1).view(rows, shared, group * count, end)
        return (weights @ value).view(rows, heads, count, size).transpose(1, 2).reshape(rows, count, heads * size)


class Perceptron(Module):
    """``down(activation(gate(x)) * up(x))``: SwiGLU or GeGLU (Shazeer 2020)."""

    def __init__(self, config: DecoderConfig, layer: int, make: LayerMaker):
        super().__init__()
        self.activation = config.activation
        outward, inward = (config.width, config.hidden), (config.hidden, config.width)
        for name, size in (("gate_proj", outward), ("up_proj", outward), ("down_proj", inward)):
            self.add_module(name, make.linear(f"layers.{layer}.mlp.{name}", *size, bias=name in config.biases))

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(_ACTIVATIONS[self.activation](self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(Module):
    """Attention and perceptron, each between norms and added to its input.

    Names of the norms are those of ``transformers``: with norms before only, ``post_attention_layernorm`` is the one
    before the perceptron.
    """

    def __init__(self, config: DecoderConfig, layer: int, rows: int, places: int, make: LayerMaker):
        super().__init__()
        self.residual_scale, self.norms_after = config.residual_scale, config.norms_after
        self.self_attn, self.mlp = Attention(config, layer, rows, places, make), Perceptron(config, layer, make)
        names = ["input_layernorm", "post_attention_layernorm"]
        names += ["pre_feedforward_layernorm", "post_feedforward_layernorm"] if config.norms_after else []
        for name in names:
            self.add_module(name, make.norm(f"layers.{layer}.{name}", config.width, config))

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor] | None, positions: Positions) -> Tensor:
        attended = self.self_attn(self.input_layernorm(x), angles, positions)
        if self.norms_after:
            attended = self.post_attention_layernorm(attended)
        x = x + attended * self.residual_scale
        inside = self.pre_feedforward_layernorm(x) if self.norms_after else self.post_attention_layernorm(x)
        inside = self.mlp(inside)
        if self.norms_after:
            inside = self.post_feedforward_layernorm(inside)
        return x + inside * self.residual_scale


class Decoder(Module):
    """Tokens to logits of the tokens after them.

    Names of parameters are those of ``transformers`` without the prefix ``model.``. ``make`` makes the layers with
    weights; without it weights are random. The caches of keys and values hold ``places`` tokens, rounded up to a
    multiple of 64, of ``rows`` texts.
    """

    def __init__(self, config: DecoderConfig, rows: int = 1, places: int = 512, make: LayerMaker | None = None):
        super().__init__()
        make = LayerMaker() if make is None else make
        places = -(-places // BLOCK) * BLOCK
        self.config, self.rows, self.places = config, rows, places
        self.embed_tokens = make.table("embed_tokens", config.vocabulary, config.width)
        self.layers = ModuleList([DecoderLayer(config, i, rows, places, make) for i in range(config.layers)])
        self.norm = make.norm("norm", config.width, config)
        if not config.tied:
            self.lm_head = make.linear("lm_head", config.width, config.vocabulary, bias=False)
        self.rotaries = [*dict.fromkeys(r for r in config.rotary if r is not None)]
        for i, rotary in enumerate(self.rotaries):
            for name, table in zip(("cos", "sin"), _tables(rotary, places), strict=True):
                self.register_buffer(f"{name}{i}", from_numpy(table), persistent=False)

    def _hidden(self, tokens: Tensor, positions: Positions) -> Tensor:
        count = tokens.shape[1]
        x = self.embed_tokens(tokens)
        if self.config.embedding_scale != 1.0:
            x = x * self.config.embedding_scale
        angles: dict[Rotary | None, tuple[Tensor, Tensor] | None] = {None: None}
        for i, rotary in enumerate(self.rotaries):
            cos, sin = (getattr(self, f"{name}{i}") for name in ("cos", "sin"))
            angles[rotary] = positions.angles(cos, count), positions.angles(sin, count)
        for layer in self.layers:
            x = layer(x, angles[layer.self_attn.rotary], positions)
        return self.norm(x)

    def _logits(self, hidden: Tensor) -> Tensor:
        logits = self.embed_tokens.project(hidden) if self.config.tied else self.lm_head(hidden)
        if self.config.logit_scale != 1.0:
            logits = logits * self.config.logit_scale
        cap = self.config.logit_cap
        return logits if cap is None else functions.tanh(logits / cap) * cap

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits [rows, count, vocabulary] for integers [rows, count]; caches are neither read nor written."""
        return self._logits(self._hidden(tokens, Positions(0, tokens.shape[1], is_cached=False)))

    def step(self, tokens: Tensor, position: int, row: int = 0) -> Tensor:
        """Return the logits [rows, vocabulary] after integers [rows, count], which stand from ``position`` on; earlier
        tokens are those of earlier calls, whose keys and values the caches hold, from their row ``row`` on."""
        return self._last(tokens, Positions(position, position + tokens.shape[1], row))

    def step_rows(self, tokens: Tensor, positions: Tensor, end: int) -> Tensor:
        """Return the logits [rows, vocabulary] after integers [rows, 1], one for each row of the caches, which stand at
        ``positions`` i64[rows], each below ``end``."""
        return self._last(tokens, Positions(positions, end))

    def _last(self, tokens: Tensor, positions: Positions) -> Tensor:
        return self._logits(self._hidden(tokens, positions)[:, -1:])[:, 0]

    def entries(self) -> dict[str, Entry]:
        """Return the entries ``prefill`` and ``step``, for ``gc.build_library`` and ``gc.export``.

        Both take ``tokens`` i32[rows, count], which stand from ``position`` on, and return ``logits`` f32[rows,
        vocabulary] of the next token and the ``likeliest`` one, i32[rows]. ``step`` takes one token; ``prefill`` up to
        64, with a position that leaves room for 64 in the caches.

        Raises ArgumentError for caches of 64 places.

        Example:
            >>> import graphc as gc
            >>> model = gc.llm.load("SmolLM2-135M-Instruct.Q4_1.gguf", places=512)  # doctest: +SKIP
            >>> library = gc.build_library(model.entries(), path="model.so")  # doctest: +SKIP
        """
        if self.places == BLOCK:
            raise ArgumentError(f"entries need caches of more than {BLOCK} places", remedy="load with places=128")
        count = Dim("count", 1, BLOCK)
        first, any_place = Dim("position", 0, self.places - BLOCK), Dim("position", 0, self.places - 1)
        tokens = zeros(self.rows, BLOCK, dtype=int32)
        read = {"tokens": (None, count), "position": first}
        return {
            "prefill": entry_of(self.next_token, tokens, 0, dims=read, train=False),
            "step": entry_of(self.next_token, tokens[:, :1], 0, dims={"position": any_place}, train=False),
        }

    def next_token(self, tokens: Tensor, position: int) -> dict[str, Tensor]:
        """Return the ``logits`` of ``step`` and the ``likeliest`` tokens i32[rows]."""
        logits = self.step(tokens, position)
        return {"logits": logits, "likeliest": logits.argmax(-1).to(int32)}


def _tables(rotary: Rotary, places: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cosines and sines f32[places, pairs]."""
    angles = np.arange(places, dtype=np.float32)[:, None] * rotary.frequencies_of(places)
    return np.cos(angles) * np.float32(rotary.factor), np.sin(angles) * np.float32(rotary.factor)
