"""Averages of weights in compiled steps."""

from __future__ import annotations

import copy

import pytest

import graphc
from graphc import nn, optim
from graphc.errors import ArgumentError
from graphc.nn import functional as F
from graphc.optim.swa_utils import AveragedModel, get_ema_avg_fn
from tests.steps.step_loops import batch, classifier, difference


@pytest.mark.parametrize("options", [{}, {"avg_fn": get_ema_avg_fn(0.8)}, {"use_buffers": True}])
def test_an_averaged_model_may_be_given(options):
    model = classifier()
    twin = copy.deepcopy(model)
    averages = AveragedModel(model, **options), AveragedModel(twin, **options)
    optimizers = optim.SGD(model.parameters(), lr=0.1), optim.SGD(twin.parameters(), lr=0.1)
    step = graphc.compile_step(twin, F.cross_entropy, optimizers[1], ema=averages[1])
    for i in range(4):
        graphc.manual_seed(i)
        F.cross_entropy(model(batch(i)[0]), batch(i)[1]).backward()
        optimizers[0].step()
        optimizers[0].zero_grad()
        averages[0].update_parameters(model)
        graphc.manual_seed(i)
        step(*batch(i))
    assert step.ema is averages[1] and difference(*averages) < 1e-12


def test_what_the_forward_pass_does_not_use_is_taken_as_it_is_at_each_call():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(2, 1), nn.Linear(2, 1)
            self.register_buffer("number", graphc.zeros(2))

        def forward(self, x):
            return self.used(x).sum()

    net = Net()
    step = graphc.compile_step(net, None, optim.SGD(net.used.parameters(), lr=0.1), ema=0.5)
    for i in range(3):
        net.number.fill_(float(i))
        with graphc.no_grad():
            net.unused.weight.fill_(float(i))
        step(graphc.ones(1, 2))
        assert step.ema.module.number.tolist() == [i, i]
    assert step.ema.module.unused.weight.tolist() == [[1.25, 1.25]] and len(step.graphs) == 1


def test_a_compiled_model_is_averaged_as_the_model():
    net = nn.Linear(2, 1)
    step = graphc.compile_step(graphc.compile(net), lambda y: y.sum(), optim.SGD(net.parameters(), lr=0.1), ema=0.9)
    step(graphc.ones(1, 2))
    assert step.ema.module.weight.equal(net.weight) and type(step.ema.module) is nn.Linear


def test_what_cannot_be_averaged_is_refused():
    net = nn.Linear(2, 1)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    with pytest.raises(ArgumentError, match="ema is 'yes'"):
        graphc.compile_step(net, F.mse_loss, optimizer, ema="yes")
    with pytest.raises(ArgumentError, match="a function of 0 of them"):
        graphc.compile_step(lambda x: x, F.mse_loss, optimizer, ema=0.9)
