"""Transforms as ops: made of matrices, of shorter ones, of a convolution; each the gradient of another one."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.ops.contraction.fourier import LARGEST_MATRIX, LARGEST_PRIME, dft, irdft, rdft
from tests.tensors.against_torch import numbers

SIZES = [1, 2, 60, LARGEST_MATRIX + 1, 150, 2 * 257, 257, 512]
"""Of one product, of several ones, prime within and beyond the largest matrix."""


@pytest.mark.parametrize("count", SIZES)
def test_compiled_transforms_are_those_of_numpy(count):
    assert LARGEST_PRIME < 257
    x = numbers(2, count)

    @graphc.compile
    def transforms(x):
        half = rdft(x.real, axis=1)
        return dft(x, axis=1), dft(x, axis=1, inverse=True), half, irdft(half, axis=1, count=count)

    results = [t.numpy() for t in transforms(graphc.tensor(x))]
    expected = np.fft.fft(x), np.fft.ifft(x) * count, np.fft.rfft(x.real), x.real * count
    for a, b in zip(results, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * count)


def test_single_precision_stays():
    x = numbers(3, 100, dtype=np.complex64)
    result = graphc.compile(lambda x: dft(x, axis=1))(graphc.tensor(x))
    assert result.dtype is graphc.complex64
    np.testing.assert_allclose(result.numpy(), np.fft.fft(x.astype(complex)), rtol=1e-5, atol=2e-5)


def test_the_imaginary_parts_that_real_signals_have_not_do_not_count():
    x = graphc.tensor(numbers(70, seed=3))
    for count in (138, 139):
        eager, compiled = (f(x)._data for f in _both(lambda x, n=count: irdft(x, axis=0, count=n)))
        np.testing.assert_allclose(compiled, eager, rtol=1e-11, atol=1e-10)


def _both(function):
    return function, graphc.compile(function)


def test_every_dimension_can_be_transformed():
    x = numbers(4, 3, 2)
    result = graphc.compile(lambda x: dft(dft(x, axis=0), axis=1))(graphc.tensor(x)).numpy()
    np.testing.assert_allclose(result, np.fft.fft2(x, axes=(0, 1)), atol=1e-12)
