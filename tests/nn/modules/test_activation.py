"""Activation layers against PyTorch, and their text."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import ShapeError
from tests.nn.compare import floats, modules_agree, tensor

LAYERS = [
    ("ReLU", {}, "ReLU()"),
    ("ReLU6", {}, "ReLU6()"),
    ("LeakyReLU", {"negative_slope": 0.2}, "LeakyReLU(negative_slope=0.2)"),
    ("ELU", {"alpha": 0.5}, "ELU(alpha=0.5)"),
    ("CELU", {"alpha": 2.0}, "CELU(alpha=2.0)"),
    ("SELU", {}, "SELU()"),
    ("GELU", {}, "GELU(approximate='none')"),
    ("GELU", {"approximate": "tanh"}, "GELU(approximate='tanh')"),
    ("SiLU", {}, "SiLU()"),
    ("Mish", {}, "Mish()"),
    ("Tanh", {}, "Tanh()"),
    ("Sigmoid", {}, "Sigmoid()"),
    ("LogSigmoid", {}, "LogSigmoid()"),
    ("Softplus", {"beta": 2.0}, "Softplus(beta=2.0, threshold=20.0)"),
    ("Softsign", {}, "Softsign()"),
    ("Hardtanh", {"min_val": -0.5}, "Hardtanh(min_val=-0.5, max_val=1.0)"),
    ("Hardsigmoid", {}, "Hardsigmoid()"),
    ("Hardswish", {}, "Hardswish()"),
    ("GLU", {"dim": 1}, "GLU(dim=1)"),
    ("Softmax", {"dim": 1}, "Softmax(dim=1)"),
    ("LogSoftmax", {"dim": -1}, "LogSoftmax(dim=-1)"),
    ("Softmin", {"dim": 0}, "Softmin(dim=0)"),
    ("Softmax2d", {}, "Softmax2d()"),
    ("PReLU", {}, "PReLU(num_parameters=1)"),
    ("PReLU", {"num_parameters": 6, "init": 0.1}, "PReLU(num_parameters=6)"),
]


@pytest.mark.parametrize(("name", "options", "text"), LAYERS)
def test_as_torch(torch, name: str, options: dict, text: str):
    ours, theirs = getattr(nn, name)(**options), getattr(torch.nn, name)(**options)
    modules_agree(ours, theirs, floats(2, 6, 3, 4) * 2, rtol=1e-7)


@pytest.mark.parametrize(("name", "options", "text"), LAYERS)
def test_text(name: str, options: dict, text: str):
    assert repr(getattr(nn, name)(**options)) == text


@pytest.mark.parametrize("name", ["ReLU", "ReLU6", "LeakyReLU", "ELU", "SiLU", "Mish", "SELU", "Hardswish", "Hardtanh"])
def test_in_place(name: str):
    layer = getattr(nn, name)(inplace=True)
    assert repr(layer).endswith("inplace=True)")
    x = graphc.tensor(floats(5))
    expected = getattr(nn, name)()(x).numpy()
    assert layer(x) is x
    np.testing.assert_array_equal(x.numpy(), expected)


def test_layers_without_dimension_warn():
    for name in ("Softmax", "LogSoftmax", "Softmin"):
        with pytest.warns(UserWarning, match="without a dimension takes dimension 1") as caught:
            getattr(nn, name)()(graphc.zeros(2, 3))
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.Softmax(dim=1)(graphc.zeros(2, 3))


def test_prelu_starts_at_its_slope():
    assert nn.PReLU(3, 0.5).weight.tolist() == [0.5] * 3


def test_softmax2d_needs_channels():
    with pytest.raises(ShapeError, match="does not have 3 or 4 dimensions"):
        nn.Softmax2d()(graphc.zeros(2, 3))


SHRINKING = [
    ("Hardshrink", (0.3,), "Hardshrink(0.3)"),
    ("Softshrink", (0.3,), "Softshrink(0.3)"),
    ("Tanhshrink", (), "Tanhshrink()"),
    ("Threshold", (0.1, -2.0), "Threshold(threshold=0.1, value=-2.0)"),
    ("RReLU", (0.1, 0.2), "RReLU(lower=0.1, upper=0.2)"),
]


@pytest.mark.parametrize(("name", "arguments", "text"), SHRINKING)
def test_as_torch_shrinkage(torch, name: str, arguments: tuple, text: str):
    ours, theirs = getattr(nn, name)(*arguments).eval(), getattr(torch.nn, name)(*arguments).eval()
    modules_agree(ours, theirs, floats(4, 5))
    assert repr(ours) == text


@pytest.mark.parametrize("name", ["Threshold", "RReLU"])
def test_in_place_shrinkage(name: str):
    layer = getattr(nn, name)(0.1, 0.2, inplace=True).eval()
    x = tensor(floats(3, 4))
    assert np.shares_memory(layer(x).numpy(), x.numpy())
    assert "inplace=True" in repr(layer)


def test_slopes_are_drawn_in_training_only():
    graphc.manual_seed(0)
    layer, x = nn.RReLU(0.1, 0.9), -graphc.ones(50)
    assert len(np.unique(layer(x).numpy())) > 40
    np.testing.assert_allclose(layer.eval()(x).numpy(), -0.5)
