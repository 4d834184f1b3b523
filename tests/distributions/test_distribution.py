"""All distributions against PyTorch, in compiled code, and by their samples; shapes, checks and their messages."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import graphc as gc
import graphc.distributions as D
from graphc.errors import ArgumentError, AttributeValueError, ShapeError, UnsupportedError
from tests.distributions.cases import CASES, MORE, REAL, SCALE, some

CHANCES = np.linspace(0.05, 0.95, 12).reshape(3, 4)


def attempt(call):
    """Return the result of a computation, or None where it does not exist."""
    try:
        return call()
    except NotImplementedError:
        return None


def agree(name: str, mine, other) -> None:
    """Compares two tensors; what PyTorch has must be here."""
    if other is None:
        return
    assert mine is not None, f"there is no {name}"
    np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), 1e-8, 1e-10, err_msg=name)


def single(array) -> gc.Tensor:
    """An f32 tensor."""
    return gc.tensor(array, dtype=gc.float32)


@pytest.mark.parametrize("name", CASES)
def test_moments_densities_and_shapes_are_those_of_pytorch(torch, name: str):
    theirs = importlib.import_module("torch.distributions")
    mine, other = CASES[name](D, gc.tensor), CASES[name](theirs, torch.tensor)
    torch.manual_seed(1)
    value = other.sample((2,)).numpy()
    assert (mine.batch_shape, mine.event_shape) == (tuple(other.batch_shape), tuple(other.event_shape))
    assert mine.sample((2,)).shape == value.shape and mine.has_rsample == other.has_rsample
    for what in ("mean", "mode", "variance", "stddev"):
        agree(what, attempt(lambda: getattr(mine, what)), attempt(lambda: getattr(other, what)))  # noqa: B023
    agree("log_prob", mine.log_prob(gc.tensor(value)), other.log_prob(torch.tensor(value)))
    agree("cdf", attempt(lambda: mine.cdf(gc.tensor(value))), attempt(lambda: other.cdf(torch.tensor(value))))
    agree("icdf", attempt(lambda: mine.icdf(gc.tensor(CHANCES))), attempt(lambda: other.icdf(torch.tensor(CHANCES))))
    for what in ("entropy", "perplexity"):
        if "multinomial" not in name:
            agree(what, attempt(getattr(mine, what)), attempt(getattr(other, what)))
    if other.has_enumerate_support:
        for expand in (True, False):
            agree("enumerate_support", mine.enumerate_support(expand), other.enumerate_support(expand))


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_densities_are_those_of_pytorch(torch, name: str):
    theirs = importlib.import_module("torch.distributions")
    made: tuple[list, list] = ([], [])

    def trained(library, kept):
        def make(array):
            kept.append(library.tensor(np.array(array), requires_grad=True))
            return kept[-1]

        return make

    mine = CASES[name](D, trained(gc, made[0]))
    other = CASES[name](theirs, trained(torch, made[1]))
    torch.manual_seed(2)
    value = other.sample((2,)).numpy()
    mine.log_prob(gc.tensor(value)).sum().backward()
    other.log_prob(torch.tensor(value)).sum().backward()
    for a, b in zip(*made, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), 1e-7, 1e-9)


INEXACT = (" of ", "sticks", "shifted", "relaxed", "poisson", "multivariate", "weibull", "pareto", "inverse")
"""By ops whose last bit depends on who computes them, or not in compiled code at all."""
EXACT = [name for name in CASES if not any(word in name for word in INEXACT)]


@pytest.mark.parametrize("name", EXACT)
def test_compiled_draws_have_the_bits_of_eager_ones(name: str):
    build = CASES[name]

    def draw(x):
        d = build(D, lambda array: single(array) + x)
        return d.sample((40,))

    zero = gc.tensor(0.0)
    gc.manual_seed(5)
    eager = draw(zero)
    gc.manual_seed(5)
    np.testing.assert_array_equal(gc.compile(draw)(zero).numpy(), eager.numpy())


@pytest.mark.sampled(50)
@pytest.mark.parametrize("name", [n for n in CASES if n != "poisson"])
def test_compiled_densities_and_their_gradients_are_those_of_eager_mode(name: str):
    build = CASES[name]
    value = build(D, gc.tensor).sample((2,))

    def density(x):
        return build(D, lambda array: gc.tensor(array) + x).log_prob(value).sum()

    results = []
    for function in (density, gc.compile(density)):
        x = gc.tensor(0.0, dtype=gc.float64, requires_grad=True)
        result = function(x)
        result.backward()
        results.append((result.item(), x.grad.item()))
    np.testing.assert_allclose(results[1], results[0], 1e-7, 1e-8)


@pytest.mark.parametrize("dtype", [gc.float16, gc.bfloat16])
@pytest.mark.parametrize("name", [n for n in CASES if "multivariate" not in n and " by " not in n])
def test_distributions_of_half_precision(name: str, dtype):
    def half(array):
        return gc.tensor(array).to(dtype)

    gc.manual_seed(7)
    d = CASES[name](D, half)
    drawn = d.sample((300,))
    whole = type(d) is D.Categorical
    assert drawn.dtype is (gc.int64 if whole else dtype) and drawn.shape == (300, *d.batch_shape, *d.event_shape)
    if isinstance(d, D.Gamma | D.Beta | D.Dirichlet | D.Bernoulli | D.Geometric | D.Poisson | D.Multinomial | D.Normal):
        result, expected = drawn.float().numpy(), d.mean.float().numpy()
        error = result.std(0) / np.sqrt(len(result))
        assert (np.abs(result.mean(0) - expected) < 5 * error + 0.02 * np.abs(expected)).all()
    d._validate_args = False  # Rounded shares have another sum.
    assert d.log_prob(drawn).dtype is dtype


def test_samples_of_batches_expand():
    d = D.Gamma(gc.tensor(MORE), gc.tensor(SCALE)).expand((5, 3, 4))
    assert d.batch_shape == (5, 3, 4) and d.rsample((2,)).shape == (2, 5, 3, 4)
    assert D.Categorical(gc.tensor(MORE)).expand((2, 3)).sample((7,)).shape == (7, 2, 3)


@pytest.mark.parametrize("name", CASES)
def test_every_distribution_expands(name: str):
    d = CASES[name](D, gc.tensor)
    wide = d.expand((2, *d.batch_shape))
    value = wide.sample()
    assert value.shape == (2, *d.batch_shape, *d.event_shape)
    np.testing.assert_allclose(wide.log_prob(value).numpy(), d.log_prob(value).numpy(), 1e-12)
    assert type(wide) is type(d) and wide.support.check(value).all().item()
    for what in ("mean", "variance", "probs", "logits", "loc", "scale"):
        one = attempt(lambda: getattr(d, what, None))  # noqa: B023
        if one is not None:
            np.testing.assert_array_equal(getattr(wide, what).numpy(), np.broadcast_to(one.numpy(), (2, *one.shape)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: D.Normal(0.0, -1.0), AttributeValueError, "parameter scale must be greater than 0, got -1.0"),
        (lambda: D.Normal(0.0, 1.0).log_prob(gc.tensor(float("nan"))), AttributeValueError, "a value must be"),
        (lambda: D.Normal(0.0, 1.0).log_prob(1.0), ArgumentError, "the value must be a tensor"),
        (lambda: D.Normal(gc.zeros(3), 1.0).log_prob(gc.zeros(2)), ShapeError, "does not broadcast"),
        (lambda: D.Normal("a", 1.0), ArgumentError, "a number or a tensor"),
        (lambda: D.Bernoulli(), AttributeValueError, "one of probs and logits, got none"),
        (lambda: D.Bernoulli(0.5, 0.1), AttributeValueError, "got probs and logits"),
        (lambda: D.Bernoulli(1.5), AttributeValueError, r"probs must be in \[0, 1\], got 1.5"),
        (lambda: D.Uniform(1.0, 0.0), AttributeValueError, "high - low must be greater than 0"),
        (lambda: D.Categorical(gc.ones(3)).log_prob(gc.tensor(3)), AttributeValueError, r"\[0, 2\], got 3"),
        (lambda: D.Categorical(gc.tensor([0.5, -0.2])), AttributeValueError, "probs must be at least 0"),
        (lambda: D.Dirichlet(gc.ones(3)).log_prob(gc.ones(3)), AttributeValueError, "a sum of 1"),
        (lambda: D.Dirichlet(gc.ones(3)).log_prob(gc.ones(2)), ShapeError, r"one event has shape \[3\]"),
        (lambda: D.Cauchy(0.0, 1.0).perplexity() and D.Beta(1.0, 1.0).cdf(gc.tensor(0.5)), UnsupportedError, "no cdf"),
        (lambda: D.Normal(0.0, 1.0).sample(3), ArgumentError, "sample_shape must be a tuple, got 3"),
        (lambda: D.Categorical(gc.ones(3)).sample(3), ArgumentError, "sample_shape must be a tuple, got 3"),
        (lambda: D.Independent(D.Normal(0.0, 1.0), 1), AttributeValueError, "cannot reinterpret 1 dimensions"),
        (lambda: D.Distribution.set_default_validate_args("yes"), AttributeValueError, "True or False"),
    ],
)
def test_mistakes(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_distribution_of_a_user_needs_no_support():
    class Flat(D.Distribution):
        def log_prob(self, value):
            self._check_sample(value)
            return value * 0

    assert Flat().log_prob(gc.tensor(2.0)).item() == 0
    with pytest.raises(ArgumentError, match="Flat: the value must be a tensor"):
        Flat().log_prob(2.0)
    with pytest.raises(UnsupportedError, match="Flat has no rsample"):
        Flat().sample()


def test_batches_without_distributions():
    d = D.Categorical(gc.ones(0, 3))
    assert d.sample((2,)).shape == (2, 0) == d.log_prob(d.sample((2,))).shape
    assert D.MultivariateNormal(gc.zeros(0, 2), gc.eye(2)).log_prob(gc.zeros(0, 2)).shape == (0,)
    assert D.OneHotCategorical(gc.ones(0, 3)).sample().shape == (0, 3) == D.Multinomial(4, gc.ones(0, 3)).sample().shape


def test_checks_can_be_left_out():
    assert np.isnan(D.Normal(0.0, -1.0, validate_args=False).entropy().item())
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)


def test_traced_code_checks_shapes_but_not_values():
    def density(scale, value):
        return D.Normal(0.0, scale).log_prob(value)

    result = gc.compile(density)(gc.tensor(-1.0), gc.tensor(0.5))
    assert np.isnan(result.item())
    with pytest.raises(ShapeError, match="does not broadcast"):
        gc.compile(density)(gc.ones(3), gc.ones(2))


def test_a_training_step_with_samples_in_compiled_code():
    loc = gc.tensor(some(8).astype(np.float32), requires_grad=True)
    parameter = gc.nn.Parameter(loc.detach().clone())
    optimizer = gc.optim.SGD([parameter], lr=0.5)

    def step(target):
        optimizer.zero_grad()
        d = D.Normal(parameter, 0.1)
        loss = (d.rsample((16,)) - target).square().mean() + D.kl_divergence(d, D.Normal(0.0, 1.0)).mean() * 0.0
        loss.backward()
        optimizer.step()
        return loss

    compiled = gc.compile(step)
    for _ in range(60):
        loss = compiled(gc.full((8,), 3.0))
    assert abs(parameter.detach().numpy() - 3.0).max() < 0.1 and loss.item() < 0.05


def test_texts_name_the_parameters():
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Gamma(gc.tensor(MORE), gc.tensor(SCALE))) == "Gamma(concentration: (3, 4), rate: (3, 4))"
    assert REAL.shape == (3, 1)
