"""debug: a log of modules that stops at the first NaN, in eager mode and in compiled code."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, NonFiniteError
from graphc.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.last = nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.block(gc.tanh(self.first(x))))


ORDER = ["first", "block.0", "block.1", "block", "last", ""]


@pytest.mark.parametrize("compiled", [False, True])
def test_the_log_names_modules_classes_and_ranges(compiled):
    gc.manual_seed(0)
    net = Net()
    model = gc.compile(net) if compiled else net
    with gc.no_grad(), gc.debug(net) as log:
        out = model(gc.ones(3, 4))
    assert [e.path for e in log] == ORDER
    assert [e.module for e in log][:3] == ["Linear", "Linear", "ReLU"]
    last = log.events[-1]
    assert last.outputs[0].shape == (3, 2) and last.outputs[0].dtype == "f32"
    np.testing.assert_allclose(last.outputs[0].high, out.max().item(), rtol=1e-5)
    assert "block.1 (ReLU): f32[3,8]" in str(log) and all(e.seconds >= 0 for e in log)
    with gc.no_grad():
        model(gc.ones(3, 4))
    assert len(log.events) == len(ORDER), "behind the block nothing is logged"


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_logged(compiled):
    net = Net()
    model = gc.compile(net) if compiled else net
    with gc.debug(net, backward=True) as log:
        model(gc.ones(3, 4, requires_grad=True)).sum().backward()
    assert [e.path for e in log if e.kind == "backward"] == ["last", "block.1", "block.0", "block", "first", ""]


def spoil_weight(net, rng):
    parameter = [p for n, p in net.named_parameters() if n.startswith(("first", "block", "last"))][rng.integers(6)]
    with gc.no_grad():
        parameter.view(-1)[int(rng.integers(parameter.numel()))] = float(rng.choice([np.nan, np.inf, -np.inf]))
    return next(n for n, p in net.named_parameters() if p is parameter).rpartition(".")[0]


@pytest.mark.parametrize("compiled", [False, True])
def test_injected_numbers_are_found_where_they_are(compiled):
    rng = np.random.default_rng(0)
    for _ in range(20 if not compiled else 6):
        net = Net()
        place = spoil_weight(net, rng)
        model = gc.compile(net) if compiled else net
        with gc.no_grad(), pytest.raises(NonFiniteError) as caught, gc.debug(net, stop_at_nan=True):
            model(gc.rand(3, 4) + 0.5)
        assert str(caught.value).startswith(f"{place} (Linear) made f32[3,") and "inputs: f32[3," in str(caught.value)


def test_the_first_nan_of_a_training_step():
    class Loss(nn.Module):
        def forward(self, x):
            return gc.log(x - 1).sum()

    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), Loss())
    train = gc.compile(lambda x: net(x))
    with pytest.raises(NonFiniteError, match=r"2 \(Loss\) made"), gc.debug(net, stop_at_nan=True):
        train(gc.zeros(1, 2))


def test_models_that_are_well_raise_nothing():
    net = Net()
    compiled = gc.compile(net)
    optimizer = gc.optim.SGD(net.parameters(), lr=0.1)
    with gc.debug(net, stop_at_nan=True, backward=True, limit=10) as log:
        for _ in range(5):
            optimizer.zero_grad()
            F.cross_entropy(compiled(gc.randn(3, 4)), gc.tensor([0, 1, 0])).backward()
            optimizer.step()
    assert len(log.events) == 10


def test_stopping_at_a_module():
    net, seen = Net(), []
    stop = lambda module, inputs, outputs: seen.append((type(module).__name__, tuple(inputs[0].shape)))  # noqa: E731
    with gc.no_grad(), gc.debug(net, stop_at="block.1", on_stop=stop):
        net(gc.ones(3, 4))
        gc.compile(net)(gc.ones(5, 4))
    assert seen == [("ReLU", (3, 8)), ("ReLU", (5, 8))]
    with pytest.raises(ArgumentError, match=r"there is no module 'block\.7'"):
        gc.debug(net, stop_at="block.7")


def test_without_a_model_all_modules_are_logged():
    with gc.no_grad(), gc.debug() as log:
        nn.Sequential(nn.Linear(2, 2), nn.Tanh())(gc.ones(1, 2))
    assert [e.module for e in log] == ["Linear", "Tanh", "Sequential"] and log.events[0].path == ""
