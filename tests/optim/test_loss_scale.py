"""``GradScaler``: scales, leaves steps out, follows the gradients, and goes on from a state of PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.errors import ArgumentError, GradientError


def setting(**options: float) -> tuple[gc.Tensor, gc.optim.SGD, gc.amp.GradScaler]:
    w = gc.ones(2, requires_grad=True)
    return w, gc.optim.SGD([w], lr=0.5), gc.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2, **options)


def test_gradients_are_scaled_and_divided_before_the_step():
    w, optimizer, scaler = setting()
    scaler.scale(w.sum()).backward()
    assert w.grad.tolist() == [8, 8]
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [1, 1]
    scaler.step(optimizer)
    assert w.tolist() == [0.5, 0.5]
    scaler.update()
    assert scaler.get_scale() == 8


def test_a_step_with_a_gradient_that_is_not_finite_is_left_out():
    w, optimizer, scaler = setting()
    (scaler.scale(w.sum()) * gc.inf).backward()
    assert scaler.step(optimizer) is None and w.tolist() == [1, 1]
    scaler.update()
    assert scaler.get_scale() == 4


def test_the_scale_grows_after_finite_updates_in_a_row():
    w, optimizer, scaler = setting()
    for scale in (8, 16, 16, 32):
        optimizer.zero_grad()
        scaler.scale(w.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == scale
    scaler.update(3.0)
    assert scaler.get_scale() == 3


def test_nested_outputs_are_scaled():
    _, _, scaler = setting()
    found = scaler.scale({"a": [gc.ones(1), gc.ones(1).half()]})
    assert [t.item() for t in found["a"]] == [8, 8] and found["a"][1].dtype is gc.float16


def test_wrong_orders_are_told():
    w, optimizer, scaler = setting()
    with pytest.raises(GradientError, match="no gradients were checked"):
        scaler.update()
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(GradientError, match="since the last update"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(GradientError, match="called twice"):
        scaler.step(optimizer)
    with pytest.raises(ArgumentError, match="growth_factor above 1"):
        gc.amp.GradScaler(growth_factor=0.5)


def test_one_that_is_not_enabled_does_nothing():
    w, optimizer, scaler = setting(enabled=False)
    loss = w.sum()
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1 and scaler.state_dict() == {}
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.5, 0.5]


def test_states_are_those_of_torch(torch):
    theirs = torch.amp.GradScaler("cpu", init_scale=512.0, growth_factor=3.0)
    theirs.scale(torch.ones(1))
    _, _, scaler = setting()
    scaler.load_state_dict(theirs.state_dict())
    assert scaler.get_scale() == 512 and scaler.get_growth_factor() == 3
    assert scaler.state_dict() == theirs.state_dict()
    np.testing.assert_equal(scaler.get_growth_interval(), 2000)
