"""Samples of powers of other distributions follow their distribution functions."""

from __future__ import annotations

import pytest

import graphc as gc
import graphc.distributions as D
from tests.distributions.samples import LIMIT, distance


@pytest.mark.parametrize("kind", [D.Weibull, D.Pareto, D.InverseGamma])
def test_samples_follow_the_distribution_function(kind):
    gc.manual_seed(1)
    d = kind(gc.tensor(1.5, dtype=gc.float64), 2.5)
    if kind is D.InverseGamma:
        inverse = d.sample((10_000,)).reciprocal()
        assert distance(d.base_dist.cdf(inverse).numpy()) < LIMIT
        return
    assert distance(d.cdf(d.sample((10_000,))).numpy()) < LIMIT


def test_what_they_are_after_expanding():
    d = D.Weibull(1.0, 2.0).expand((3,))
    assert type(d) is D.Weibull and d.mean.shape == (3,) and repr(d) == "Weibull(scale: (3,), concentration: (3,))"
