"""The base of metrics: sums in buffers, which steps add to, resets clear, and state dictionaries omit."""

from __future__ import annotations

import copy
import math

import pytest

import graphc as gc
from graphc.distributed import group, threads
from graphc.metrics import Accuracy, Mean, Metric
from graphc.nn import functional as F


def test_a_mean_weighs_by_samples():
    mean = Mean()
    mean(gc.tensor(1.0), 3)
    mean(gc.tensor(5.0), 1)
    assert mean.compute() == 2.0


def test_without_samples_a_mean_is_nan():
    assert math.isnan(Mean().compute()) and math.isnan(Accuracy().compute())


def test_processes_add_their_sums():
    def run(_: int) -> float:
        mean = Mean()
        mean(gc.tensor(float(group().rank)), 1 + 3 * group().rank)
        return mean.compute()

    assert threads.run(2, run) == [0.8, 0.8]


def test_a_training_step_adds_to_a_metric_and_takes_no_gradient_through_it():
    gc.manual_seed(0)
    net = gc.nn.Linear(4, 3)
    accuracy, right = Accuracy(), 0

    def loss(output: gc.Tensor, target: gc.Tensor) -> gc.Tensor:
        accuracy(output, target)
        return F.cross_entropy(output, target)

    step = gc.compile_step(net, loss, gc.optim.SGD(net.parameters(), lr=0.1))
    for _ in range(4):
        x, target = gc.randn(6, 4), gc.randint(0, 3, (6,))
        right += int((net(x).argmax(1) == target).sum())
        step(x, target)
    assert accuracy.compute() == right / 24 and len(step.plan()) == 1
    assert not accuracy.correct.requires_grad


def test_models_do_not_save_metrics_that_they_hold():
    class Net(gc.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.accuracy = gc.nn.Linear(2, 2), Accuracy()

    assert set(Net().state_dict()) == {"layer.weight", "layer.bias"}


def test_copies_are_independent():
    mean = Mean()
    mean(gc.tensor(1.0), 1)
    other = copy.deepcopy(mean)
    other(gc.tensor(3.0), 1)
    assert mean.compute() == 1.0 and other.compute() == 2.0


def test_a_metric_without_its_methods_says_which():
    with pytest.raises(NotImplementedError, match="Metric does not define update"):
        Metric()(gc.ones(1), gc.ones(1))
    with pytest.raises(NotImplementedError, match="Metric does not define value_of"):
        Metric().compute()
