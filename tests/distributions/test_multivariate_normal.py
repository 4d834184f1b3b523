"""Normal vectors: samples, the ways to give the covariance, gradients of samples, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.distributions as D
from graphc.errors import ArgumentError, AttributeValueError, ShapeError
from tests.distributions.cases import COVARIANCE, LOWER, MORE


def test_samples_have_mean_and_covariance():
    gc.manual_seed(1)
    d = D.MultivariateNormal(gc.tensor(MORE[0]), gc.tensor(COVARIANCE[0]))
    drawn = d.sample((40_000,)).numpy()
    np.testing.assert_allclose(drawn.mean(0), MORE[0], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), COVARIANCE[0], rtol=0.05, atol=0.08)


def test_all_ways_to_give_the_covariance_agree():
    loc, value = gc.tensor(MORE), gc.tensor(MORE * 0.5)
    ways = [
        D.MultivariateNormal(loc, gc.tensor(COVARIANCE)),
        D.MultivariateNormal(loc, precision_matrix=gc.tensor(np.linalg.inv(COVARIANCE)), validate_args=False),
        D.MultivariateNormal(loc, scale_tril=gc.tensor(LOWER)),
    ]
    for d in ways:
        np.testing.assert_allclose(d.log_prob(value).numpy(), ways[2].log_prob(value).numpy(), 1e-6)
        np.testing.assert_allclose(d.covariance_matrix.numpy(), COVARIANCE, 1e-6)
        np.testing.assert_allclose(d.scale_tril.numpy(), LOWER, 1e-5, 1e-8)
        np.testing.assert_allclose(
            d.precision_matrix.numpy() @ COVARIANCE, np.broadcast_to(np.eye(4), (3, 4, 4)), 0, 1e-5
        )


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_samples_reach_mean_and_factor(compiled: bool):
    gc.manual_seed(2)
    loc, lower = (gc.tensor(v, requires_grad=True) for v in (MORE[0], LOWER[0]))

    def mean_square(loc, lower):
        return D.MultivariateNormal(loc, scale_tril=lower).rsample((20_000,)).square().sum(-1).mean()

    (gc.compile(mean_square) if compiled else mean_square)(loc, lower).backward()
    np.testing.assert_allclose(loc.grad.numpy(), 2 * MORE[0], atol=0.15)
    np.testing.assert_allclose(np.tril(lower.grad.numpy()), 2 * LOWER[0], atol=0.2)


def test_mistakes():
    loc, eye = gc.zeros(2), gc.eye(2)
    with pytest.raises(AttributeValueError, match="got none"):
        D.MultivariateNormal(loc)
    with pytest.raises(ShapeError, match=r"\[3\] and \[2, 2\]"):
        D.MultivariateNormal(gc.zeros(3), eye)
    with pytest.raises(ArgumentError, match="must be tensors"):
        D.MultivariateNormal(0.0, eye)
    with pytest.raises(AttributeValueError, match="positive definite"):
        D.MultivariateNormal(loc, -eye)
    with pytest.raises(AttributeValueError, match="symmetric"):
        D.MultivariateNormal(loc, gc.tensor([[1.0, 0.5], [0.0, 1.0]]))
    with pytest.raises(AttributeValueError, match="positive diagonal"):
        D.MultivariateNormal(loc, scale_tril=gc.ones(2, 2))
