"""Random compositions of windows, strides, paddings and recurrences: a stream of each against the whole sequence.

    python -m tools.stream_compositions --count 5000 [--seed 0] [--json]

Each net is a stack of 2 to 7 layers along time, with residual connections. Its stream runs with the smallest step, or a
small multiple of it, and must give the numbers of the whole sequence at every sample. Nets whose layers do not fit
the example are skipped, and so are those with ticks of more than 96 samples. Exit code 1 if one differs.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import graphc
from graphc import nn
from graphc.nn import functional as F
from graphc.streams.stream import stream
from tools.progress import ProgressBar

Layer = Callable[[Any], Any]
_CHANNELS = 2
_LENGTH = 192
_LARGEST_TICK = 96
_TOLERANCE = 2e-5
"""Largest accepted difference, of the largest number in the sequence."""


def _conv(rng: random.Random) -> Layer:
    return _padded_conv(rng, rng.choice((1, 1, 1, 2, 3)))[0]


def _padded_conv(rng: random.Random, stride: int) -> tuple[Layer, int]:
    """Return a convolution of a padded sequence, and how many more samples it returns than it takes with stride 1."""
    kernel, dilation = rng.randint(1, 5), rng.choice((1, 1, 2, 3))
    reach = (kernel - 1) * dilation + 1
    layer = nn.Conv1d(_CHANNELS, _CHANNELS, kernel, stride=stride, dilation=dilation)
    low, high = rng.choice((0, reach - 1, rng.randint(0, 6))), rng.choice((0, 0, rng.randint(0, 3)))
    value = rng.choice((0.0, 0.0, 1.5))
    return lambda x: layer(F.pad(x, (low, high), value=value)), low + high + 1 - reach


def _own_padding(rng: random.Random) -> Layer:
    kernel = rng.randint(1, 4)
    return nn.Conv1d(_CHANNELS, _CHANNELS, kernel, padding=rng.randint(0, kernel))


def _transposed(rng: random.Random) -> Layer:
    kernel, stride = rng.randint(1, 5), rng.randint(1, 3)
    layer = nn.ConvTranspose1d(_CHANNELS, _CHANNELS, kernel, stride=stride, dilation=rng.choice((1, 1, 2)))
    first, last = rng.randint(0, 2), rng.randint(0, 3)
    return _cropped(layer, first, last)


def _pool(rng: random.Random) -> Layer:
    kernel = rng.randint(1, 4)
    kind = nn.AvgPool1d if rng.random() < 0.5 else nn.MaxPool1d
    return kind(kernel, stride=rng.randint(1, 3), padding=rng.randint(0, kernel // 2))


def _slice(rng: random.Random) -> Layer:
    first, last, step = rng.randint(0, 5), rng.randint(0, 4), rng.choice((1, 1, 2, 3))
    return lambda x: x[..., first : x.shape[-1] - last : step]


def _upsampled(rng: random.Random) -> Layer:
    factor = rng.randint(2, 3)
    return lambda x: F.interpolate(x, scale_factor=factor, mode="nearest")


def _recurrent(rng: random.Random) -> Layer:
    layer = (nn.GRU, nn.LSTM, nn.RNN)[rng.randint(0, 2)](_CHANNELS, _CHANNELS, batch_first=True)
    return lambda x: layer(x.transpose(1, 2))[0].transpose(1, 2)


def _running_mean(rng: random.Random) -> Layer:
    return lambda x: x.cumsum(-1) / (graphc.arange(x.shape[-1]) + 1.0)


def _spectrum(rng: random.Random) -> Layer:
    """Return frames that overlap, their spectra with a phase each, and the sum of their inverses."""
    count = rng.choice((4, 6, 8))
    options: dict[str, Any] = {"hop_length": rng.randint(1, count), "center": rng.random() < 0.5}
    options["window"] = graphc.hamming_window(count)
    mode = rng.choice(("reflect", "constant", "replicate"))

    def forward(x: Any) -> Any:
        spectra = graphc.stft(x.reshape(_CHANNELS, x.shape[-1]), count, pad_mode=mode, return_complex=True, **options)
        y = graphc.istft(spectra * (0.8 + 0.6j), count, **options)
        return y.reshape(1, _CHANNELS, y.shape[-1])

    return forward


def _sorted(rng: random.Random) -> Layer:
    kept = rng.random() < 0.5
    return lambda x: x.sort(1)[0] if kept else graphc.zeros_like(x).scatter(1, x.topk(1, 1)[1], 1.0) * x


def _extended(rng: random.Random) -> Layer:
    pads, mode = (rng.randint(0, 4), rng.randint(0, 2)), rng.choice(("reflect", "replicate"))
    return lambda x: F.pad(x, pads, mode=mode)


def _attention(rng: random.Random) -> Layer:
    ratio = rng.choice((1.0, 0.98))

    def forward(x: Any) -> Any:
        y, time = x.transpose(1, 2), graphc.arange(x.shape[-1])
        distance = (time.unsqueeze(1) - time.unsqueeze(0)).to(graphc.float32)
        weights = y @ x * graphc.where(distance >= 0, ratio ** distance.clamp(min=0), 0.0)
        return (weights @ y).transpose(1, 2) / 16

    return forward


def _cropped(layer: Layer, first: int, last: int) -> Layer:
    """Return a layer without some of its first and last results."""

    def forward(x: Any) -> Any:
        y = layer(x)
        return y[..., first : y.shape[-1] - last]

    return forward


def _residual(rng: random.Random) -> Layer:
    conv, more = _padded_conv(rng, 1)
    first = rng.choice((0, abs(more)))
    longer, shorter = (conv, _same) if more > 0 else (_same, conv)
    cropped = _cropped(longer, first, abs(more) - first)
    return lambda x: shorter(x) + cropped(x)


def _same(x: Any) -> Any:
    return x


_LAYERS = (
    _conv,
    _conv,
    _conv,
    _own_padding,
    _transposed,
    _pool,
    _slice,
    _upsampled,
    _recurrent,
    _running_mean,
    _residual,
    _spectrum,
    _sorted,
    _extended,
    _attention,
)


class Stack(nn.Module):
    """Layers along time, with a nonlinearity after each."""

    def __init__(self, rng: random.Random):
        super().__init__()
        self.layers = [rng.choice(_LAYERS)(rng) for _ in range(rng.randint(2, 7))]

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x).tanh()
        return x


def compared(seed: int) -> tuple[str, float]:
    """Return ``equal``, ``differs``, ``refused`` or ``skipped``, and the largest difference, for the net of a seed."""
    rng = random.Random(seed)
    graphc.manual_seed(seed)
    model = Stack(rng).eval()
    steps, samples = rng.choice((1, 1, 2, 3)), np.random.default_rng(seed)
    x = samples.standard_normal((1, _CHANNELS, 3 * _LENGTH), np.float32)
    example = graphc.from_numpy(x[..., :_LENGTH])
    try:
        found = stream(model, example, dim=2, lookahead=1 << 20)
    except (graphc.errors.ShapeError, graphc.errors.AttributeValueError):
        return "skipped", 0.0
    except graphc.errors.StreamError:
        return "refused", 0.0
    if steps > 1:
        found = stream(model, example, dim=2, lookahead=1 << 20, step=found.tick * steps)
    if found.tick > _LARGEST_TICK:
        return "skipped", 0.0
    ticks = _LENGTH // found.tick
    x = x[..., : 2 * ticks * found.tick]
    (signal,) = found.outputs
    # A sequence that goes on shows what comes after the end of the shorter one; a causal net does not need it.
    longer, shorter = (_whole(model, part) for part in (x, x[..., : ticks * found.tick]))
    parts = [found.module(graphc.from_numpy(np.ascontiguousarray(p))) for p in np.split(x, 2 * ticks, -1)[:ticks]]
    actual = np.concatenate([p.detach().numpy() for p in parts], -1)
    before, actual = actual[..., : signal.delay], actual[..., signal.delay :]
    errors = [_error(actual, longer), *([_error(actual, shorter)] if signal.ahead == 0 else [])]
    largest = max(errors)
    same = largest <= _TOLERANCE * max(1.0, float(np.abs(longer).max())) and not before.any()
    return ("equal" if same else "differs"), largest


def _whole(model: nn.Module, x: np.ndarray) -> np.ndarray:
    return model(graphc.from_numpy(np.ascontiguousarray(x))).detach().numpy()


def _error(actual: np.ndarray, expected: np.ndarray) -> float:
    count = min(actual.shape[-1], expected.shape[-1])
    return float(np.abs(actual[..., :count] - expected[..., :count]).max(initial=0.0))


def results(count: int, seed: int) -> Iterator[tuple[int, str, float]]:
    """Yield the seed and the result of each net."""
    for number in range(seed, seed + count):
        yield (number, *compared(number))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    totals, differing = {"equal": 0, "differs": 0, "refused": 0, "skipped": 0}, []
    bar = ProgressBar(options.count, "nets")
    for number, result, error in results(options.count, options.seed):
        bar.step()
        totals[result] += 1
        if result == "differs":
            differing.append({"seed": number, "error": error})
    if options.json:
        print(json.dumps({**totals, "differing": differing}))
    else:
        print(", ".join(f"{count} {name}" for name, count in totals.items()))
        for entry in differing:
            print(f"seed {entry['seed']}: {entry['error']:.3g}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
