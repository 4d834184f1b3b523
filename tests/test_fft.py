"""The import path of Fourier transforms."""

from __future__ import annotations

import numpy as np

import graphc
from graphc.fft import __all__ as names
from graphc.tensors.spectra import fourier


def test_it_hands_on_what_lies_elsewhere():
    assert all(getattr(graphc.fft, name) is getattr(fourier, name) for name in names)
    np.testing.assert_allclose(graphc.fft.fft(graphc.tensor([1.0, 0.0])).numpy(), [1, 1])
