"""ONNX operators of signals: discrete Fourier transforms, windows, mel filters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float64, int64
from graphc.base.size import is_size
from graphc.interop.onnx.elements import FLOAT, element_of_code
from graphc.interop.onnx.ops.conversions import as_element
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.creation import arange, from_numpy, zeros
from graphc.tensors.tensor import Tensor

MOST_AT_ONCE = 512
"""Points of a transform that is one product of matrices; longer ones are made of shorter ones."""
Complex = tuple[Tensor, Tensor]
"""Real and imaginary parts."""


def _waves(rows: Any, columns: Any, count: Any, dtype: DType) -> Complex:
    """cos and -sin of ``2 pi i j / count`` for so many i and j."""
    if not any(map(is_size, (rows, columns, count))):
        angles = np.outer(np.arange(rows), np.arange(columns)) % count * (2 * np.pi / count)
        cosine, sine = np.cos(angles).astype(dtype.numpy), -np.sin(angles).astype(dtype.numpy)
        return from_numpy(cosine), from_numpy(sine)
    turns = arange(rows, dtype=int64).reshape(-1, 1) * arange(columns, dtype=int64) % count
    angles = turns.to(float64) * (2 * math.pi / count)
    return functions.cos(angles).to(dtype), -functions.sin(angles).to(dtype)


def _product(x: Complex, y: Complex) -> Complex:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _transformed(x: Complex, bins: Any) -> Complex:
    """The first bins of the transform of the last dimension."""
    count = x[0].shape[-1]
    inner = _factor(count)
    if inner == 1:
        cosine, sine = _waves(count, bins, count, x[0].dtype)
        real, imaginary = (free.matmul(part, both) for part, both in zip(x, (cosine, cosine), strict=True))
        return real - free.matmul(x[1], sine), imaginary + free.matmul(x[0], sine)
    outer = count // inner
    shape = (*x[0].shape[:-1], outer, inner)
    columns = [part.reshape(shape).transpose(-1, -2) for part in x]
    parts = _transformed((columns[0], columns[1]), outer)
    turned = [part.transpose(-1, -2) for part in _product(parts, _waves(inner, outer, count, x[0].dtype))]
    found = _transformed((turned[0], turned[1]), inner)
    joined = [part.transpose(-1, -2).reshape(*x[0].shape).narrow(-1, 0, bins) for part in found]
    return joined[0], joined[1]


def _factor(count: Any) -> int:
    """A divisor near the root of a number of points that are too many for one product (Cooley and Tukey, 1965)."""
    if is_size(count) or count <= MOST_AT_ONCE:
        return 1
    return next(d for d in range(math.isqrt(count), 0, -1) if count % d == 0)


def _fitted(x: Tensor, axis: int, length: Any) -> Tensor:
    """Cut, or with zeros behind."""
    have = x.shape[axis]
    if length is None or (not is_size(length) and not is_size(have) and length == have):
        return x
    if length <= have:
        return x.narrow(axis, 0, length)
    rest = zeros((*x.shape[:axis], length - have, *x.shape[axis + 1 :]), dtype=x.dtype)
    return free.cat([x, rest], axis)


def _dft(x: Tensor, length: Any, axis: int, inverse: int, onesided: int) -> Tensor:
    at = axis % x.ndim
    x = _fitted(x, at, length)
    count = x.shape[at]
    real = x[..., 0].movedim(at, -1)
    imaginary = x[..., 1].movedim(at, -1) if x.shape[-1] == 2 else real * 0.0
    if inverse and onesided:
        return _real_inverse(real, imaginary, count, length).movedim(-1, at).unsqueeze(-1)
    bins = count // 2 + 1 if onesided else count
    if inverse:
        second, first = _transformed((imaginary, real), bins)
        parts = (first / count, second / count)
    else:
        parts = _transformed((real, imaginary), bins)
    return free.stack([part.movedim(-1, at) for part in parts], -1)


def _real_inverse(real: Tensor, imaginary: Tensor, count: Any, length: Any) -> Tensor:
    """Of the first half of a transform whose other half is its mirror image."""
    full = length if length is not None else 2 * (count - 1)
    bins = full // 2 + 1
    parts = [_fitted(part, part.ndim - 1, bins) for part in (real, imaginary)]
    mirrored = [functions.flip(part.narrow(-1, 1, full - bins), (-1,)) for part in parts]
    whole = free.cat([parts[0], mirrored[0]], -1), free.cat([parts[1], -mirrored[1]], -1)
    return _transformed((whole[1], whole[0]), full)[1] / full


@op("DFT", host="dft_length")
def dft_of_attribute(
    x: Tensor, dft_length: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return _dft(x, _one(dft_length), axis, inverse, onesided)


@op("DFT", since=20, host="dft_length axis")
def dft(x: Tensor, dft_length: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0) -> Tensor:
    """Transforms along an axis of numbers whose real and imaginary parts are the last dimension."""
    return _dft(x, _one(dft_length), -2 if axis is None else _one(axis), inverse, onesided)


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) else value


@op("STFT", host="frame_step frame_length")
def stft(
    signal: Tensor, frame_step: Any, window: Tensor | None = None, frame_length: Any = None, *, onesided: int = 1
) -> Tensor:
    """Transforms of frames [batch, frames, bins, 2] of signals [batch, length, 1 or 2]."""
    length = _one(frame_length) if frame_length is not None else None
    if length is None:
        length = window.shape[0] if window is not None else signal.shape[1]
    parts = [signal[..., i].unfold(1, length, _one(frame_step)) for i in range(signal.shape[-1])]
    frames = [part if window is None else part * window for part in parts]
    return _dft(free.stack(frames, -1), None, 2, 0, onesided)


# ---- windows

_WINDOWS = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 1 - 25 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}
"""``a - b cos(x) + c cos(2 x)``."""


def _window(name: str) -> None:
    first, second, third = _WINDOWS[name]

    def rule(size: Any, *, output_datatype: int = 1, periodic: int = 1) -> Value:
        count = _one(size)
        angle = arange(count, dtype=float64) * (2 * math.pi / (count if periodic else count - 1))
        found = first - functions.cos(angle) * second + functions.cos(angle * 2.0) * third
        element = element_of_code(output_datatype)
        return Value(element, as_element(found, FLOAT, element))

    op(name, host="size")(rule)


for _name in _WINDOWS:
    _window(_name)


@op("MelWeightMatrix", host="num_mel_bins dft_length sample_rate lower_edge_hertz upper_edge_hertz")
def mel_weight_matrix(
    num_mel_bins: Any,
    dft_length: Any,
    sample_rate: Any,
    lower_edge_hertz: Any,
    upper_edge_hertz: Any,
    *,
    output_datatype: int = 1,
) -> Value:
    """Triangular filters [dft_length // 2 + 1, num_mel_bins], evenly spaced in mels."""
    bins, length, rate, low, high = map(
        _one, (num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz)
    )
    edges = [2595 * math.log10(1 + hertz / 700) for hertz in (low, high)]
    mels = edges[0] + np.arange(bins + 2) * ((edges[1] - edges[0]) / (bins + 2))
    places = ((length + 1) * (700 * (10.0 ** (mels / 2595) - 1)) // rate).astype(np.int64)
    found = np.zeros((length // 2 + 1, bins))
    for i, (start, center, end) in enumerate(zip(places, places[1:], places[2:], strict=False)):
        if center == start:
            found[center, i] = 1
        found[start:center, i] = (np.arange(start, center) - start) / max(center - start, 1)
        found[center:end, i] = np.maximum(found[center:end, i], (end - np.arange(center, end)) / max(end - center, 1))
    element = element_of_code(output_datatype)
    return Value(element, None, found.astype(element.numpy))
