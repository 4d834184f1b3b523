"""Spectra of moving windows against PyTorch's, with gradients, and back to signals."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from tests.tensors.against_torch import agree, numbers

SIGNALS = numbers(2, 64)
WINDOW = np.hanning(17)[:-1]


def spectra(window=None, **options):
    def function(library, x):
        options.setdefault("n_fft", 16)
        given = None if window is None else library.tensor(window)
        return library.stft(x, window=given, return_complex=True, **options)

    return function


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:A window was not provided")
def test_spectra_are_those_of_torch():
    agree(
        {
            "plain": spectra(),
            "window": spectra(WINDOW, hop_length=5, normalized=True),
            "short window": spectra(WINDOW[:12], win_length=12, pad_mode="constant"),
            "ends": spectra(n_fft=15, hop_length=3, pad_mode="replicate"),
            "inside": spectra(WINDOW, center=False),
            "both sides": spectra(onesided=False, pad_mode="circular"),
        },
        SIGNALS.real.copy(),
    )
    agree({"complex": spectra(WINDOW)}, SIGNALS)


@pytest.mark.torch
def test_signals_are_those_of_torch():
    spectrum = numbers(2, 9, 17, seed=4)

    def signals(**options):
        return lambda library, x: library.istft(x, 16, window=library.tensor(WINDOW), **options)

    agree({"plain": signals(), "longer": signals(length=70), "shorter": signals(length=50, normalized=True)}, spectrum)


def test_a_signal_comes_back():
    x = graphc.tensor(SIGNALS.real.copy())
    window = graphc.hann_window(16, dtype=graphc.float64)
    there = graphc.compile(lambda x: graphc.stft(x, 16, window=window, return_complex=True))
    back = graphc.compile(lambda s: graphc.istft(s, 16, window=window, length=64))
    np.testing.assert_allclose(back(there(x)).numpy(), x.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: graphc.stft(x, 16), "return_complex is missing"),
        (
            lambda x: graphc.stft(x, 16, win_length=20, return_complex=True),
            r"win_length is 20\n  try    use 1 to n_fft = 16",
        ),
        (
            lambda x: graphc.stft(x, 16, window=graphc.ones(3), return_complex=True),
            r"the window has shape \[3\], not \[16\]",
        ),
        (lambda x: graphc.stft(x[:, :6], 16, return_complex=True), "cannot reflect"),
        (lambda x: graphc.istft(x, 16), "istft takes complex"),
        (
            lambda x: graphc.istft(
                graphc.stft(x, 16, 16, window=graphc.hann_window(16), return_complex=True),
                16,
                16,
                window=graphc.hann_window(16),
            ),
            "a position without weight",
        ),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(graphc.errors.GraphcError, match=message):
        call(graphc.tensor(SIGNALS.real.astype(np.float32)))
