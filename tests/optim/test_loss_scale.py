"""``GradScaler``: scales, leaves steps out, follows the gradients, and goes on from a state of PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, GradientError, TraceError
from graphc.nn import functional as F


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


def training(clip: float | None, **options: float):
    """A network, its optimizer, a scaler, and the body of a loop that uses it."""
    gc.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer, scaler = gc.optim.AdamW(net.parameters(), lr=1e-2), gc.amp.GradScaler(**options)

    def train(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        if clip is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        scaler.step(optimizer)
        scaler.update()
        return loss

    return net, optimizer, scaler, train


def batch():
    random = np.random.default_rng(0)
    return gc.tensor(random.normal(size=(4, 6)).astype("f4")), gc.tensor(random.normal(size=(4, 1)).astype("f4"))


@pytest.mark.parametrize("clip", [None, 0.5])
def test_a_compiled_function_discards_the_updates_that_a_step_discards(clip):
    """The fifth of nine calls overflows: compiled function, step and loop skip it; the first two are equal in bits."""
    start, interval = 2.0**80, 3
    net, optimizer, scaler, train = training(clip, init_scale=start, growth_interval=interval)
    looped, _, loop_scaler, loop = training(clip, init_scale=start, growth_interval=interval)
    stepped, step_optimizer, _, _ = training(clip)
    rule = gc.DynamicScale(start=start, growth_interval=interval)
    step = gc.compile_step(stepped, F.mse_loss, step_optimizer, clip_norm=clip, loss_scale=rule)
    compiled = gc.compile(train)
    x, y = batch()
    for call in range(9):
        biases = [model[2].bias.detach().clone() for model in (net, looped, stepped)]
        with gc.no_grad():
            for model in (net, looped, stepped) if call == 4 else ():
                model[2].bias.fill_(1e18)
        before = net[0].weight.detach().numpy().copy()
        one, two, three = compiled(x, y).item(), step(x, y).item(), loop(x, y).item()
        assert one == two == pytest.approx(three, rel=1e-5)
        assert scaler.get_scale() == step.loss_scale == loop_scaler.get_scale()
        assert np.array_equal(before, net[0].weight.detach().numpy()) is (call == 4)
        with gc.no_grad():
            for model, bias in zip((net, looped, stepped), biases, strict=True) if call == 4 else ():
                model[2].bias.copy_(bias)
    assert len(compiled.programs) == 1 and optimizer.step_count == step_optimizer.step_count == 9
    for ours, theirs in zip(net.parameters(), stepped.parameters(), strict=True):
        np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
    state = scaler.state_dict()
    assert state["scale"] == 2.0**81 and state["_growth_tracker"] == 1


def test_compiled_functions_follow_the_settings_of_the_scaler():
    _, _, scaler, train = training(None, init_scale=4.0, growth_interval=1)
    compiled = gc.compile(train)
    scales = []
    for _ in range(2):
        compiled(*batch())
        scales.append(scaler.get_scale())
    scaler.set_growth_factor(8.0)
    compiled(*batch())
    scaler.update(3.0)
    compiled(*batch())
    assert [*scales, scaler.get_scale()] == [8.0, 16.0, 24.0]
    scaler.load_state_dict({**scaler.state_dict(), "scale": 1.0})
    compiled(*batch())
    assert scaler.get_scale() == 8.0


def test_a_scaler_that_is_not_enabled_is_left_out_of_compiled_functions():
    net, _, _, train = training(0.5, enabled=False)
    other, _, _, loop = training(0.5)
    compiled = gc.compile(train)
    for _ in range(3):
        compiled(*batch()), loop(*batch())
    for ours, theirs in zip(net.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_a_compiled_function_holds_unscale_step_and_update():
    w, optimizer, scaler = setting()
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(GradientError, match="between unscale_ and update"):
        gc.compile(lambda: scaler.step(optimizer))()
    scaler.step(optimizer)
    scaler.update()

    @gc.compile
    def train():
        optimizer.zero_grad()
        scaler.scale(w.sum()).backward()
        scaler.step(optimizer)

    train()
    with pytest.raises(GradientError, match="in the same compiled function"):
        scaler.update()
    with pytest.raises(TraceError, match="full training function"):
        gc.trace(lambda: scaler.scale(w.sum()))
