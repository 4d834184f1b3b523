"""Samples of distributions of real numbers follow their distribution functions."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.distributions as D
from tests.distributions.samples import LIMIT, distance


@pytest.mark.parametrize("dtype", [gc.float32, gc.float64])
@pytest.mark.parametrize("kind", [D.Normal, D.Laplace, D.Cauchy, D.Gumbel, D.Uniform, D.HalfNormal, D.Exponential])
def test_samples_follow_the_distribution_function(kind, dtype):
    gc.manual_seed(3)
    parameters = [0.7] if kind in (D.HalfNormal, D.Exponential) else [-0.3, 1.7]
    d = kind(*[gc.tensor(p, dtype=dtype) for p in parameters])
    drawn = d.sample((20_000,))
    assert drawn.dtype is dtype and not drawn.requires_grad
    assert distance(d.cdf(drawn).numpy().astype(np.float64)) < LIMIT


@pytest.mark.parametrize("kind", [D.Normal, D.Laplace, D.Cauchy, D.Gumbel, D.Uniform, D.HalfNormal, D.Exponential])
def test_the_inverse_of_the_distribution_function(kind):
    parameters = [0.7] if kind in (D.HalfNormal, D.Exponential) else [-0.3, 1.7]
    d = kind(*[gc.tensor(p, dtype=gc.float64) for p in parameters])
    chances = np.linspace(0.02, 0.98, 25)
    np.testing.assert_allclose(d.cdf(d.icdf(gc.tensor(chances))).numpy(), chances, 1e-10)


def test_gradients_reach_location_and_scale():
    loc = gc.tensor([0.0, 1.0], requires_grad=True)
    scale = gc.tensor([1.0, 2.0], requires_grad=True)
    gc.manual_seed(1)
    drawn = D.Normal(loc, scale).rsample((5,))
    drawn.sum().backward()
    np.testing.assert_array_equal(loc.grad.numpy(), [5, 5])
    noise = (drawn.detach() - loc.detach()) / scale.detach()
    np.testing.assert_allclose(scale.grad.numpy(), noise.sum(0).numpy(), 1e-5)


@pytest.mark.parametrize(("kind", "slope"), [(D.HalfNormal, np.sqrt(2 / np.pi)), (D.HalfCauchy, 2 / np.pi)])
def test_small_probabilities_of_halves_keep_their_digits(kind, slope):
    small = gc.tensor([1e-30, 1e-12])
    np.testing.assert_allclose(kind(1.0).cdf(small).numpy(), small.numpy() * slope, 1e-6)
    np.testing.assert_allclose(kind(1.0).icdf(small * slope).numpy(), small.numpy(), 1e-6)


def test_outside_of_a_uniform_distribution_gradients_are_those_of_its_width():
    low = gc.tensor(0.0, requires_grad=True)
    distribution = D.Uniform(low, gc.tensor(2.0), validate_args=False)
    result = distribution.log_prob(gc.tensor([1.0, 3.0]))
    result.sum().backward()
    assert result.tolist() == [pytest.approx(-np.log(2)), -np.inf] and low.grad.item() == 1.0
