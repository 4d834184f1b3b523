"""Passes of a user in training steps: they see the forward pass before its gradients, and its effects happen once."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import TraceError
from tests.calls.test_user_passes import FACTOR, Scaled, X, net, wanted

__all__ = ["net"]


def test_training_steps_go_through_them_before_gradients(net: nn.Sequential):
    other = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    other.load_state_dict(net.state_dict())
    optimizer = gc.optim.SGD(other.parameters(), lr=0.5)
    step = gc.compile_step(net, gc.sum, gc.optim.SGD(net.parameters(), lr=0.5), passes=[Scaled()])
    for _ in range(2):
        optimizer.zero_grad()
        loss = wanted(other, gc.tensor(X)).sum()
        loss.backward()
        optimizer.step()
        assert gc.allclose(step(gc.tensor(X)), loss, atol=1e-6)
    assert gc.allclose(net[0].weight, other[0].weight, atol=1e-6)


class Counting(nn.Module):
    """Batch norm, dropout and a counter: writes and draws of the forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)
        self.calls = gc.nn.Buffer(gc.zeros(()))

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        self.calls += 1
        return nn.functional.dropout(gc.tanh(self.norm(self.linear(x))), 0.5)


def test_steps_write_and_draw_once_after_them():
    losses, states = [], []
    for passes in ([], [Scaled()]):
        gc.manual_seed(5)
        model = Counting()
        step = gc.compile_step(model, gc.sum, gc.optim.Adam(model.parameters()), passes=passes)
        FACTOR["now"] = 1.0
        losses.append([step(gc.tensor(X)).item() for _ in range(3)])
        states.append({name: t.numpy() for name, t in model.state_dict().items()})
        assert model.calls.item() == 3
    FACTOR["now"] = 2.0
    assert losses[0] == losses[1]
    for name, array in states[0].items():
        np.testing.assert_array_equal(array, states[1][name], name)


def test_steps_keep_hooks_of_tensors_beside_them(net: nn.Sequential):
    def doubled(output: gc.Tensor) -> gc.Tensor:
        output.register_hook(lambda g: 2 * g)
        return output.sum()

    weights = []
    for loss, lr in ((doubled, 0.5), (gc.sum, 1.0)):
        model = copy.deepcopy(net)
        gc.compile_step(model, loss, gc.optim.SGD(model.parameters(), lr=lr), passes=[Scaled()])(gc.tensor(X))
        weights.append(model[0].weight)
    assert gc.allclose(*weights, atol=1e-6)


def test_steps_refuse_them_with_writes_to_weights(net: nn.Sequential):
    def clamped(output: gc.Tensor) -> gc.Tensor:
        with gc.no_grad():
            net[0].weight.clamp_(-1, 1)
        return output.sum()

    step = gc.compile_step(net, clamped, gc.optim.SGD(net.parameters()), passes=[Scaled()])
    with pytest.raises(TraceError, match="cannot be combined with writes to weights in the forward pass"):
        step(gc.tensor(X))
