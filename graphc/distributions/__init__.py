"""Probability distributions with gradients, in eager mode and in compiled code."""

from graphc.distributions import constraints
from graphc.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from graphc.distributions.distribution import Distribution, ExponentialFamily
from graphc.distributions.location_scale import Cauchy, Exponential, Gumbel, HalfNormal, Laplace, Normal, Uniform

__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Laplace",
    "Multinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Poisson",
    "Uniform",
    "constraints",
]
