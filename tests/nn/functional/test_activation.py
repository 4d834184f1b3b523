"""Rules of activations: kinks, implicit dimensions, working in place."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import agree, floats, tensor


@pytest.mark.parametrize(
    "name", ["relu", "leaky_relu", "elu", "celu", "selu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "softsign"]
)
def test_kinks_as_torch(torch, name: str):
    x = np.array([-3.0, -1.0, 0.0, 1.0, 3.0, 6.0])
    # PyTorch has the gradient of hardsigmoid as a 32-bit constant.
    agree(getattr(F, name), getattr(torch.nn.functional, name), x, rtol=1e-7)


def test_prelu_needs_one_weight_per_channel():
    with pytest.raises(ShapeError, match="2 weights for 3 channels"):
        F.prelu(tensor(floats(2, 3)), tensor(floats(2)))


def test_softmax_of_large_numbers():
    x = graphc.tensor([1000.0, 1001.0, 1002.0])
    expected = np.exp([-2.0, -1.0, 0.0]) / np.exp([-2.0, -1.0, 0.0]).sum()
    np.testing.assert_allclose(F.softmax(x, 0).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(F.log_softmax(x, 0).numpy(), np.log(expected), rtol=1e-6)


@pytest.mark.parametrize(("rank", "dim"), [(0, 0), (1, 0), (2, 1), (3, 0), (4, 1)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_implicit_dimension_warns(name: str, rank: int, dim: int):
    x = tensor(floats(*(2,) * rank))
    with pytest.warns(UserWarning, match=f"{name} without a dimension takes dimension {dim}") as caught:
        result = getattr(F, name)(x)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(result.numpy(), getattr(F, name)(x, dim=dim).numpy())


def test_explicit_dimension_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.log_softmax(tensor(floats(2, 3)), dim=1)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "silu", "hardtanh", "mish"])
def test_in_place(name: str):
    x = tensor(floats(3, 4))
    expected = getattr(F, name)(x).numpy()
    assert getattr(F, name)(x, inplace=True) is x
    np.testing.assert_array_equal(x.numpy(), expected)


def test_in_place_takes_part_in_autograd():
    x = tensor(floats(5), requires_grad=True)
    y = x * 2.0
    F.relu(y, inplace=True)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2.0 * (floats(5) > 0))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "name",
    ["relu", "leaky_relu", "relu6", "hardtanh", "elu", "selu", "celu", "silu", "mish", "hardsigmoid", "hardswish"],
)
def test_in_place_on_a_result_has_the_gradient_of_the_function(name: str, compiled: bool):
    """Also where the rule needs what was written over."""

    def slope(inplace: bool) -> np.ndarray:
        x = graphc.tensor([[-4.0, -0.5, 0.25], [0.75, 2.0, 7.0]], requires_grad=True)

        def function(x):
            return getattr(F, name)(x * 2, inplace=inplace) ** 2

        (graphc.compile(function) if compiled else function)(x).sum().backward()
        return x.grad.numpy()

    np.testing.assert_allclose(slope(True), slope(False), rtol=1e-6)


def test_glu_needs_an_even_size():
    with pytest.raises(ShapeError, match="odd size 3"):
        F.glu(tensor(floats(2, 3)))


def test_normalize_of_zeros_is_zero():
    np.testing.assert_array_equal(F.normalize(graphc.zeros(2, 3)).numpy(), np.zeros((2, 3)))


def test_by_hand():
    x = graphc.tensor([-2.0, -0.5, 0.0, 0.5, 2.0])
    assert F.hardshrink(x).tolist() == [-2, 0, 0, 0, 2]
    assert F.softshrink(x, 1.0).tolist() == [-1, 0, 0, 0, 1]
    assert F.threshold(x, 0.0, 7.0).tolist() == [7, 7, 7, 0.5, 2]
    np.testing.assert_allclose(F.tanhshrink(x).numpy(), x.numpy() - np.tanh(x.numpy()), rtol=1e-6)
    with pytest.raises(AttributeValueError, match="must not be negative"):
        F.softshrink(x, -1.0)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("relu", ()),
        ("leaky_relu", (0.2,)),
        ("elu", (2.0,)),
        ("selu", ()),
        ("celu", (2.0,)),
        ("hardtanh", (-0.5, 0.25)),
        ("threshold", (0.1, -1.0)),
        ("rrelu", (0.1, 0.3)),
    ],
)
def test_in_place_shrinkage(name: str, arguments: tuple):
    array = floats(3, 4)
    x = tensor(array)
    found = getattr(F, f"{name}_")(x, *arguments)
    np.testing.assert_array_equal(found.numpy(), x.numpy())
    np.testing.assert_array_equal(x.numpy(), getattr(F, name)(tensor(array), *arguments).numpy())
    assert np.any(x.numpy() != array)


def test_slopes_are_drawn_in_training():
    graphc.manual_seed(0)
    x = -graphc.ones(2000).requires_grad_()
    y = F.rrelu(x, 0.2, 0.4, training=True)
    slopes = -y.detach().numpy()
    assert slopes.min() >= 0.2
    assert slopes.max() <= 0.4
    assert abs(slopes.mean() - 0.3) < 0.01
    assert F.rrelu(graphc.ones(3), training=True).tolist() == [1, 1, 1]


def test_samples_of_a_softmax():
    graphc.manual_seed(0)
    weights = np.array([0.1, 0.2, 0.7], np.float32)
    logits = graphc.tensor(np.tile(np.log(weights), (4000, 1))).requires_grad_()
    soft = F.gumbel_softmax(logits, tau=0.5)
    np.testing.assert_allclose(soft.detach().numpy().sum(1), 1, rtol=1e-5)
    hard = F.gumbel_softmax(logits, hard=True)
    rows = hard.detach().numpy()
    assert set(np.round(np.unique(rows), 5)) == {0, 1}
    np.testing.assert_allclose(rows.mean(0), weights, atol=0.03)
    (hard * graphc.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad is not None
    assert np.any(logits.grad.numpy() != 0)


def test_softplus_with_beta_0_is_infinite():
    x = graphc.tensor([-1.0, 0.0, 3.0], requires_grad=True)
    result = F.softplus(x, beta=0.0)
    result.sum().backward()
    assert result.tolist() == [np.inf] * 3 and x.grad.tolist() == [0.5] * 3
