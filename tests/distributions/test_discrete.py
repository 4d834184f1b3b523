"""Samples of whole numbers have the probabilities that they should have."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.distributions as D
from graphc.errors import ArgumentError, AttributeValueError, UnsupportedError

COUNT = 20_000


def check_frequencies(d, values: np.ndarray) -> None:
    """Check the frequency of each value, within five deviations."""
    drawn = d.sample((COUNT,)).numpy()
    expected = np.exp(d.log_prob(gc.tensor(values)).numpy().astype(np.float64))
    found = np.array([(drawn == v).mean() for v in values])
    assert (np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / COUNT) + 1e-9).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: D.Bernoulli(0.3),
        lambda: D.Bernoulli(logits=0.7),
        lambda: D.Geometric(0.3),
        lambda: D.Binomial(7, 0.3),
        lambda: D.Binomial(gc.tensor(4), 0.6),
        lambda: D.Poisson(2.5),
    ],
)
def test_counts(make):
    gc.manual_seed(2)
    d = make()
    values = d.enumerate_support() if d.has_enumerate_support else gc.arange(9, dtype=gc.float32)
    check_frequencies(d, values.numpy())


def test_categories():
    gc.manual_seed(4)
    weights = np.array([[1.0, 2, 0, 5], [4, 3, 2, 1]])
    for d in (D.Categorical(gc.tensor(weights)), D.Categorical(logits=gc.tensor(np.log(weights + 1e-300)))):
        drawn = d.sample((COUNT,)).numpy()
        found = np.stack([(drawn == k).mean(0) for k in range(4)], -1)
        shares = weights / weights.sum(-1, keepdims=True)
        assert (np.abs(found - shares) < 5 * np.sqrt(shares * (1 - shares) / COUNT) + 1e-9).all()
    counts = D.Multinomial(10, gc.tensor(weights)).sample((2_000,)).numpy()
    assert (counts.sum(-1) == 10).all()
    np.testing.assert_allclose(counts.mean(0), 10 * shares, atol=0.2)
    one_hot = D.OneHotCategorical(gc.tensor(weights)).sample((50,)).numpy()
    assert (one_hot.sum(-1) == 1).all() and not one_hot[..., 0, 2].any()


def test_no_samples_at_all():
    assert D.Categorical(gc.ones(2, 3)).sample((0,)).shape == (0, 2)
    assert D.Categorical(gc.ones(2, 3)).sample((2, 0, 3)).shape == (2, 0, 3, 2)


def test_binomials_of_several_totals():
    gc.manual_seed(5)
    d = D.Binomial(gc.tensor([0, 3, 10]), gc.tensor(0.5))
    drawn = d.sample((3_000,)).numpy()
    assert (drawn.max(0) <= [0, 3, 10]).all()
    np.testing.assert_allclose(drawn.mean(0), [0, 1.5, 5], atol=0.15)
    with pytest.raises(UnsupportedError, match="different total counts"):
        d.entropy()


def test_waiting_for_what_is_certain_or_never_comes():
    probs = gc.tensor([1.0, 0.5], requires_grad=True)
    D.Geometric(probs).log_prob(gc.zeros(2)).sum().backward()
    assert probs.grad.tolist() == [1, 2]
    with pytest.raises(AttributeValueError, match=r"probs must be in \(0, 1\], got 0.0"):
        D.Geometric(0.0)


def test_the_straight_way_through_a_choice_has_the_gradient_of_the_probabilities():
    logits = gc.tensor([0.1, 0.7, -0.4], requires_grad=True)
    weights = gc.tensor([1.0, 2.0, 4.0])
    drawn = D.OneHotCategoricalStraightThrough(logits=logits).rsample()
    (drawn * weights).sum().backward()
    other = logits.detach().requires_grad_()
    (other.softmax(-1) * weights).sum().backward()
    np.testing.assert_allclose(logits.grad.numpy(), other.grad.numpy(), 1e-5)
    np.testing.assert_allclose(sorted(drawn.detach().tolist()), [0, 0, 1], atol=1e-6)


def test_an_agent_learns_by_the_logarithms_of_its_choices():
    gc.manual_seed(6)
    logits = gc.nn.Parameter(gc.zeros(3))
    optimizer = gc.optim.Adam([logits], lr=0.1)

    @gc.compile
    def act():
        optimizer.zero_grad()
        d = D.Categorical(logits=logits)
        action = d.sample((32,))
        reward = (action == 1).float()
        loss = -(d.log_prob(action) * (reward - reward.mean())).mean() - d.entropy() * 0.001
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(60):
        act()
    assert logits.detach().softmax(-1)[1].item() > 0.8


def test_mistakes():
    with pytest.raises(ArgumentError, match="total_count must be an int"):
        D.Multinomial(2.5, gc.ones(3))
    with pytest.raises(AttributeValueError, match="at least 0"):
        D.Multinomial(-1, gc.ones(3))
    with pytest.raises(ArgumentError, match="at least one dimension"):
        D.Categorical(gc.tensor(0.5))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_even_odds_have_the_gradient_of_their_neighbours(compiled: bool):
    """The logarithms of both probabilities are joined at log-odds of 0."""

    def function(probs):
        bernoulli = D.Bernoulli(probs)
        binomial = D.Binomial(5, probs).log_prob(gc.tensor(2.0, dtype=gc.float64))
        return bernoulli.entropy(), bernoulli.log_prob(gc.ones(1)), D.Geometric(probs).entropy(), binomial

    probs = gc.tensor([0.5, 0.5 + 1e-9], dtype=gc.float64, requires_grad=True)
    for result in (gc.compile(function) if compiled else function)(probs):
        (gradient,) = gc.autograd.grad(result.sum(), [probs], retain_graph=True)
        np.testing.assert_allclose(gradient[0].item(), gradient[1].item(), 1e-6, 1e-6)


def test_the_entropy_of_waiting_for_what_hardly_happens():
    probs = gc.tensor([1.0, 1e-40], dtype=gc.float64, requires_grad=True)
    result = D.Geometric(probs).entropy()
    np.testing.assert_allclose(result.tolist(), [0.0, 1 - np.log(1e-40)])
