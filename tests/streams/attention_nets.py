"""Nets of attention and positions that can be streamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from tests.streams.cases import FRAMES, TIME, Case, Lambda, net


def causal_mask(length: Any, back: int | None = None) -> Any:
    """Return a matrix of booleans: which samples each row sees."""
    rows, columns = gc.arange(length).unsqueeze(1), gc.arange(length).unsqueeze(0)
    seen = columns <= rows
    return seen if back is None else seen & (columns > rows - back)


def _attention(back: int | None, weigh: Callable[[Any, Any], Any]) -> Lambda:
    def forward(self: Any, x: Any) -> Any:
        q, k, v = self.inner(x).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) / 2.0
        return self.out(weigh(scores, causal_mask(x.shape[1], back)) @ v)

    return Lambda(forward, inner=nn.Linear(4, 12), out=nn.Linear(4, 4))


@net
def attention() -> Case:
    model = _attention(None, lambda scores, seen: scores.masked_fill(~seen, -float("inf")).softmax(-1))
    return Case(model, FRAMES, {"memory": 160})


@net
def attention_in_a_window() -> Case:
    model = _attention(6, lambda scores, seen: gc.where(seen, scores, -1e9).softmax(-1))
    return Case(model, FRAMES)


@net
def attention_with_added_mask() -> Case:
    def weigh(scores: Any, seen: Any) -> Any:
        return (scores + gc.where(seen, 0.0, -1e9)).softmax(-1)

    return Case(_attention(5, weigh), FRAMES)


@net
def attention_with_slopes() -> Case:
    """Scores that fall with the distance."""

    def weigh(scores: Any, seen: Any) -> Any:
        positions = gc.arange(scores.shape[-1])
        distance = (positions.unsqueeze(1) - positions.unsqueeze(0)).to(gc.float32)
        return (scores - 0.3 * distance).masked_fill(~seen, -float("inf")).softmax(-1)

    return Case(_attention(7, weigh), FRAMES)


@net
def attention_without_softmax() -> Case:
    return Case(_attention(6, lambda scores, seen: gc.where(seen, scores, 0.0)), FRAMES)


@net
def transformer() -> Case:
    def forward(self: Any, x: Any) -> Any:
        mask = gc.where(causal_mask(x.shape[1]), 0.0, -float("inf"))
        return self.layer(x, src_mask=mask)

    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=True)
    return Case(Lambda(forward, layer=layer), FRAMES, {"memory": 160})


@net
def heads_of_a_window() -> Case:
    def forward(self: Any, x: Any) -> Any:
        batch, time, _ = x.shape
        q, k, v = (p.reshape(batch, time, 2, 2).transpose(1, 2) for p in self.inner(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(time, 9))
        return x + self.out(y.transpose(1, 2).reshape(batch, time, 4))

    return Case(Lambda(forward, inner=nn.Linear(4, 12), out=nn.Linear(4, 4)), FRAMES)


@net
def causal_flag() -> Case:
    def forward(self: Any, x: Any) -> Any:
        q, k, v = self.inner(x).unsqueeze(1).chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0]

    return Case(Lambda(forward, inner=nn.Linear(4, 12)), FRAMES, {"memory": 160})


@net
def attention_of_subsampled_frames() -> Case:
    def forward(self: Any, x: Any) -> Any:
        return self.attention(self.conv(x.transpose(1, 2)).transpose(1, 2))

    window = _attention(4, lambda scores, seen: scores.masked_fill(~seen, -1e9).softmax(-1))
    return Case(Lambda(forward, conv=nn.Conv1d(4, 4, 3, stride=2), attention=window), FRAMES)


@net
def linear_attention() -> Case:
    def forward(self: Any, x: Any) -> Any:
        q, k, v = self.inner(x).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        memory = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(1)
        total = (q * k.cumsum(1)).sum(-1, keepdim=True)
        return (q.unsqueeze(-2) @ memory).squeeze(-2) / (total + 0.1)

    return Case(Lambda(forward, inner=nn.Linear(4, 12)), FRAMES)


@net
def linear_attention_by_products() -> Case:
    """Products of all pairs of samples, of which a state sums the earlier ones."""

    return Case(_attention(None, lambda scores, seen: scores * 0.3 * seen), FRAMES)


@net
def normalized_linear_attention() -> Case:
    """Late samples, weights divided by their sum."""

    def forward(self: Any, x: Any) -> Any:
        q, k, v = self.inner(self.conv(x.transpose(1, 2)).transpose(1, 2)).chunk(3, -1)
        q, k = F.elu(q) + 1, (F.elu(k) + 1).transpose(1, 2).contiguous()
        weights = (q @ k).tril()
        return (weights @ v) / (weights.sum(-1, keepdim=True) + 0.1)

    return Case(Lambda(forward, conv=nn.Conv1d(4, 4, 3), inner=nn.Linear(4, 12)), FRAMES)


@net
def retention() -> Case:
    """Weights that decay with the distance, in each head by another factor."""

    def forward(self: Any, x: Any) -> Any:
        batch, time, _ = x.shape
        q, k, v = (p.reshape(batch, time, 2, 2).transpose(1, 2) for p in self.inner(x).chunk(3, -1))
        distance = (gc.arange(time).unsqueeze(1) - gc.arange(time).unsqueeze(0)).to(gc.float32)
        decay = gc.where(distance >= 0, self.ratio.reshape(2, 1, 1) ** distance.clamp(min=0), 0.0)
        y = (q @ k.transpose(-1, -2) * decay / 1.5) @ v
        return self.out(y.transpose(1, 2).reshape(batch, time, 4))

    modules = {"inner": nn.Linear(4, 12), "out": nn.Linear(4, 4), "ratio": nn.Buffer(gc.tensor([0.97, 0.995]))}
    return Case(Lambda(forward, **modules), FRAMES)


@net
def learned_positions() -> Case:
    model = Lambda(lambda self, x: x + self.table(gc.arange(x.shape[1])), table=nn.Embedding(512, 4))
    return Case(model, FRAMES)


@net
def sinusoidal_positions() -> Case:
    def forward(self: Any, x: Any) -> Any:
        angles = gc.arange(x.shape[1]).unsqueeze(1) * gc.tensor([1.0, 0.1])
        waves = gc.cat([angles.sin(), angles.cos()], -1)
        return self.conv((x + waves).transpose(1, 2))

    return Case(Lambda(forward, conv=nn.Conv1d(4, 3, 3)), FRAMES)


@net
def rotary_window() -> Case:
    def forward(self: Any, x: Any) -> Any:
        angles = gc.arange(x.shape[1]).unsqueeze(1) * gc.tensor([0.7, 0.05])
        q, k, v = self.inner(x).chunk(3, -1)

        def turned(y: Any) -> Any:
            a, b = y.chunk(2, -1)
            return gc.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)

        scores = turned(q) @ turned(k).transpose(-1, -2)
        return scores.masked_fill(~causal_mask(x.shape[1], 8), -1e9).softmax(-1) @ v

    return Case(Lambda(forward, inner=nn.Linear(4, 12)), FRAMES)


@net
def multihead_attention() -> Case:
    def forward(self: Any, x: Any) -> Any:
        hidden = gc.ones(x.shape[1], x.shape[1], dtype=gc.bool).triu(1)
        return self.attention(x, x, x, attn_mask=hidden, need_weights=False)[0]

    return Case(Lambda(forward, attention=nn.MultiheadAttention(4, 2, batch_first=True)), FRAMES, {"memory": 160})


@net
def transformer_time_first() -> Case:
    def forward(self: Any, x: Any) -> Any:
        return self.encoder(x, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[0]), is_causal=True)

    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)
    return Case(Lambda(forward, encoder=encoder), ((TIME, 2, 4),), {"memory": 160})


@net
def attention_by_windows() -> Case:
    def forward(x: Any) -> Any:
        windows = F.pad(x, (0, 0, 3, 0)).unfold(1, 4, 1)
        weights = (x.unsqueeze(-2) @ windows).softmax(-1)
        return (weights @ windows.transpose(-1, -2)).squeeze(-2)

    return Case(forward, FRAMES)


def _layers(*windows: int | None) -> Callable[[Any], Any]:
    def forward(x: Any) -> Any:
        for back in windows:
            scores = (x @ x.transpose(1, 2)).masked_fill(~causal_mask(x.shape[1], back), -1e9)
            x = x + scores.softmax(-1) @ x
        return x

    return forward


@net
def two_windows() -> Case:
    return Case(_layers(4, 9), FRAMES)


@net
def window_before_all_samples() -> Case:
    return Case(_layers(4, None), FRAMES, {"memory": 160})


@net
def relative_positions() -> Case:
    """A learned bias for each distance and head."""

    def forward(self: Any, x: Any) -> Any:
        positions = gc.arange(x.shape[1])
        distance = (positions.unsqueeze(1) - positions.unsqueeze(0)).clamp(0, 7)
        heads = x.reshape(2, x.shape[1], 2, 2).transpose(1, 2)
        scores = heads @ heads.transpose(-1, -2) + self.table(distance).permute(2, 0, 1)
        weights = scores.masked_fill(~causal_mask(x.shape[1], 6), -1e9).softmax(-1)
        return (weights @ heads).transpose(1, 2).reshape(2, x.shape[1], 4)

    return Case(Lambda(forward, table=nn.Embedding(8, 2)), FRAMES)


@net
def values_that_are_no_numbers_before_the_start() -> Case:
    def forward(x: Any) -> Any:
        y = (x[:, 3:] * 0 + x[:, :-3]).abs()
        y = y / y.sum(-1, keepdim=True)
        seen = gc.where(causal_mask(y.shape[1], 5), 0.0, -float("inf"))
        return (y @ y.transpose(1, 2) + seen).softmax(-1) @ y

    return Case(forward, FRAMES)


@net
def clamped_positions() -> Case:
    def forward(self: Any, x: Any) -> Any:
        positions = gc.arange(x.shape[1])
        return x + self.table(positions.clamp(max=9)) + self.table(positions % 7) * (positions < 10).unsqueeze(1)

    return Case(Lambda(forward, table=nn.Embedding(10, 4)), FRAMES)


# ---- tables of positions


@net
def rows_of_a_table() -> Case:
    """Rows of two tables, from the second one on, beside samples that come later."""

    def forward(self: Any, x: Any) -> Any:
        y = self.conv(x.transpose(1, 2)).transpose(1, 2)
        return (y + self.rows[1 : x.shape[1] - 2]) * self.columns[:, : y.shape[1]].transpose(0, 1)

    modules = {"rows": nn.Parameter(gc.randn(600, 4)), "columns": nn.Buffer(gc.randn(4, 512).abs())}
    return Case(Lambda(forward, conv=nn.Conv1d(4, 4, 4), **modules), FRAMES)


@net
def transformer_with_tables() -> Case:
    """Positions and the mask are cut from tables, as in GPT-2."""

    def forward(self: Any, x: Any) -> Any:
        time = x.shape[1]
        x = x + self.positions[:, :time]
        q, k, v = self.inner(x).chunk(3, -1)
        scores = (q @ k.transpose(1, 2)).masked_fill(self.mask[:, :time, :time] == 0, -float("inf"))
        return x + self.out(scores.softmax(-1) @ v)

    tables = {"positions": nn.Parameter(gc.randn(1, 320, 4)), "mask": nn.Buffer(gc.ones(1, 320, 320).tril())}
    return Case(Lambda(forward, inner=nn.Linear(4, 12), out=nn.Linear(4, 4), **tables), FRAMES, {"memory": 320})
