"""The extension for Fourier transforms, by numpy's."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.array_api as xp
from graphc.array_api import fft

X = np.random.default_rng(0).standard_normal((3, 4, 2)).view(complex)[..., 0]


@pytest.mark.parametrize("name", ["fft", "ifft", "irfft", "hfft", "fftn", "ifftn", "irfftn", "fftshift", "ifftshift"])
def test_transforms_are_those_of_numpy(name):
    found = getattr(xp.fft, name)(xp.asarray(gc.tensor(X)))
    assert isinstance(found, xp.Array)
    np.testing.assert_allclose(np.asarray(found), getattr(np.fft, name)(X), atol=1e-12)


@pytest.mark.parametrize("name", ["rfft", "ihfft", "rfftn"])
def test_transforms_of_real_arrays_are_those_of_numpy(name):
    found = getattr(xp.fft, name)(xp.asarray(gc.tensor(X.real.copy())), norm="ortho")
    np.testing.assert_allclose(np.asarray(found), getattr(np.fft, name)(X.real, norm="ortho"), atol=1e-12)


def test_arguments_are_those_of_the_standard():
    x = xp.asarray(gc.tensor(X))
    np.testing.assert_allclose(np.asarray(fft.fft(x, n=5, axis=0)), np.fft.fft(X, 5, 0), atol=1e-12)
    np.testing.assert_allclose(np.asarray(fft.fftn(x, s=(2,), axes=(1,))), np.fft.fft(X, 2, 1), atol=1e-12)
    assert fft.fftfreq(4, d=0.5, dtype=xp.float64).tolist() == [0, 0.5, -1, -0.5]
    assert fft.rfftfreq(4).tolist() == [0, 0.25, 0.5]


def test_parts_and_products_of_complex_arrays():
    x = xp.asarray(gc.tensor(X))
    np.testing.assert_allclose(np.asarray(xp.vecdot(x, x)), np.vecdot(X, X))
    assert xp.real(x).dtype is xp.float64 and xp.conj(x).dtype is xp.complex128 and xp.finfo(xp.complex64).bits == 32
    assert xp.imag(xp.asarray(1.5)).item() == 0 and xp.result_type(xp.float32, 1j) is xp.complex64
