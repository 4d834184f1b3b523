"""Distributions of all classes, each built in the same way by graphc and by PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Build = Callable[[Any, Callable[[np.ndarray], Any]], Any]


def some(*shape: int, low: float = 0.3, high: float = 2.5, seed: int = 0) -> np.ndarray:
    """Uniform numbers in f64."""
    return np.random.default_rng(seed).uniform(low, high, shape)


REAL, SCALE, MORE = some(3, 1, low=-1), some(4, seed=1), some(3, 4, seed=2)
ODDS, CHANCE, SHARES = some(3, 4, low=-2), some(3, 4, low=0.1, high=0.9), some(3, 4, seed=3)
LOWER = np.tril(some(3, 4, 4, seed=4))
COVARIANCE = LOWER @ np.swapaxes(LOWER, -1, -2)

CASES: dict[str, Build] = {
    "normal": lambda d, t: d.Normal(t(REAL), t(SCALE)),
    "laplace": lambda d, t: d.Laplace(t(REAL), t(SCALE)),
    "cauchy": lambda d, t: d.Cauchy(t(REAL), t(SCALE)),
    "gumbel": lambda d, t: d.Gumbel(t(REAL), t(SCALE)),
    "half normal": lambda d, t: d.HalfNormal(t(MORE)),
    "half cauchy": lambda d, t: d.HalfCauchy(t(MORE)),
    "weibull": lambda d, t: d.Weibull(t(MORE), t(SCALE)),
    "pareto": lambda d, t: d.Pareto(t(MORE), t(SCALE)),
    "inverse gamma": lambda d, t: d.InverseGamma(t(MORE), t(SCALE)),
    "uniform": lambda d, t: d.Uniform(t(REAL), t(SCALE + 2.5)),
    "exponential": lambda d, t: d.Exponential(t(MORE)),
    "gamma": lambda d, t: d.Gamma(t(MORE), t(SCALE)),
    "chi2": lambda d, t: d.Chi2(t(MORE)),
    "beta": lambda d, t: d.Beta(t(MORE), t(SCALE)),
    "dirichlet": lambda d, t: d.Dirichlet(t(MORE)),
    "student": lambda d, t: d.StudentT(t(MORE + 0.5), t(REAL), t(SCALE)),
    "log normal": lambda d, t: d.LogNormal(t(REAL), t(SCALE * 0.4)),
    "bernoulli": lambda d, t: d.Bernoulli(t(CHANCE)),
    "bernoulli by logits": lambda d, t: d.Bernoulli(logits=t(ODDS)),
    "geometric": lambda d, t: d.Geometric(t(CHANCE)),
    "geometric by logits": lambda d, t: d.Geometric(logits=t(ODDS)),
    "binomial": lambda d, t: d.Binomial(5, t(CHANCE)),
    "binomial by logits": lambda d, t: d.Binomial(5, logits=t(ODDS)),
    "poisson": lambda d, t: d.Poisson(t(MORE)),
    "categorical": lambda d, t: d.Categorical(t(SHARES)),
    "categorical by logits": lambda d, t: d.Categorical(logits=t(ODDS)),
    "one hot": lambda d, t: d.OneHotCategorical(t(SHARES)),
    "one hot by logits": lambda d, t: d.OneHotCategorical(logits=t(ODDS)),
    "straight through": lambda d, t: d.OneHotCategoricalStraightThrough(logits=t(ODDS)),
    "multinomial": lambda d, t: d.Multinomial(6, t(SHARES)),
    "multinomial by logits": lambda d, t: d.Multinomial(6, logits=t(ODDS)),
    "multivariate normal": lambda d, t: d.MultivariateNormal(t(MORE), scale_tril=t(LOWER)),
    "multivariate normal by covariance": lambda d, t: d.MultivariateNormal(t(SCALE), t(COVARIANCE)),
    "multivariate normal by one covariance": lambda d, t: d.MultivariateNormal(t(MORE), t(COVARIANCE[0])),
    "multivariate normal by precision": lambda d, t: d.MultivariateNormal(
        t(MORE), precision_matrix=t(np.linalg.inv(COVARIANCE + np.eye(4)))
    ),
    "independent": lambda d, t: d.Independent(d.Normal(t(REAL), t(SCALE)), 1),
    "sigmoid of normal": lambda d, t: d.TransformedDistribution(
        d.Normal(t(REAL), t(SCALE)), [d.SigmoidTransform(), d.AffineTransform(1.0, -3.0)]
    ),
    "tanh of normal": lambda d, t: d.Independent(
        d.TransformedDistribution(d.Normal(t(REAL), t(SCALE * 0.3)), d.TanhTransform()), 1
    ),
    "softplus of normal": lambda d, t: d.TransformedDistribution(d.Normal(t(REAL), t(SCALE)), d.SoftplusTransform()),
    "sticks": lambda d, t: d.TransformedDistribution(d.Normal(t(REAL), t(SCALE)), d.StickBreakingTransform()),
    "shifted vectors": lambda d, t: d.TransformedDistribution(
        d.Independent(d.Normal(t(REAL), t(SCALE)), 1),
        d.ComposeTransform([d.AffineTransform(t(SCALE), t(SCALE), event_dim=1), d.ExpTransform()]),
    ),
    "widened by a transform": lambda d, t: d.TransformedDistribution(
        d.Normal(t(REAL[0, 0]), t(SCALE[0])), d.AffineTransform(t(REAL), t(SCALE))
    ),
    "mixture": lambda d, t: d.MixtureSameFamily(d.Categorical(t(SHARES)), d.Normal(t(REAL), t(SCALE))),
    "mixture of vectors": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t(SHARES[0, :3])), d.Independent(d.Laplace(t(REAL), t(SCALE)), 1)
    ),
    "relaxed bernoulli": lambda d, t: d.RelaxedBernoulli(t(np.array(0.7)), logits=t(ODDS)),
    "relaxed one hot": lambda d, t: d.RelaxedOneHotCategorical(t(np.array(0.7)), logits=t(ODDS)),
}
"""By name; ``t`` makes a tensor of an array."""
