"""Distributions made of others: samples, falling transforms, mixtures, relaxed choices, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.distributions as D
from graphc.errors import ArgumentError, ShapeError
from tests.distributions.cases import MORE, SCALE
from tests.distributions.samples import LIMIT, distance


def test_samples_of_falling_transforms_follow_the_distribution_function():
    gc.manual_seed(1)
    base = D.Normal(gc.tensor(0.2, dtype=gc.float64), 1.5)
    d = D.TransformedDistribution(base, [D.AffineTransform(1.0, -2.0), D.ExpTransform()])
    drawn = d.sample((10_000,))
    assert distance(d.cdf(drawn).numpy()) < LIMIT
    chances = np.linspace(0.1, 0.9, 9)
    np.testing.assert_allclose(d.cdf(d.icdf(gc.tensor(chances))).numpy(), chances, 1e-9)


def test_samples_of_mixtures_follow_the_distribution_function():
    gc.manual_seed(2)
    d = D.MixtureSameFamily(
        D.Categorical(gc.tensor([0.2, 0.8], dtype=gc.float64)),
        D.Normal(gc.tensor([-3.0, 1.0], dtype=gc.float64), gc.tensor([0.5, 2.0], dtype=gc.float64)),
    )
    drawn = d.sample((10_000,))
    assert distance(d.cdf(drawn).numpy()) < LIMIT
    assert drawn.mean().item() == pytest.approx(d.mean.item(), abs=0.1)
    assert drawn.var().item() == pytest.approx(d.variance.item(), rel=0.05)


def test_relaxed_choices_are_nearly_choices_at_low_temperatures():
    gc.manual_seed(3)
    logits = gc.tensor([0.5, -1.0, 1.0], requires_grad=True)
    drawn = D.RelaxedOneHotCategorical(gc.tensor(0.05), logits=logits).rsample((4_000,))
    np.testing.assert_allclose(drawn.detach().sum(-1).numpy(), 1, 1e-5)
    np.testing.assert_allclose(drawn.detach().mean(0).numpy(), logits.detach().softmax(-1).numpy(), atol=0.03)
    drawn.select(-1, 0).mean().backward()
    assert np.isfinite(logits.grad.numpy()).all() and logits.grad[0].item() > 0
    odds = D.RelaxedBernoulli(gc.tensor(0.05), probs=gc.tensor([0.3, 0.9])).sample((4_000,)).numpy()
    np.testing.assert_allclose(odds.mean(0), [0.3, 0.9], atol=0.03)


def test_densities_of_events_are_sums():
    d = D.Independent(D.Gamma(gc.tensor(MORE), gc.tensor(SCALE)), 1)
    value = d.sample()
    np.testing.assert_allclose(d.log_prob(value).numpy(), d.base_dist.log_prob(value).sum(-1).numpy(), 1e-12)
    assert d.support.event_dim == 1 and not d.has_enumerate_support


def test_a_squashed_policy_has_gradients_in_compiled_code():
    def loss(mean, deviation):
        d = D.TransformedDistribution(D.Normal(mean, deviation.exp()), [D.TanhTransform(cache_size=1)])
        action = d.rsample()
        return (d.log_prob(action).sum(-1) * 0.2 - action.square().sum(-1)).mean()

    found = []
    for function in (loss, gc.compile(loss)):
        gc.manual_seed(4)
        mean, deviation = (gc.tensor(v.astype(np.float32), requires_grad=True) for v in (MORE, MORE - 1))
        function(mean, deviation).backward()
        found.append([mean.grad.numpy(), deviation.grad.numpy()])
    for eager, compiled in zip(*found, strict=True):
        np.testing.assert_allclose(compiled, eager, 1e-4, 1e-6)


def test_mistakes():
    normal = D.Normal(gc.zeros(3), 1.0)
    with pytest.raises(ArgumentError, match="a transform or a list"):
        D.TransformedDistribution(normal, [gc.exp])
    with pytest.raises(ShapeError, match="the transforms take 1 dimensions"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform())
    with pytest.raises(ShapeError, match="2 probabilities do not fit 3 components"):
        D.MixtureSameFamily(D.Categorical(gc.ones(2)), normal)
    with pytest.raises(ArgumentError, match="a Categorical and components"):
        D.MixtureSameFamily(normal, normal)
