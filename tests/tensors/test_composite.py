"""Compositions: values at the edges of their range, and their gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import ArgumentError, DTypeError
from graphc.tensors import composite


def test_no_overflow():
    x = graphc.tensor([-1e4, 0.0, 1e4])
    assert composite.sigmoid(x).tolist() == [0, 0.5, 1]
    assert composite.softmax(x, 0).tolist() == [0, 0, 1]
    assert composite.log_softmax(x, 0).tolist() == [-2e4, -1e4, 0]
    assert composite.logsumexp(x, 0).item() == 1e4
    assert composite.softplus(x).tolist() == pytest.approx([0, math.log(2), 1e4])
    assert composite.logsumexp(graphc.tensor([-math.inf, -math.inf]), 0).item() == -math.inf


@pytest.mark.parametrize("power", [lambda x, y: x**y, lambda x, y: x.pow(y), graphc.pow, graphc.float_power])
def test_powers_of_a_half_are_roots(power):
    x = graphc.tensor([-math.inf, -0.0, 4.0])
    for exponent, expected in ((0.5, [math.nan, -0.0, 2]), (-0.5, [math.nan, -math.inf, 0.5])):
        for function in (power, graphc.compile(power)):
            np.testing.assert_equal(function(x, exponent).tolist(), expected)
    assert power(graphc.tensor([4]), 0.5).tolist() == [2]


def test_not_a_number_passes_through():
    x = graphc.tensor([math.nan, -1.0])
    assert math.isnan(composite.relu(x)[0].item())
    assert math.isnan(composite.clamp(x, -2, 2)[0].item())


def test_subgradients_at_kinks():
    x = graphc.tensor([0.0, 1.0, 2.0, 3.0], requires_grad=True)
    composite.relu(x).sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 1]
    x.grad = None
    composite.clamp(x, 1.0, 2.0).sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 0]
    y = graphc.zeros(3, requires_grad=True)
    composite.norm(y).backward()
    assert y.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize("p", [0, 1, 2, 3, math.inf, -math.inf])
def test_norms(p):
    array = np.random.default_rng(0).standard_normal((3, 4))
    x = graphc.from_numpy(array).requires_grad_()
    np.testing.assert_allclose(composite.norm(x, p, 1).detach().numpy(), np.linalg.norm(array, p, axis=1), rtol=1e-12)
    if p:
        assert gradcheck(lambda t: composite.norm(t, p, 1), x)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate):
    x = graphc.from_numpy(np.linspace(-3, 3, 7)).requires_grad_()
    expected = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in np.linspace(-3, 3, 7)]
    np.testing.assert_allclose(
        composite.gelu(x, approximate).detach().numpy(), expected, atol=1e-12 if approximate == "none" else 1e-3
    )
    assert gradcheck(lambda t: composite.gelu(t, approximate), x)


def test_gelu_knows_two_forms():
    with pytest.raises(ArgumentError, match="'none' or 'tanh'"):
        composite.gelu(graphc.ones(1), "cosh")


@pytest.mark.parametrize("function", [composite.silu, composite.softplus, composite.sigmoid])
def test_gradients(function):
    assert gradcheck(function, graphc.from_numpy(np.array([-3.0, -0.2, 0.4, 25.0])).requires_grad_())


def test_second_gradients_of_softmax():
    x = graphc.from_numpy(np.random.default_rng(0).standard_normal((2, 3))).requires_grad_()
    assert graphc.autograd.gradgradcheck(lambda t: composite.log_softmax(t, 1), x)


def test_integers_are_converted_or_refused():
    assert composite.sigmoid(graphc.tensor([0])).tolist() == [0.5]
    assert composite.softmax(graphc.tensor([0, 0]), 0, graphc.float64).dtype is graphc.float64
    with pytest.raises(DTypeError, match="pass dtype="):
        composite.softmax(graphc.tensor([0, 0]), 0)
    with pytest.raises(ArgumentError, match="min, max or both"):
        composite.clamp(graphc.ones(1))


def test_variance_of_too_few():
    assert math.isnan(composite.var(graphc.ones(1)).item())
    assert composite.var(graphc.ones(1), correction=0).item() == 0
    assert math.isnan(composite.mean(graphc.zeros(0)).item())


def test_booleans_have_a_bound_on_one_side():
    x, bound = graphc.tensor([True, False, True]), graphc.tensor([False, True, True])
    for function, wanted in ((graphc.clamp_max, [False, False, True]), (graphc.clamp_min, [True, True, True])):
        for run in (function, graphc.compile(function)):
            assert run(x, bound).tolist() == wanted
    with pytest.raises(DTypeError):
        graphc.clamp(x, bound, bound)
