"""Parametrizations: values, gradients, state, removal, as in PyTorch."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.errors import AttributeValueError, DTypeError, ShapeError
from graphc.nn.utils import parametrize
from tests.nn.compare import floats, load, tensor


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(0, 1)


class Exponential(nn.Module):
    def forward(self, x):
        return x.exp()

    def right_inverse(self, x):
        return x.log()


class Pair(nn.Module):
    def forward(self, a, b):
        return a + b

    def right_inverse(self, x):
        return x * 0.25, x * 0.75


def test_a_parametrized_weight():
    layer = nn.Linear(3, 3)
    before = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert layer.parametrizations.weight.original is before
    assert graphc.equal(layer.weight, layer.weight.transpose(0, 1))
    assert sorted(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert parametrize.is_parametrized(layer) and parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    layer(graphc.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad[2, 0].item() == 0


def test_assignment_goes_through_the_inverses():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Exponential(), unsafe=True)
    layer.weight = graphc.full((2, 2), 3.0)
    assert np.allclose(layer.weight.detach().numpy(), 3)
    assert np.allclose(layer.parametrizations.weight.original.detach().numpy(), np.log(3))
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert len(layer.parametrizations.weight) == 2


def test_several_originals():
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Pair())
    assert sorted(layer.state_dict()) == [
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]
    assert graphc.allclose(layer.weight, before)
    with pytest.raises(AttributeValueError, match="computed from several tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, nn.Parameter) and graphc.allclose(layer.weight, before)


@pytest.mark.parametrize("leave", [True, False])
def test_removal(leave: bool):
    layer = nn.Linear(3, 3)
    original = layer.weight
    start = original.detach().clone()
    parametrize.register_parametrization(layer, "weight", Symmetric())
    expected = layer.weight.detach().clone() if leave else start
    parametrize.remove_parametrizations(layer, "weight", leave)
    assert layer.weight is original and graphc.equal(layer.weight, expected)
    assert type(layer) is nn.Linear and sorted(layer.state_dict()) == ["bias", "weight"]
    with pytest.raises(AttributeValueError, match="has no parametrization"):
        parametrize.remove_parametrizations(layer, "weight")


def test_buffers_and_copies():
    layer = nn.BatchNorm1d(2)
    parametrize.register_parametrization(layer, "running_var", Exponential(), unsafe=True)
    other = copy.deepcopy(layer)
    assert "parametrizations.running_var.original" in dict(other.named_buffers())
    assert graphc.equal(other.running_var, layer.running_var)


def test_wrong_uses():
    class Wrong(nn.Module):
        def forward(self, x):
            return x.sum()

    class Wide(nn.Module):
        def forward(self, x):
            return x.double()

    layer = nn.Linear(2, 2)
    with pytest.raises(AttributeValueError, match="no parameter or buffer 'w'"):
        parametrize.register_parametrization(layer, "w", Symmetric())
    with pytest.raises(ShapeError, match=r"returned shape \[\] for a tensor of shape \[2, 2\]"):
        parametrize.register_parametrization(layer, "weight", Wrong())
    with pytest.raises(DTypeError, match="unsafe=True"):
        parametrize.register_parametrization(layer, "weight", Wide())
    assert type(layer) is nn.Linear and "weight" in layer._parameters


def test_as_torch(torch):

    class Theirs(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(0, 1)

    ours, theirs = nn.Linear(3, 3).double(), torch.nn.Linear(3, 3).double()
    parametrize.register_parametrization(ours, "weight", Symmetric())
    torch.nn.utils.parametrize.register_parametrization(theirs, "weight", Theirs())
    load(ours, theirs)
    x = floats(2, 3)
    ours(tensor(x)).sum().backward()
    theirs(torch.tensor(x)).sum().backward()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy())
