"""Gamma variates and what is made of them: their distribution, and how they change with the concentration."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.distributions as D
from graphc.errors import ShapeError
from tests.distributions.samples import LIMIT, distance


@pytest.mark.parametrize("dtype", [gc.float32, gc.float64])
@pytest.mark.parametrize("concentration", [0.2, 0.9, 1.0, 3.0, 200.0])
def test_samples_follow_the_distribution_function(concentration: float, dtype):
    gc.manual_seed(1)
    d = D.Gamma(gc.tensor(concentration, dtype=dtype), 2.0)
    drawn = d.sample((10_000,))
    wide = D.Gamma(gc.tensor(concentration, dtype=gc.float64), 2.0)
    assert drawn.dtype is dtype and (drawn.numpy() > 0).all()
    assert distance(wide.cdf(drawn.double()).numpy()) < LIMIT


@pytest.mark.parametrize(
    "make",
    [
        lambda: D.Chi2(3.0),
        lambda: D.Beta(0.6, 2.0),
        lambda: D.Beta(gc.tensor([0.05, 30.0]), gc.tensor([0.05, 2.0])),
        lambda: D.Dirichlet(gc.tensor([0.4, 1.0, 3.0])),
        lambda: D.StudentT(9.0, 1.0, 2.0),
    ],
)
def test_moments_of_samples(make):
    gc.manual_seed(2)
    d = make()
    drawn = d.sample((40_000,)).double()
    np.testing.assert_allclose(drawn.mean(0).numpy(), d.mean.numpy(), rtol=0.02, atol=0.01)
    np.testing.assert_allclose(drawn.var(0).numpy(), d.variance.numpy(), rtol=0.06)


def test_gradients_of_samples_are_near_those_of_pytorch(torch):
    concentration = np.logspace(-2, 4, 300)
    a = gc.tensor(concentration, requires_grad=True)
    gc.manual_seed(3)
    drawn = D.Gamma(a, 1.0).rsample()
    drawn.sum().backward()
    theirs = torch._standard_gamma_grad(torch.tensor(concentration), torch.tensor(drawn.detach().numpy())).numpy()
    # The other formula is an approximation with three digits.
    np.testing.assert_allclose(a.grad.numpy(), theirs, 2e-3)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_means_reach_the_concentrations(compiled: bool):
    gc.manual_seed(4)
    a = gc.tensor([0.7, 2.0, 5.0], dtype=gc.float64, requires_grad=True)

    def mean_of_first(a):
        return D.Dirichlet(a).rsample((20_000,)).select(-1, 0).mean() + D.Beta(a, 2.0).rsample((20_000,)).mean()

    (gc.compile(mean_of_first) if compiled else mean_of_first)(a).backward()
    other = a.detach().requires_grad_()
    (other[0] / other.sum() + (other / (other + 2.0)).mean()).backward()
    np.testing.assert_allclose(a.grad.numpy(), other.grad.numpy(), atol=3e-3)


def test_tiny_concentrations_give_shares():
    gc.manual_seed(5)
    drawn = D.Dirichlet(gc.full((2_000, 3), 1e-3)).sample().numpy()
    assert np.isfinite(drawn).all() and np.abs(drawn.sum(-1) - 1).max() < 1e-6
    share = D.Beta(gc.full((2_000,), 1e-3), 1e-3).sample().numpy()
    assert (share > 0).all() and (share < 1).all() and abs(share.mean() - 0.5) < 0.05


def test_a_dirichlet_has_vectors():
    with pytest.raises(ShapeError, match="at least one dimension"):
        D.Dirichlet(gc.tensor(1.0))
