"""Draws by programs give the numbers that ops draw, from the same states."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.calls.function import Compiled
from graphc.eager.dispatcher import references
from graphc.tensors.random import native_draws, sampling

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
    monkeypatch.setattr(native_draws, "ENOUGH", 0)


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
    draws = native_draws._Draws(sampling.cauchy, graphc.float32)
    calls = native_draws.ENOUGH // (native_draws.CALL + 100)
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
