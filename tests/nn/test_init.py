"""Initial values: distributions, fans, gains, structure, errors, old names."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc
from graphc.nn import init


def filled(fill: object, *shape: int, **options: object) -> np.ndarray:
    graphc.manual_seed(0)
    tensor = graphc.zeros(*shape)
    assert fill(tensor, **options) is tensor
    return tensor.numpy().astype(np.float64)


@pytest.mark.parametrize(
    ("name", "param"),
    [
        *[(n, None) for n in ("linear", "conv1d", "conv2d", "conv3d", "sigmoid", "tanh", "relu", "selu", "leaky_relu")],
        *[(n, None) for n in ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")],
        ("leaky_relu", 0.3),
        ("leaky_relu", 2),
    ],
)
def test_gain_as_torch(torch, name: str, param: float | None):
    assert init.calculate_gain(name, param) == pytest.approx(torch.nn.init.calculate_gain(name, param))


def test_gain_errors():
    with pytest.raises(ValueError, match="nonlinearity 'swish' is not supported"):
        init.calculate_gain("swish")
    with pytest.raises(ValueError, match="must be a number, got True"):
        init.calculate_gain("leaky_relu", True)


def test_uniform_and_normal():
    values = filled(init.uniform_, 200, 100, a=-2.0, b=3.0)
    assert values.min() >= -2 and values.max() < 3 and abs(values.mean() - 0.5) < 0.05
    values = filled(init.normal_, 200, 100, mean=1.0, std=2.0)
    assert abs(values.mean() - 1) < 0.05 and abs(values.std() - 2) < 0.05


@pytest.mark.parametrize(("mean", "std", "a", "b"), [(0, 1, -2, 2), (1, 2, 0, 1.5), (0, 1, -1, 6), (0, 1, 2, 4)])
def test_truncated_normal(mean: float, std: float, a: float, b: float):
    values = np.sort(filled(init.trunc_normal_, 200, 200, mean=mean, std=std, a=a, b=b).ravel())
    assert values[0] >= a and values[-1] <= b

    def cdf(x):
        return (1 + math.erf((x - mean) / std / math.sqrt(2))) / 2

    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        expected = (cdf(values[int(share * len(values))]) - cdf(a)) / (cdf(b) - cdf(a))
        assert abs(expected - share) < 0.015


def test_truncated_normal_far_from_its_mean_warns():
    with pytest.warns(UserWarning, match="more than 2 standard deviations"):
        init.trunc_normal_(graphc.zeros(3), mean=9)


def test_constants():
    assert (filled(init.constant_, 2, 3, val=1.5) == 1.5).all()
    assert (filled(init.ones_, 2, 3) == 1).all()
    assert not init.zeros_(graphc.ones(2)).numpy().any()


def test_parameters_are_filled_without_history():
    p = graphc.nn.Parameter(graphc.zeros(2, 3))
    init.kaiming_uniform_(p)
    init.orthogonal_(p)
    init.trunc_normal_(p)
    assert p.is_leaf and p.requires_grad and (p.detach().numpy() != 0).all()


@pytest.mark.parametrize(
    ("fill", "options", "variance"),
    [
        (init.xavier_uniform_, {}, 2 / (200 + 100)),
        (init.xavier_normal_, {"gain": 2.0}, 8 / (200 + 100)),
        (init.kaiming_uniform_, {}, 2 / 100),
        (init.kaiming_uniform_, {"a": math.sqrt(5)}, (2 / 6) / 100),
        (init.kaiming_normal_, {"mode": "fan_out", "nonlinearity": "relu"}, 2 / 200),
        (init.kaiming_normal_, {"nonlinearity": "linear"}, 1 / 100),
    ],
)
def test_variance_follows_the_fans(fill: object, options: dict, variance: float):
    values = filled(fill, 200, 100, **options)
    assert values.var() == pytest.approx(variance, rel=0.05)
    if fill in (init.xavier_uniform_, init.kaiming_uniform_):
        assert np.abs(values).max() <= math.sqrt(3 * variance) * (1 + 1e-6)


def test_fans_of_convolutions():
    assert init.fans(graphc.zeros(6, 4, 3, 5)) == (60, 90)
    with pytest.raises(ValueError, match="2 or more dimensions"):
        init.xavier_uniform_(graphc.zeros(3))
    with pytest.raises(ValueError, match="mode 'fan' is not supported"):
        init.kaiming_uniform_(graphc.zeros(3, 3), mode="fan")


def test_nothing_to_initialise_warns():
    with pytest.warns(UserWarning, match="without elements"):
        init.kaiming_normal_(graphc.zeros(0, 3))


@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (4, 2, 3)])
def test_orthogonal(shape: tuple[int, ...]):
    q = filled(init.orthogonal_, *shape, gain=2.0).reshape(shape[0], -1) / 2
    small = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-6)


def test_eye_and_dirac():
    np.testing.assert_array_equal(filled(init.eye_, 2, 3), np.eye(2, 3))
    with pytest.raises(ValueError, match="expected a matrix"):
        init.eye_(graphc.zeros(2))
    weight = graphc.zeros(4, 2, 3, 3)
    init.dirac_(weight, groups=2)
    x = graphc.randn(1, 4, 5, 5)
    y = graphc.nn.functional.conv2d(x, weight, padding=1, groups=2)
    np.testing.assert_allclose(y.numpy(), x.numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="3 groups do not divide 4"):
        init.dirac_(weight, groups=3)
    with pytest.raises(ValueError, match="3 to 5 dimensions"):
        init.dirac_(graphc.zeros(2, 2))


def test_sparse():
    values = filled(init.sparse_, 50, 20, sparsity=0.3, std=0.5)
    assert ((values == 0).sum(0) == 15).all()
    assert values[values != 0].std() == pytest.approx(0.5, rel=0.1)
    with pytest.raises(ValueError, match="expected a matrix"):
        init.sparse_(graphc.zeros(2), 0.1)


def test_generator_is_used():
    draws = []
    for _ in range(2):
        generator = graphc.Generator().manual_seed(4)
        draws.append(init.xavier_normal_(graphc.zeros(3, 3), generator=generator).numpy())
    np.testing.assert_array_equal(*draws)


def test_old_names_warn():
    for old in ("uniform", "normal", "constant", "xavier_uniform", "kaiming_normal", "eye", "orthogonal"):
        args = (1.0,) if old == "constant" else ()
        with pytest.warns(FutureWarning, match=f"nn.init.{old} is deprecated; call nn.init.{old}_"):
            getattr(init, old)(graphc.zeros(2, 2), *args)


def test_bias_bound():
    assert init.bias_bound(graphc.zeros(3, 4, 2, 2)) == 0.25
    assert init.bias_bound(graphc.zeros(3, 0)) == 0.0
