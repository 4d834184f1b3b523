"""Transforms, windows and filters of signals, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.interop.onnx.module import from_onnx
from graphc.interop.onnx.ops import signal
from tests.interop.onnx.single import check, model

pytest.importorskip("onnx")

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_transforms_along_an_axis(axis: int, inverse: int, parts: int):
    x = numbers(2, 6, 10, parts)
    check("DFT", x, None, np.array(axis, np.int64), known=(2,), inverse=inverse, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [6, 16])
def test_signals_are_cut_or_filled_with_zeros(length: int):
    x = numbers(2, 10, 1)
    check("DFT", x, np.array(length, np.int64), np.array(1, np.int64), known=(1, 2), atol=1e-5, onesided=1)


@pytest.mark.parametrize("count", [1024, 1030, 521])
def test_long_transforms_are_made_of_shorter_ones(count: int):
    x = numbers(2, count, 2)
    module = check("DFT", x, None, np.array(1, np.int64), known=(2,), rtol=1e-3, atol=1e-4)
    expected = np.fft.fft(x[..., 0] + 1j * x[..., 1], axis=1)
    result = module(x).numpy()
    np.testing.assert_allclose(result[..., 0] + 1j * result[..., 1], expected, atol=1e-3)
    assert count > signal.MOST_AT_ONCE


def test_half_of_a_transform_of_real_numbers_is_turned_back():
    x = numbers(2, 10)
    half = np.fft.rfft(x, axis=1)
    parts = np.stack([half.real, half.imag], -1).astype(np.float32)
    proto = model(
        "DFT", parts, np.array(10, np.int64), np.array(1, np.int64), known=(1, 2), version=20, inverse=1, onesided=1
    )
    np.testing.assert_allclose(from_onnx(proto)(parts).numpy()[..., 0], x, atol=1e-5)


@pytest.mark.parametrize("onesided", [0, 1])
def test_frames_of_signals_are_transformed(onesided: int):
    x, step = numbers(2, 64, 1), np.array(8, np.int64)
    window = np.hanning(16).astype(np.float32)
    check("STFT", x, step, window, known=(1, 2), onesided=onesided, rtol=1e-3, atol=1e-4)


def test_frames_of_real_signals_without_a_last_axis():
    x, step, size = numbers(2, 64), np.array(8, np.int64), np.array(16, np.int64)
    rows = np.lib.stride_tricks.sliding_window_view(x, 16, 1)[:, ::8]
    result = from_onnx(model("STFT", x, step, None, size, known=(1, 3)))(x).numpy()
    parts = np.fft.rfft(rows)
    np.testing.assert_allclose(result, np.stack([parts.real, parts.imag], -1), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("name", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows(name: str, periodic: int):
    size = np.array(10, np.int64)
    (result,) = signal_of(name, size, periodic=periodic)
    angle = np.arange(10) * 2 * np.pi / (10 if periodic else 9)
    a, b, c = {
        "HannWindow": (0.5, 0.5, 0),
        "HammingWindow": (25 / 46, 21 / 46, 0),
        "BlackmanWindow": (0.42, 0.5, 0.08),
    }[name]
    np.testing.assert_allclose(result, a - b * np.cos(angle) + c * np.cos(2 * angle), atol=1e-6)


def signal_of(name: str, *known: np.ndarray, **attributes: object) -> list[np.ndarray]:
    proto = model(name, *known, known=range(len(known)), **attributes)
    return [from_onnx(proto)().numpy()]


def test_filters_in_mels():
    given = [np.array(v) for v in (8, 16, 8192)] + [np.array(v, np.float32) for v in (0.0, 4096.0)]
    check("MelWeightMatrix", *given, known=range(5))


def test_transforms_of_any_length():
    x = numbers(6, 4, 1)
    module = check("DFT", x, None, np.array(0, np.int64), known=(2,), open_rows=True, atol=1e-5)
    assert module(np.concatenate([x, x])).shape == (12, 4, 2)
