"""Distributions made from random bits."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.calls.function import Compiled
from graphc.eager.dispatcher import references
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


DRAWS = {
    "uniform": lambda: graphc.rand(3, 70),
    "uniform f64": lambda: graphc.rand(3, 70, dtype=graphc.float64),
    "normal": lambda: graphc.randn(5, 41),
    "normal f64": lambda: graphc.randn(5, 41, dtype=graphc.float64),
    "exponential": lambda: graphc.empty(300).exponential_(),
    "gumbel": lambda: sampling.gumbel((2, 3, 50)),
    "integers": lambda: graphc.randint(-3, 9, (400,)),
    "wide integers": lambda: graphc.randint(0, 1 << 40, (100,)),
    "permutation": lambda: graphc.randperm(100),
    "dropout": lambda: nn.functional.dropout(graphc.ones(4, 100)),
    "one": lambda: graphc.rand(()),
    "none": lambda: graphc.rand(0, 3),
}


@pytest.fixture
def at_once(monkeypatch):
    """Programs are made at the first draw."""
    monkeypatch.setattr(sampling, "ENOUGH", 0)


@pytest.mark.parametrize("name", DRAWS)
def test_programs_draw_what_ops_draw(name: str, at_once):
    draw = DRAWS[name]
    graphc.manual_seed(1 << 40 | 5)
    native = [draw().numpy() for _ in range(3)]
    state = graphc.get_rng_state().tolist()
    graphc.manual_seed(1 << 40 | 5)
    with references():
        plain = [draw().numpy() for _ in range(3)]
    assert graphc.get_rng_state().tolist() == state
    for a, b in zip(native, plain, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_modules_have_streams_of_their_own(at_once):
    net = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5), nn.Dropout(0.5))
    x = graphc.ones(40, 50)
    graphc.manual_seed(3)
    native = net(x).numpy()
    graphc.manual_seed(3)
    with references():
        assert np.array_equal(net(x).numpy(), native)
    assert 0 < np.count_nonzero(native) < 0.2 * native.size


def test_a_program_is_made_when_enough_was_drawn():
    draws = sampling._Draws(sampling.cauchy, graphc.float32)
    calls = sampling.ENOUGH // (sampling.CALL + 100)
    assert all(draws.program(100) is None for _ in range(calls))
    assert draws.program(100) is not None


def test_writes_of_the_state_are_counted(at_once):
    generator = graphc.Generator().manual_seed(1)
    before = generator.state._counter[0]
    graphc.rand(2, generator=generator)
    assert generator.state._counter[0] == before + 1 and generator.get_state().tolist() == [1, 1]


def test_programs_are_called_without_looking_for_them(at_once, monkeypatch):
    graphc.randn(3), graphc.rand(3)

    def found(*_, **__):
        raise AssertionError("a program is looked for")

    monkeypatch.setattr(Compiled, "__call__", found)
    assert graphc.randn(4).shape == graphc.rand(4).shape == (4,)
