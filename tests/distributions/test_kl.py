"""Divergences against PyTorch and against samples, and the table that users add to."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import graphc as gc
import graphc.distributions as D
from graphc.errors import ArgumentError, ShapeError, UnsupportedError
from tests.distributions.cases import COVARIANCE, LOWER, some

A, B, C, E = (some(3, 4, seed=s) for s in range(4))
P, Q = some(3, 4, low=0.1, high=0.9, seed=5), some(3, 4, low=0.1, high=0.9, seed=6)
PAIRS = {
    "normal": lambda d, t: (d.Normal(t(A), t(B)), d.Normal(t(C), t(E))),
    "half normal": lambda d, t: (d.HalfNormal(t(A)), d.HalfNormal(t(B))),
    "laplace": lambda d, t: (d.Laplace(t(A), t(B)), d.Laplace(t(C), t(E))),
    "cauchy": lambda d, t: (d.Cauchy(t(A), t(B)), d.Cauchy(t(C), t(E))),
    "gumbel": lambda d, t: (d.Gumbel(t(A), t(B)), d.Gumbel(t(C), t(E))),
    "uniform": lambda d, t: (d.Uniform(t(A), t(A + B)), d.Uniform(t(A - C + 1), t(A + B + E))),
    "uniform normal": lambda d, t: (d.Uniform(t(A), t(A + B)), d.Normal(t(C), t(E))),
    "exponential normal": lambda d, t: (d.Exponential(t(A)), d.Normal(t(C), t(E))),
    "gamma normal": lambda d, t: (d.Gamma(t(A), t(B)), d.Normal(t(C), t(E))),
    "laplace normal": lambda d, t: (d.Laplace(t(A), t(B)), d.Normal(t(C), t(E))),
    "gumbel normal": lambda d, t: (d.Gumbel(t(A), t(B)), d.Normal(t(C), t(E))),
    "exponential": lambda d, t: (d.Exponential(t(A)), d.Exponential(t(B))),
    "exponential gamma": lambda d, t: (d.Exponential(t(A)), d.Gamma(t(B), t(C))),
    "gamma exponential": lambda d, t: (d.Gamma(t(A), t(B)), d.Exponential(t(C))),
    "gamma": lambda d, t: (d.Gamma(t(A), t(B)), d.Gamma(t(C), t(E))),
    "chi2 gamma": lambda d, t: (d.Chi2(t(A)), d.Gamma(t(C), t(E))),
    "beta": lambda d, t: (d.Beta(t(A), t(B)), d.Beta(t(C), t(E))),
    "dirichlet": lambda d, t: (d.Dirichlet(t(A)), d.Dirichlet(t(B))),
    "bernoulli": lambda d, t: (d.Bernoulli(t(P)), d.Bernoulli(logits=t(A))),
    "binomial": lambda d, t: (d.Binomial(4, t(P)), d.Binomial(4, t(Q))),
    "geometric": lambda d, t: (d.Geometric(t(P)), d.Geometric(t(Q))),
    "poisson": lambda d, t: (d.Poisson(t(A)), d.Poisson(t(B))),
    "categorical": lambda d, t: (d.Categorical(t(P)), d.Categorical(logits=t(A))),
    "one hot": lambda d, t: (d.OneHotCategorical(t(P)), d.OneHotCategorical(logits=t(A))),
    "multivariate normal": lambda d, t: (
        d.MultivariateNormal(t(A), scale_tril=t(LOWER)),
        d.MultivariateNormal(t(B), t(COVARIANCE)),
    ),
    "independent": lambda d, t: (
        d.Independent(d.Normal(t(A), t(B)), 1),
        d.Independent(d.Normal(t(C), t(E)), 1),
    ),
    "log normal": lambda d, t: (d.LogNormal(t(A), t(B)), d.LogNormal(t(C), t(E))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_divergences_and_their_gradients_are_those_of_pytorch(torch, name: str):
    theirs = importlib.import_module("torch.distributions")
    made: tuple[list, list] = ([], [])

    def trained(library, kept):
        def make(array):
            kept.append(library.tensor(np.array(array), requires_grad=True))
            return kept[-1]

        return make

    mine = D.kl_divergence(*PAIRS[name](D, trained(gc, made[0])))
    other = theirs.kl_divergence(*PAIRS[name](theirs, trained(torch, made[1])))
    np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), 1e-8, 1e-10)
    mine.sum().backward()
    other.sum().backward()
    for a, b in zip(*made, strict=True):
        if b.grad is not None and np.isfinite(other.detach().numpy()).all():
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), 1e-7, 1e-9)


@pytest.mark.parametrize("name", ["normal", "gamma", "beta", "bernoulli", "cauchy"])
def test_divergences_are_means_over_samples(name: str):
    gc.manual_seed(1)
    p, q = PAIRS[name](D, gc.tensor)
    drawn = p.sample((3_000,))
    found = (p.log_prob(drawn) - q.log_prob(drawn)).numpy()
    error = found.std(0) / np.sqrt(len(found))
    assert (np.abs(found.mean(0) - D.kl_divergence(p, q).numpy()) < 5 * error + 1e-9).all()


def test_certain_choices_have_finite_divergences():
    sure, fair = D.Categorical(gc.tensor([0.0, 1.0])), D.Categorical(gc.tensor([0.5, 0.5]))
    assert D.kl_divergence(sure, fair).item() == pytest.approx(np.log(2), rel=1e-5)
    assert D.kl_divergence(fair, sure).item() == np.inf


def test_the_nearest_rule_counts():
    class Mine(D.Normal):
        pass

    @D.register_kl(Mine, D.Normal)
    def _rule(p, q):
        return gc.tensor(42.0)

    assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)).item() == 42
    assert D.kl_divergence(D.Normal(0.0, 1.0), Mine(0.0, 1.0)).item() == 0


def test_pairs_without_a_rule():
    with pytest.raises(UnsupportedError, match="no rule for Normal and Beta"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Beta(1.0, 1.0))
    with pytest.raises(ArgumentError, match="two classes"):
        D.register_kl(D.Normal, 3)
    two = [D.Independent(D.Normal(gc.zeros(2, 2), 1.0), k) for k in (1, 2)]
    with pytest.raises(ShapeError, match="different numbers"):
        D.kl_divergence(*two)


def test_different_transforms_have_no_rule():
    base, places = D.Normal(gc.zeros(5_000), 1.0), gc.zeros(5_000)
    moved = gc.where(gc.arange(5_000) == 2_500, 1.0, places)  # A place that the text of a tensor leaves out.
    for p, q in [
        (D.Weibull(1.0, 2.0), D.Weibull(1.0, 3.0)),
        (D.TransformedDistribution(base, D.AffineTransform(v, 1.0)) for v in (places, moved)),
        (
            D.TransformedDistribution(base, D.IndependentTransform(t, 1))
            for t in (D.SigmoidTransform(), D.TanhTransform())
        ),
    ]:
        assert D.kl_divergence(p, p).abs().max().item() == 0
        with pytest.raises(UnsupportedError, match="different transforms"):
            D.kl_divergence(p, q)


def test_the_divergence_from_the_impossible_is_infinite():
    p = gc.tensor([0.25, 0.25, 0.0, 1.0], dtype=gc.float64)
    q = gc.tensor([0.0, 1.0, 0.0, 1.0], dtype=gc.float64)
    assert D.kl_divergence(D.Bernoulli(p), D.Bernoulli(q)).tolist() == [np.inf, np.inf, 0.0, 0.0]
