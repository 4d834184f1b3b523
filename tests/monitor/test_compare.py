"""compare: models and their compiled forms, layer by layer."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, ShapeError


def network():
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 2))


def test_compiled_models_agree_in_every_layer():
    net = network()
    before = net[1].running_mean.numpy().copy()
    comparison = gc.compare(net, gc.compile(net), gc.randn(6, 4))
    assert (
        comparison
        and comparison.first is None
        and [layer.path for layer in comparison.layers] == ["0", "1", "2", "3", "4", ""]
    )
    assert "all layers agree" in str(comparison) and max(layer.relative for layer in comparison.layers) < 1e-5
    np.testing.assert_array_equal(net[1].running_mean.numpy(), before)
    assert not net[0]._forward_hooks


def test_the_first_layer_that_differs_is_named():
    net = network().eval()
    other = copy.deepcopy(net)
    with gc.no_grad():
        other[4].weight[0, 0] += 1
    comparison = gc.compare(net, gc.compile(other), gc.randn(6, 4))
    assert not comparison and comparison.first is not None and comparison.first.path == "4"
    assert "4 (Linear)" in str(comparison) and "<- differs" in str(comparison)
    assert json.loads(json.dumps(comparison.to_dict()))["first"] == "4"
    assert gc.compare(net, other, gc.randn(6, 4), tolerance=1e6)


def test_modules_that_are_called_twice_and_whole_numbers():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(self.layer(x)).argmax(1)

    net = Twice()
    comparison = gc.compare(net, gc.compile(net), gc.randn(2, 3))
    assert [layer.path for layer in comparison.layers] == ["layer", "layer call 2", ""] and comparison


def test_a_nan_on_one_side_differs():
    net = network().eval()
    other = copy.deepcopy(net)
    with gc.no_grad():
        other[0].bias[0] = float("nan")
    first = gc.compare(net, other, gc.randn(2, 4)).first
    assert first is not None and first.path == "0" and first.absolute == np.inf


def test_wrong_calls():
    with pytest.raises(ArgumentError, match="no module of the same path"):
        gc.compare(network(), lambda x: x, gc.ones(3, 4))
    with pytest.raises(ArgumentError, match="other is a int"):
        gc.compare(network(), 3, gc.ones(3, 4))
    with pytest.raises(ArgumentError, match="no output has a gradient"), gc.no_grad():
        gc.compare(lambda x: x + 1, lambda x: x + 1, gc.ones(3, 4), backward=True)
    with pytest.raises(ShapeError, match=r"returns \[1, 2\] and \[1, 3\]"):
        gc.compare(nn.Sequential(nn.Linear(4, 2)), nn.Sequential(nn.Linear(4, 3)), gc.ones(1, 4))


def training(net, kind="function"):
    optimizer = gc.optim.AdamW(net.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()

    def train(x, y):
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return train, gc.compile(train), gc.compile_step(net, loss_of, optimizer)


def state_of(net):
    tensors = [*net.parameters(), *net.buffers(), *(p.grad for p in net.parameters() if p.grad is not None)]
    return [t.detach().numpy().copy() for t in tensors]


BATCH = (6, 4)


def test_gradients_of_compiled_models():
    net = network()
    x = gc.randn(*BATCH, requires_grad=True)
    before = state_of(net)
    comparison = gc.compare(net, gc.compile(net), x, backward=True)
    names = [v.path for v in comparison.values if v.path.startswith("gradient")]
    assert comparison and names[:2] == ["gradient of model.4.bias", "gradient of model.4.weight"], names
    assert "gradient of input 0" in names and "gradient of model.0.weight" in names
    assert "model.1.running_mean" in [v.path for v in comparison.values]
    assert all(np.array_equal(a, b) for a, b in zip(before, state_of(net), strict=True)) and x.grad is None


class WrongGradient(gc.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2.1


class Scaled(nn.Module):
    def __init__(self, wrong):
        super().__init__()
        self.first, self.wrong, self.last = nn.Linear(4, 4), wrong, nn.Linear(4, 2)

    def forward(self, x):
        x = self.first(x)
        return self.last(WrongGradient.apply(x) if self.wrong else x * 2)


def test_a_wrong_gradient_is_found_behind_equal_layers():
    right, wrong = Scaled(False), Scaled(True)
    wrong.load_state_dict(right.state_dict())
    assert gc.compare(right, gc.compile(wrong), gc.randn(3, 4))
    comparison = gc.compare(right, gc.compile(wrong), gc.randn(3, 4), backward=True)
    assert not comparison and all(layer.is_within for layer in comparison.layers)
    assert comparison.first.path == "gradient of model.first.bias"


@pytest.mark.parametrize("kind", [1, 2])
def test_training_functions_and_steps(kind):
    net = network()
    steps = training(net)
    x, y = gc.randn(*BATCH), gc.tensor([0, 1, 1, 0, 1, 0])
    for step in steps:
        step(x, y)
    before = state_of(net)
    comparison = gc.compare(steps[0], steps[kind], x, y, tolerance=1e-3)
    assert {"0", "1", "4"} <= {layer.path.removeprefix("net.") for layer in comparison.layers}
    values = {v.path: v for v in comparison.values}
    assert values["result"].is_within and values["net.4.weight"].is_within and values["net.1.running_var"].is_within
    assert any("exp_avg" in name for name in values)
    assert all(np.array_equal(a, b) for a, b in zip(before, state_of(net), strict=True))


@pytest.mark.parametrize("kind", [1, 2])
def test_a_step_and_its_own_python_code(kind):
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    step = training(net)[kind]
    x, y = gc.randn(*BATCH), gc.tensor([0, 1, 1, 0, 1, 0])
    comparison = gc.compare(step, step, x, y)
    assert comparison.first is None and comparison.layers, str(comparison)
    assert any(v.path.endswith("2.weight") for v in comparison.values)


def test_a_faulty_step_is_found_with_the_first_value():
    class Doubled(gc.optim.SGD):
        def update(self, param, grad, state, hyper):
            new, state = super().update(param, grad, state, hyper)
            return (new + param * 0.01 if param.ndim == 2 else new), state

    net = nn.Sequential(nn.Linear(4, 2))
    good = gc.compile_step(net, nn.CrossEntropyLoss(), gc.optim.SGD(net.parameters(), lr=0.1))
    bad = gc.compile_step(net, nn.CrossEntropyLoss(), Doubled(net.parameters(), lr=0.1))
    comparison = gc.compare(good, bad, gc.randn(3, 4), gc.tensor([0, 1, 0]))
    assert not comparison and comparison.first.path.endswith("0.weight"), str(comparison)


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(4, 4)
        self.again = self.shared
        self.lists = nn.ModuleList([self.shared, nn.Tanh()])
        self.drop = nn.Dropout(0.5)

    def forward(self, x, *, scale=1.0):
        a = self.shared(x)
        b = self.lists[1](self.again(a)) * scale
        return {"a": a, "pair": (b, self.drop(b), None)}


def test_several_outputs_shared_modules_dropout_and_keywords():
    net = Several()
    for call in (gc.compile(net), copy.deepcopy(net), gc.compile(copy.deepcopy(net))):
        comparison = gc.compare(net, call, gc.randn(3, 4), scale=2.0, backward=True)
        assert comparison, str(comparison)
        paths = [layer.path for layer in comparison.layers]
        assert paths[:2] == ["shared", "shared call 2"] and {"", " output 1", " output 2"} <= set(paths)


def test_arguments_that_are_written_to_are_those_of_each_call():
    class Writes(nn.Module):
        def forward(self, x):
            x += 1
            return x * 2

    net = Writes()
    x = gc.zeros(3)
    assert gc.compare(net, gc.compile(net), x) and not x.numpy().any()


def test_layers_that_one_of_the_two_does_not_call():
    class Skips(nn.Module):
        def __init__(self, skips):
            super().__init__()
            self.a, self.b, self.skips = nn.Linear(2, 2), nn.ReLU(), skips

        def forward(self, x):
            x = self.a(x)
            return x.relu() if self.skips else self.b(x)

    one, two = Skips(False), Skips(True)
    two.load_state_dict(one.state_dict())
    comparison = gc.compare(one, two, gc.randn(2, 2))
    assert not comparison and comparison.first is None and comparison.missing == ["b"] and "only: b" in str(comparison)


def test_functions_without_a_model():
    def f(x):
        return gc.softmax(x, -1), x.exp()

    assert gc.compare(f, gc.compile(f), gc.randn(3, 4))
    comparison = gc.compare(f, lambda x: (gc.softmax(x, -1), x.exp() + 0.1), gc.randn(3, 4))
    assert comparison.first.path == "result[1]"
    x = gc.randn(3, 4, requires_grad=True)
    assert gc.compare(f, gc.compile(f), x, backward=True).values[-1].path == "gradient of input 0"


def test_functions_of_two_models():
    a, b = nn.Linear(3, 3), nn.Linear(3, 1)

    def both(x):
        return b(a(x).tanh())

    comparison = gc.compare(both, gc.compile(both), gc.randn(2, 3), backward=True)
    assert comparison and [layer.path for layer in comparison.layers] == ["a", "b"]
    assert {"gradient of a.weight", "gradient of b.weight"} <= {v.path for v in comparison.values}


def test_models_that_functions_reach_through_objects():
    class Kit:
        def __init__(self):
            gc.manual_seed(0)
            self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
            self.opt = gc.optim.SGD(self.net.parameters(), lr=0.1)
            self.schedule = gc.optim.lr_scheduler.StepLR(self.opt, 1)

    def train_of(kit):
        def train(x):
            kit.opt.zero_grad()
            loss = kit.net(x).sum()
            loss.backward()
            kit.opt.step()
            return loss

        return train

    one, other = Kit(), Kit()
    x = gc.randn(5, 3)
    assert gc.compare(train_of(one), gc.compile(train_of(other)), x)

    class Sum(nn.Module):
        def forward(self, y):
            return y.sum()

    step = gc.compile_step(one.net, Sum(), one.opt)
    comparison = gc.compare(train_of(one), step, x)
    assert comparison and [layer.path for layer in comparison.layers] == ["0", "1", "2", ""], str(comparison)
    other.net[1].forward = lambda x: gc.tanh(x) * 1.01
    comparison = gc.compare(train_of(one), gc.compile(train_of(other)), x)
    assert comparison.first.path == "1" and comparison.first.module == "Tanh", str(comparison)


@pytest.mark.parametrize("tolerance", [-1, "1e-3", float("nan")])
def test_tolerances_are_numbers(tolerance):
    net = nn.Linear(2, 1)
    with pytest.raises(ArgumentError, match="tolerance must be a number of at least 0"):
        gc.compare(net, net, gc.ones(1, 2), tolerance=tolerance)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x):
        def step(h, v):
            h = gc.tanh(self.cell(h) + v)
            return h, h

        return self.out(gc.scan(step, gc.zeros(x.shape[1], 3), x)[0])


def test_layers_in_steps_of_loops_are_not_seen():
    net = Recurrent()
    comparison = gc.compare(net, gc.compile(net), gc.randn(4, 2, 3), backward=True)
    assert comparison and comparison.unseen == ["cell"] == comparison.to_dict()["unseen"]
    assert [layer.path for layer in comparison.layers] == ["out", ""]
    assert "not seen, inside of loops or branches: cell" in str(comparison)
    assert not gc.compare(net, net, gc.randn(4, 2, 3)).unseen
