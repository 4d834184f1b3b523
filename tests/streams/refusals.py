"""Nets that cannot be streamed, or only later: what the message says, and with which lookahead a stream works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from tests.streams.attention_nets import causal_mask
from tests.streams.cases import FRAMES, IMAGE, TIME, WAVE, Case, CausalConv, Lambda


@dataclass(frozen=True)
class Refusal:
    """A net that is refused: words of the message, and the lookahead that it names, if that suffices."""

    case: Case
    words: tuple[str, ...]
    reach: int | None = None


REFUSALS: dict[str, Callable[[], Refusal]] = {}


def refused(
    name: str,
    build: Callable[[], Any],
    *words: str,
    shapes: tuple[tuple[int, ...], ...] = WAVE,
    reach: int | None = None,
    training: bool = False,
    **options: Any,
) -> None:
    """Register a net, by a function that makes its module or function."""

    def make() -> Refusal:
        gc.manual_seed(5)
        model = build()
        if isinstance(model, nn.Module):
            model.train(training)
        return Refusal(Case(model, shapes, options), words, reach)

    REFUSALS[name] = make


def of(function: Callable[..., Any]) -> Callable[[], Any]:
    """Return a builder of a net that is a function."""
    return lambda: function


WHOLE, LATER = "needs the whole sequence", "looks ahead: an output needs"


# ---- windows that reach later samples


class Stack(nn.Module):
    """Modules with names."""

    def __init__(self, **modules: nn.Module):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)
        self.names = [*modules]

    def forward(self, x: Any) -> Any:
        for name in self.names:
            x = getattr(self, name)(x)
        return x


def ahead(name: str, build: Callable[[], Any], reach: int, *words: str, **options: Any) -> None:
    """Register a net that works with a lookahead."""
    refused(name, build, f"{LATER} {reach} samples after its own", *words, reach=reach, **options)


ahead("padded conv", lambda: nn.Conv1d(2, 2, 3, padding=1), 1, "conv")
ahead("dilated conv", lambda: Stack(tail=nn.Conv1d(2, 2, 5, padding=8, dilation=4)), 8, "conv in tail")
ahead(
    "two convs",
    lambda: Stack(first=nn.Conv1d(2, 2, 3, padding=1), act=nn.ReLU(), second=nn.Conv1d(2, 2, 5, padding=2)),
    3,
    "conv in first",
)
ahead(
    "conv behind a causal one",
    lambda: Stack(good=CausalConv(2, 2, 5), bad=nn.Conv1d(2, 2, 3, padding=1)),
    1,
    "conv in bad",
)
ahead("same conv of even size", lambda: nn.Conv1d(2, 2, 4, padding="same"), 2, "conv")
ahead("conv of images", lambda: Stack(image=nn.Conv2d(1, 2, 3, padding=1)), 1, "conv in image", shapes=IMAGE)
ahead("pool", lambda: Stack(pool=nn.MaxPool1d(3, 1, 1)), 1, "max_pool in pool")
ahead("mean of neighbours", lambda: Stack(pool=nn.AvgPool1d(5, 1, 2)), 2, "avg_pool in pool")
ahead("shift", of(lambda x: F.pad(x[..., 3:], (0, 3))), 3, "pad", "refusals.py")
ahead("lines", of(lambda x: F.interpolate(x, scale_factor=2, mode="linear")), 2, "gather", "refusals.py")
ahead("repeated ends", of(lambda x: F.avg_pool1d(F.pad(x, (1, 1), mode="replicate"), 3, 1)), 2, "gather")
ahead("reflected ends", of(lambda x: F.avg_pool1d(F.pad(x, (1, 1), mode="reflect"), 3, 1)), 3, "gather")
ahead(
    "centred spectrum",
    of(lambda x: gc.stft(x, 16, 8, window=gc.hann_window(16), return_complex=True).abs()),
    2,
    "gather",
    shapes=((1, TIME),),
)
ahead(
    "centred spectrum and its inverse",
    of(lambda x: _inverse(gc.stft(x, 16, 4, window=gc.hann_window(16), return_complex=True))),
    16,
    "gather",
    shapes=((1, TIME),),
)
ahead(
    "frames of a decoder",
    lambda: Stack(encoder=nn.Conv1d(2, 3, 6, stride=2), decoder=nn.ConvTranspose1d(3, 1, 6, stride=2)),
    4,
    "in decoder",
)
ahead(
    "unet",
    lambda: Lambda(
        lambda self, x: self.up(self.down(x).relu())[..., : x.shape[-1]] + x,
        down=nn.Conv1d(2, 3, 4, stride=2, padding=1),
        up=nn.ConvTranspose1d(3, 2, 4, stride=2, padding=1),
    ),
    3,
    "conv in down",
)


def _inverse(spectrum: Any) -> Any:
    return gc.istft(spectrum, 16, 4, window=gc.hann_window(16))


# ---- loops and sums from the end

refused(
    "gru in both directions",
    lambda: Stack(conv=CausalConv(2, 4, 2), turn=Lambda(lambda _, x: x.transpose(1, 2)), gru=_both(nn.GRU)),
    f"scan in gru.layer {WHOLE}",
    "from the last sample to the first",
)


def _both(kind: Any) -> nn.Module:
    return Lambda(
        lambda self, x: self.layer(x)[0],
        layer=kind(4, 3, batch_first=True, bidirectional=True),
    )


refused("lstm in both directions", lambda: _both(nn.LSTM), f"scan in layer {WHOLE}", shapes=FRAMES)
refused("flip", of(lambda x: x.flip(-1)), f"flip {WHOLE}", "refusals.py")
refused("reverse sum", of(lambda x: x.flip(-1).cumsum(-1).flip(-1)), f"flip {WHOLE}")
refused(
    "reverse loop",
    of(lambda x: gc.scan(lambda c, s: (c + s, c), gc.zeros(2, 4), x, reverse=True)[1]),
    f"scan {WHOLE}",
    shapes=((TIME, 2, 4),),
)
refused(
    "loop over features",
    of(lambda x: gc.scan(lambda c, s: (c + s.cumsum(0), c), x[0] * 0, x)[1]),
    "scan cannot be streamed: a loop over features that mixes samples",
    shapes=((3, TIME),),
)
refused(
    "last state of a net that looks ahead",
    lambda: Lambda(
        lambda self, x: self.gru(self.conv(x).transpose(1, 2))[1],
        conv=nn.Conv1d(2, 4, 3, padding=1),
        gru=nn.GRU(4, 3, batch_first=True),
    ),
    f"scan in gru {WHOLE}",
    "comes later",
)
refused(
    "first state from outside",
    lambda: Lambda(lambda self, x, h: self.gru(x, h)[0], gru=nn.GRU(4, 3, batch_first=True)),
    "scan in gru cannot be streamed: a first state that is an argument",
    shapes=((2, TIME, 4), (1, 2, 3)),
)
refused("running maximum", of(lambda x: x.cummax(-1)[0]), "depends on the length", "time <= 64")
refused("running product", of(lambda x: x.cumprod(-1)), "depends on the length", "time <= 64")

# ---- numbers of all samples

for _name, _function, _words in (
    ("softmax", lambda x: x.softmax(1), f"max {WHOLE}"),
    ("mean", lambda x: x.mean(1), f"sum {WHOLE}"),
    ("mean removed", lambda x: x - x.mean(1, keepdim=True), f"sum {WHOLE}"),
    ("maximum", lambda x: x.amax(1), f"max {WHOLE}"),
    ("argmax", lambda x: x.argmax(1), f"argmax {WHOLE}"),
    ("deviation", lambda x: x / x.std(1, keepdim=True), f"sum {WHOLE}"),
    ("unit length", lambda x: F.normalize(x, dim=1), f"sum {WHOLE}"),
    ("squeeze", lambda x: x * x.mean(1, keepdim=True).sigmoid(), f"sum {WHOLE}"),
    ("sort", lambda x: x.sort(1)[0], f"argsort {WHOLE}"),
    ("largest", lambda x: x.topk(3, 1)[0], f"argsort {WHOLE}"),
    ("spectrum", lambda x: gc.fft.rfft(x, dim=1).abs(), f"rdft {WHOLE}"),
    ("correlations", lambda x: x.transpose(1, 2) @ x, f"matmul {WHOLE}"),
    ("pairs as outputs", lambda x: x @ x.transpose(1, 2), "an output of pairs of samples"),
    ("sequences joined", lambda x: gc.cat([x, x], 1), f"concat {WHOLE}"),
    ("last sample for all", lambda x: x - x[:, -1:], "the last sample together with all samples"),
    ("first sample for all", lambda x: x - x[:, :1], "the samples 0 to 0 alone"),
    ("rolled", lambda x: gc.roll(x, 1, 1), "concat cannot be streamed"),
    ("around", lambda x: F.pad(x.transpose(1, 2), (3, 0), mode="circular"), f"gather {WHOLE}"),
    ("share of the length", lambda x: x * gc.arange(x.shape[1]).unsqueeze(1) / x.shape[1], WHOLE),
    ("position from the end", lambda x: x * (x.shape[1] - gc.arange(x.shape[1])).unsqueeze(1), f"size {WHOLE}"),
    ("first half", lambda x: x[:, : x.shape[1] // 2][:, -1], "a share of the sequence"),
    ("window of half", lambda x: F.avg_pool1d(x.transpose(1, 2), x.shape[1] // 2, 1), "its kernel depends"),
    ("delay of half", lambda x: F.pad(x, (0, 0, x.shape[1] // 2, 0))[:, : x.shape[1]], "its low depends"),
    ("batch after time", lambda x: x.reshape(2 * x.shape[1], 4), "time merged with other dimensions"),
    ("time and features", lambda x: x.transpose(1, 2).reshape(2, x.shape[1], 4), "reshape cannot be streamed"),
    ("reads by data", lambda x: x[0, (x[0, :, 0].abs() * 3).long()], f"gather {WHOLE}"),
    ("elements by data", lambda x: x.reshape(-1)[(x.abs() * 3).long()], f"gather {WHOLE}"),
    ("times by data", lambda x: x.gather(1, (x.abs() * 3).long()), f"gather {WHOLE}"),
    ("sequences by data", lambda x: x.gather(0, (x > 0).long()).roll(1, 1), "concat cannot be streamed"),
    ("places by data", lambda x: gc.zeros_like(x).scatter(1, (x.abs() * 3).long(), x), f"scatter {WHOLE}"),
    ("branch on the length", lambda x: x * 2 if x.shape[1] > 100 else x * 3, "time <= 100"),
    ("branch on evenness", lambda x: x * 2 if x.shape[1] % 3 == 1 else x * 3, "depends on the length"),
    (
        "sum of a repeated sample",
        lambda x: x.unsqueeze(2).expand(2, x.shape[1], x.shape[1], 4).sum(2),
        "pairs of samples",
    ),
    ("random numbers", lambda x: x + gc.randn_like(x), "draws random numbers"),
    ("end clamped", lambda x: x[:, gc.arange(x.shape[1]).clamp(max=20)], f"gather {WHOLE}"),
    ("rows by another length", lambda x: x[:, (gc.arange(x.shape[1]) + x.shape[1] // 2) % x.shape[1]], WHOLE),
):
    refused(_name, of(_function), _words, shapes=FRAMES)
refused("norm of all samples", lambda: Stack(norm=nn.InstanceNorm1d(2)), f"sum in norm {WHOLE}")
refused("norm of groups", lambda: Stack(norm=nn.GroupNorm(1, 2)), f"sum in norm {WHOLE}")
refused("batch norm in training", lambda: Stack(norm=nn.BatchNorm1d(2)), f"sum in norm {WHOLE}", training=True)
refused("dropout in training", lambda: Stack(drop=nn.Dropout(0.5)), "in drop", "random numbers", training=True)
refused("global pool", lambda: Stack(pool=nn.AdaptiveAvgPool1d(1)), f"sum in pool {WHOLE}")
refused("global maximum", lambda: Stack(pool=nn.AdaptiveMaxPool1d(4)), WHOLE, "depends on the length")
refused("time as channels", of(lambda x: F.conv1d(x, gc.ones(4, 64, 3))), "time == 64", shapes=((1, TIME, 8),))
refused("linear layer of time", lambda: Stack(layer=nn.Linear(64, 3)), "time == 64")
refused("branch before the end of a table", lambda: _table(lambda x: x.shape[1] < 100), "100 > time", shapes=FRAMES)
refused("last rows of a table", lambda: _table(lambda x: True, -1), "time <= 512", shapes=FRAMES)
refused(
    "reads by numbers of a table",
    of(lambda x: x + x[:, gc.tensor(np.arange(512))[: x.shape[1]] // 2]),
    "slice cannot be streamed: numbers from a table that ends",
    shapes=FRAMES,
)
refused(
    "mask from a table",
    lambda: Lambda(
        lambda self, x: (
            (x @ x.transpose(1, 2) + self.mask[: x.shape[1]] * self.mask[: x.shape[1], None])
            .masked_fill(~causal_mask(x.shape[1], 6), -1e9)
            .softmax(-1)
            @ x
        ),
        mask=nn.Buffer(gc.arange(512.0)),
    ),
    "more than the distance",
    shapes=FRAMES,
)
refused("means of cut windows", lambda: nn.AvgPool1d(3, 1, 1, count_include_pad=False), "avg_pool cannot be streamed")


def _table(condition: Callable[[Any], Any], side: int = 1) -> nn.Module:
    def forward(self: Any, x: Any) -> Any:
        rows = self.table[: x.shape[1]] if side > 0 else self.table[-x.shape[1] :]
        return x + rows if condition(x) else x

    return Lambda(forward, table=nn.Parameter(gc.randn(512, 4)))


# ---- attention


def attention(mask: Callable[[Any], Any], filler: float = -1e9) -> Callable[[], Any]:
    """Return an attention with a mask of the samples that each one sees."""
    return of(lambda x: (x @ x.transpose(1, 2)).masked_fill(~mask(x.shape[1]), filler).softmax(-1) @ x)


def _rows(length: Any) -> tuple[Any, Any]:
    return gc.arange(length).unsqueeze(1), gc.arange(length).unsqueeze(0)


def _see_ahead(length: Any) -> Any:
    rows, columns = _rows(length)
    return columns <= rows + 3


def _see_chunk(length: Any) -> Any:
    rows, columns = _rows(length)
    return columns // 4 <= rows // 4


def _see_earlier(length: Any) -> Any:
    rows, columns = _rows(length)
    return columns < rows


def _see_every_second(length: Any) -> Any:
    rows, columns = _rows(length)
    return (columns <= rows) & (columns % 2 == 0) | (columns == rows)


def _see_long_chunk(length: Any) -> Any:
    rows, columns = _rows(length)
    return (columns <= rows) & (columns // 700 == rows // 700)


def _one_over_distance(length: Any) -> Any:
    rows, columns = _rows(length)
    return gc.where(columns <= rows, 1 / (1.0 + rows - columns), 0.0)


def _weights(x: Any) -> Any:
    return (x @ x.transpose(1, 2)).masked_fill(~causal_mask(x.shape[1]), -1e9).softmax(-1)


refused("attention to three later samples", attention(_see_ahead), "where looks 3 samples ahead", shapes=FRAMES)
refused("attention within chunks", attention(_see_chunk), "where looks 3 samples ahead", shapes=FRAMES)
refused(
    "attention without the own sample", attention(_see_earlier), "hides all samples from some", shapes=FRAMES, memory=64
)
refused("attention to even samples", attention(_see_every_second), "more than the distance", shapes=FRAMES, memory=64)
refused("attention within long chunks", attention(_see_long_chunk), "more than the distance", shapes=FRAMES, memory=64)
refused(
    "values later than the scores",
    lambda: Lambda(
        lambda self, x: attention(causal_mask)()(x) + _weights(x) @ self.conv(x.transpose(1, 2)).transpose(1, 2),
        conv=nn.Conv1d(4, 4, 3, padding=1),
    ),
    "computed later than its rows",
    shapes=FRAMES,
    memory=64,
)
refused("attention to everything before", attention(causal_mask), "memory=N", "all earlier samples", shapes=FRAMES)
refused(
    "squares of scores",
    of(lambda x: (x @ x.transpose(1, 2)).square().tril() @ x),
    "all earlier samples",
    shapes=FRAMES,
)
refused(
    "weights that fall with the distance",
    of(lambda x: (x @ x.transpose(1, 2) * _one_over_distance(x.shape[1])) @ x),
    "all earlier samples",
    shapes=FRAMES,
)
refused("products of all pairs", of(lambda x: (x @ x.transpose(1, 2)) @ x), f"matmul {WHOLE}", shapes=FRAMES)
refused("hidden samples that count", attention(causal_mask, -3.0), WHOLE, shapes=FRAMES, memory=64)
refused(
    "attention without a mask",
    lambda: Lambda(lambda self, x: self.heads(x, x, x)[0], heads=nn.MultiheadAttention(4, 2, batch_first=True)),
    f"max in heads {WHOLE}",
    shapes=FRAMES,
)
refused(
    "transformer without a mask",
    lambda: Stack(encoder=nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)),
    f"in encoder.self_attn {WHOLE}",
    shapes=FRAMES,
)
refused(
    "attention of another input",
    of(lambda x, y: (x @ y.transpose(1, 2)).softmax(-1) @ y),
    WHOLE,
    shapes=((2, TIME, 4), (2, TIME, 4)),
)


class Counted(nn.Module):
    """Counts its calls, in a buffer that no output reads."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", gc.zeros(1))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        return x * 2


refused("counter of calls", Counted, "state_write cannot be streamed: it writes states")
