"""Distributions made from random bits."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, DTypeError
from graphc.tensors.random import sampling

N = 50_000


def seeded() -> graphc.Generator:
    return graphc.Generator().manual_seed(1)


@pytest.mark.parametrize("dtype", [graphc.float32, graphc.float64])
def test_uniform(dtype):
    x = sampling.uniform((N,), dtype, seeded()).numpy()
    assert x.dtype == dtype.numpy and x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 0.01 and abs(x.var() - 1 / 12) < 0.005
    steps = x * 2.0 ** (24 if dtype is graphc.float32 else 53)
    assert (steps == np.floor(steps)).all()
    counts = np.histogram(x, 20, (0, 1))[0]
    assert (np.abs(counts - N / 20) < 5 * np.sqrt(N / 20)).all()


def test_doubles_have_more_than_24_bits():
    x = sampling.uniform((100,), graphc.float64, seeded()).numpy() * 2.0**24
    assert (x != np.floor(x)).any()


@pytest.mark.parametrize("dtype", [graphc.float32, graphc.float64])
def test_normal(dtype):
    x = sampling.normal((N,), dtype, seeded()).numpy().astype(np.float64)
    assert np.isfinite(x).all()
    assert abs(x.mean()) < 0.02 and abs(x.std() - 1) < 0.02
    assert abs((x**3).mean()) < 0.06 and abs((x**4).mean() - 3) < 0.15


def test_integers():
    x = sampling.integers(-3, 4, (N,), seeded()).numpy()
    assert set(x) == set(range(-3, 4))
    assert (np.abs(np.bincount(x + 3) - N / 7) < 5 * np.sqrt(N / 7)).all()
    wide = sampling.integers(0, 1 << 50, (N,), seeded()).numpy()
    assert wide.min() >= 0 and wide.max() > 1 << 49 and wide.max() < 1 << 50


def test_bernoulli():
    assert abs(sampling.bernoulli(0.3, (N,), seeded()).numpy().mean() - 0.3) < 0.01
    p = graphc.tensor([0.0, 1.0])
    assert sampling.bernoulli(p, (100, 2), seeded()).numpy().mean(0).tolist() == [0, 1]
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        sampling.bernoulli(1.5, (1,))


def test_only_floats_have_distributions():
    with pytest.raises(DTypeError, match="floating point, not i64"):
        sampling.uniform((1,), graphc.int64)
