"""Rules of ONNX's signal operators: discrete Fourier transforms, windows, mel filters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float64, int64
from graphc.base.sizes.size import is_size
from graphc.interop.onnx.elements import FLOAT, element_of_code
from graphc.interop.onnx.ops.conversions import as_element
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.creation import arange, from_numpy, zeros
from graphc.tensors.tensor import Tensor

MOST_AT_ONCE = 512
"""Points up to which a transform is one matrix product. Longer transforms are composed of shorter ones."""
Complex = tuple[Tensor, Tensor | None]
"""Real and imaginary parts. None for zeros."""
Pair = tuple[Tensor, Tensor]


def _waves(rows: Any, columns: Any, count: Any, dtype: DType) -> Pair:
    """Return cos and -sin of ``2 pi i j / count`` for i < ``rows`` and j < ``columns``."""
    if not any(map(is_size, (rows, columns, count))):
        angles = np.outer(np.arange(rows), np.arange(columns)) % count * (2 * np.pi / count)
        cosine, sine = np.cos(angles).astype(dtype.numpy), -np.sin(angles).astype(dtype.numpy)
        return from_numpy(cosine), from_numpy(sine)
    turns = arange(rows, dtype=int64).reshape(-1, 1) * arange(columns, dtype=int64) % count
    angles = turns.to(float64) * (2 * math.pi / count)
    return functions.cos(angles).to(dtype), -functions.sin(angles).to(dtype)


def _product(x: Pair, y: Pair) -> Pair:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _transformed(x: Complex, bins: Any) -> Pair:
    """Return the first ``bins`` bins of the transform of the last dimension."""
    count = x[0].shape[-1]
    inner = _factor(count)
    if inner == 1:
        return _multiplied(x, _waves(count, bins, count, x[0].dtype))
    outer = count // inner
    shape = (*x[0].shape[:-1], outer, inner)
    real, imaginary = [None if component is None else component.reshape(shape).transpose(-1, -2) for component in x]
    assert real is not None
    twiddled = _product(_transformed((real, imaginary), outer), _waves(inner, outer, count, real.dtype))
    transformed = _transformed((twiddled[0].transpose(-1, -2), twiddled[1].transpose(-1, -2)), inner)
    first, second = [component.transpose(-1, -2).reshape(*x[0].shape).narrow(-1, 0, bins) for component in transformed]
    return first, second


def _multiplied(x: Complex, waves: Pair) -> Pair:
    """Multiply rows by waves in one product."""
    bins = waves[0].shape[-1]
    real = free.matmul(x[0], free.cat(list(waves), -1))
    components = real.narrow(-1, 0, bins), real.narrow(-1, bins, bins)
    if x[1] is None:
        return components
    imaginary_product = free.matmul(x[1], free.cat([-waves[1], waves[0]], -1))
    return components[0] + imaginary_product.narrow(-1, 0, bins), components[1] + imaginary_product.narrow(
        -1, bins, bins
    )


def _factor(count: Any) -> int:
    """Return a divisor near the square root of the number of points, 1 if one product suffices (Cooley and Tukey,
    1965)."""
    if is_size(count) or count <= MOST_AT_ONCE:
        return 1
    return next(d for d in range(math.isqrt(count), 0, -1) if count % d == 0)


def _fitted(x: Tensor, length: Any) -> Tensor:
    """Cut the last dimension, or append zeros to it."""
    have = x.shape[-1]
    if length is None or (not is_size(length) and not is_size(have) and length == have):
        return x
    if length <= have:
        return x.narrow(-1, 0, length)
    return free.cat([x, zeros((*x.shape[:-1], length - have), dtype=x.dtype)], -1)


def _dft(x: Tensor, length: Any, axis: int, inverse: int, onesided: int) -> Tensor:
    at = axis % x.ndim
    components = [x[..., i].movedim(at, -1) for i in range(x.shape[-1])]
    if inverse and onesided:
        return _real_inverse(components, length).movedim(-1, at).unsqueeze(-1)
    real, imaginary = [*[_fitted(component, length) for component in components], None][:2]
    assert real is not None
    count = real.shape[-1]
    bins = count // 2 + 1 if onesided else count
    spectrum = _transformed((real, imaginary), bins) if not inverse else _inverse(real, imaginary)
    return free.stack([component.movedim(-1, at) for component in spectrum], -1)


def _inverse(real: Tensor, imaginary: Tensor | None) -> Pair:
    """Compute the inverse transform: a transform with real and imaginary parts swapped."""
    count = real.shape[-1]
    if imaginary is None:
        first, second = _transformed((real, None), count)
        return first / count, -second / count
    second, first = _transformed((imaginary, real), count)
    return first / count, second / count


def _real_inverse(components: Sequence[Tensor], length: Any) -> Tensor:
    """Invert a transform of which the first half is given; the other half is its mirror image."""
    full = length if length is not None else 2 * (components[0].shape[-1] - 1)
    bins = full // 2 + 1
    real, imaginary = [
        _fitted(component, bins)
        for component in (*components, *([components[0] * 0.0] if len(components) == 1 else []))
    ]
    mirrored = [functions.flip(component.narrow(-1, 1, full - bins), (-1,)) for component in (real, imaginary)]
    return _inverse(free.cat([real, mirrored[0]], -1), free.cat([imaginary, -mirrored[1]], -1))[0]


@op("DFT", host="dft_length")
def dft_of_attribute(
    x: Tensor, dft_length: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return _dft(x.to(float64), _one(dft_length), axis, inverse, onesided).to(x.dtype)


@op("DFT", since=20, host="dft_length axis")
def dft(x: Tensor, dft_length: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0) -> Tensor:
    """Transform an axis of complex numbers, whose real and imaginary parts are the last dimension. Computes in f64."""
    at = -2 if axis is None else _one(axis)
    return _dft(x.to(float64), _one(dft_length), at, inverse, onesided).to(x.dtype)


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) else value


@op("STFT", host="frame_step frame_length")
def stft(
    signal: Tensor, frame_step: Any, window: Tensor | None = None, frame_length: Any = None, *, onesided: int = 1
) -> Tensor:
    """Transform frames of signals [batch, length, 1 or 2] to [batch, frames, bins, 2]. A real signal may lack the last
    axis, as ``torch.onnx`` writes it."""
    signal = signal.unsqueeze(2) if signal.ndim == 2 else signal
    length = _one(frame_length) if frame_length is not None else None
    if length is None:
        length = window.shape[0] if window is not None else signal.shape[1]
    segments = [signal[..., i].unfold(1, length, _one(frame_step)) for i in range(signal.shape[-1])]
    frames = [segment if window is None else segment * window for segment in segments]
    return _dft(free.stack(frames, -1), None, 2, 0, onesided)


# ---- windows

_WINDOWS = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 1 - 25 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}
"""Coefficients of ``a - b cos(x) + c cos(2 x)``."""


def _window(name: str) -> None:
    first, second, third = _WINDOWS[name]

    def rule(size: Any, *, output_datatype: int = 1, periodic: int = 1) -> Value:
        count = _one(size)
        angle = arange(count, dtype=float64) * (2 * math.pi / (count if periodic else count - 1))
        values = first - functions.cos(angle) * second + functions.cos(angle * 2.0) * third
        element = element_of_code(output_datatype)
        return Value(element, as_element(values, FLOAT, element))

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
    """Return triangular filters [dft_length // 2 + 1, num_mel_bins], evenly spaced in mels."""
    bins, length, rate, low, high = map(
        _one, (num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz)
    )
    edges = [2595 * math.log10(1 + hertz / 700) for hertz in (low, high)]
    mels = edges[0] + np.arange(bins + 2) * ((edges[1] - edges[0]) / (bins + 2))
    bin_edges = ((length + 1) * (700 * (10.0 ** (mels / 2595) - 1)) // rate).astype(np.int64)
    filters = np.zeros((length // 2 + 1, bins))
    for i, (start, center, end) in enumerate(zip(bin_edges, bin_edges[1:], bin_edges[2:], strict=False)):
        filters[start:center, i] = np.arange(center - start) / max(center - start, 1)
        filters[center : max(end, center + 1), i] = np.arange(max(end - center, 1), 0, -1) / max(end - center, 1)
    element = element_of_code(output_datatype)
    return Value(element, None, filters.astype(element.numpy))
