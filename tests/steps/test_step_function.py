"""The function of a training step gives the same in eager sessions and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import GradientError
from graphc.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.drop(gc.tanh(self.norm(self.first(x)))))


LIMITS = {"clip_norm": 0.1, "clip_value": 0.05, "grads": True}
OPTIONS = {
    "scaled": {"loss_scale": 128.0, "ema": 0.9, **LIMITS},
    "accumulated": {"loss_scale": gc.DynamicScale(start=1024.0, growth_interval=2), "accumulate": 2, **LIMITS},
}


def trained(eager, make=gc.optim.AdamW, steps=7, **options):
    gc.manual_seed(1)
    net = Net().double()
    optimizer = make(net.parameters(), lr=0.01)
    step = gc.compile_step(net, F.cross_entropy, optimizer, **options)
    results = []
    schedule = gc.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for i in range(steps):
        x, y = gc.randn(6, 4, dtype=gc.float64), gc.tensor([0, 1, 2, 0, 1, 2])
        if eager and i % 3 != 2:
            with gc.debug(eager=True, stream=False) as log:
                results.append(step(x, y))
            assert "matmul" in [e.op for e in log]
        else:
            results.append(step(x, y))
        results.append(step.last_output)
        if step.last_grad_norm is not None:
            results.append(step.last_grad_norm)
        schedule.step()
    results += [*net.parameters(), *net.buffers(), *(step.ema.parameters() if "ema" in options else ())]
    results += [p.grad for p in net.parameters() if p.grad is not None]
    return [np.array(t.detach().numpy(), np.float64) for t in results], optimizer.step_count, step.state_dict()


@pytest.mark.parametrize("name", OPTIONS)
def test_python_and_compiled_steps_in_turns_are_the_compiled_ones(name):
    expected, count, state = trained(False, **OPTIONS[name])
    result, other_count, other_state = trained(True, **OPTIONS[name])
    assert len(result) == len(expected) and count == other_count
    for a, b in zip(expected, result, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-9)
    assert state["position"] == other_state["position"] and np.array_equal(state["random"], other_state["random"])
    assert {k: v.item() for k, v in state["loss_scale"].items()} == {
        k: v.item() for k, v in other_state["loss_scale"].items()
    }


def test_updates_that_are_not_finite_are_left_out():
    def run(eager):
        net = nn.Linear(2, 1)
        with gc.no_grad():
            net.weight.fill_(1.0)
        step = gc.compile_step(net, nn.MSELoss(), gc.optim.SGD(net.parameters(), lr=0.1), loss_scale="dynamic")
        with gc.debug(eager=eager, ops=False, stream=False):
            step(gc.full((1, 2), 1e20), gc.ones(1, 1))
        return net.weight.detach().numpy().copy(), step.loss_scale

    (a, scale), (b, other) = run(True), run(False)
    assert np.array_equal(a, b) and scale == other == 32768.0


def test_several_losses_and_models_that_compute_theirs():
    def run(eager):
        gc.manual_seed(0)
        a, b = nn.Linear(3, 2), nn.Linear(2, 1)

        def model(x):
            hidden = a(x)
            return {"a": hidden.square().mean(), "b": b(hidden.detach()).square().mean()}

        optimizers = {"a": gc.optim.SGD(a.parameters(), lr=0.1), "b": gc.optim.SGD(b.parameters(), lr=0.2)}
        step = gc.compile_step(model, None, optimizers)
        with gc.debug(eager=eager, ops=False, stream=False):
            losses = step(gc.ones(4, 3))
        results = [*losses.values(), *a.parameters(), *b.parameters()]
        assert not losses["a"].requires_grad
        return [t.detach().numpy().copy() for t in results]

    for x, y in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_stops_name_op_module_and_line_of_a_compiled_step():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    step = gc.compile_step(net, lambda out, y: (out - y).log().mean(), gc.optim.SGD(net.parameters(), lr=0.1))
    before = [p.detach().numpy().copy() for p in net.parameters()]
    with pytest.raises(gc.errors.NonFiniteError, match="made by log") as caught, gc.debug(eager=True, stop="nan"):
        step(gc.zeros(3, 2), gc.ones(3, 2))
    assert "(out - y).log()" in caught.value.origin
    assert all(np.array_equal(a, p.detach().numpy()) for a, p in zip(before, net.parameters(), strict=True))


def test_a_loss_without_a_gradient_is_the_same_error():
    net = nn.Linear(2, 1)
    step = gc.compile_step(net, lambda out, y: y.mean(), gc.optim.SGD(net.parameters(), lr=0.1))
    with pytest.raises(GradientError, match="does not depend on any parameter"), gc.debug(eager=True, stream=False):
        step(gc.ones(1, 2), gc.ones(1))
