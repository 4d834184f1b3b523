"""Reasons for compiling again: one per guard, and silence where nobody asks."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls.bindings import MOST_REWRITES
from graphc.calls.recompile_reasons import structure_differences
from graphc.nn import functional as F
from graphc.tensors.structure import flatten


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.drop = nn.Dropout()

    def forward(self, x, scale=1.0):
        return self.drop(self.fc(x)) * scale


def floats(*shape: int) -> gc.Tensor:
    return gc.tensor(np.ones(shape, np.float32))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The messages since the last call, with explanations on."""
    monkeypatch.setenv("GRAPHC_EXPLAIN_RECOMPILES", "1")
    caplog.set_level(logging.WARNING, "graphc")

    def take() -> list[str]:
        results = [r.getMessage() for r in caplog.records if r.name == "graphc.recompiles"]
        caplog.clear()
        return results

    return take


def test_each_guard_of_a_function(told: Callable[[], list[str]]):
    model = Net().eval()
    compiled = gc.compile(model)
    compiled(floats(2, 4))
    assert told() == []
    compiled(floats(5, 4))
    assert told() == ["Net is compiled again (number 2):\n  shape of tensor 0: [2, 4] -> [5, 4]"]
    model.drop.train()
    compiled(floats(5, 4))
    assert told() == ["Net is compiled again (number 3):\n  training flag of drop: False -> True"]
    model.eval()
    with gc.no_grad():
        compiled(floats(5, 4))
    assert told() == ["Net is compiled again (number 4):\n  grad mode: on -> off"]
    compiled(floats(2, 4))
    assert told() == []


def test_static_arguments(told: Callable[[], list[str]]):
    compiled = gc.compile(Net().eval())
    for scale in (2.0, 3.0, 2.0):
        compiled(floats(2, 4), scale=scale)
    assert told() == [
        "Net is compiled again (number 2):\n  number argument 1.scale: 2.0 -> 3.0; now passed by each call"
    ]


def test_parameters(told: Callable[[], list[str]]):
    model = Net().eval()
    compiled = gc.compile(model)
    compiled(floats(2, 4))
    model.fc.weight.requires_grad_(False)
    compiled(floats(2, 4))
    assert told() == ["Net is compiled again (number 2):\n  param 'fc.weight': requires_grad True -> False"]


def test_modules(told: Callable[[], list[str]]):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    compiled = gc.compile(model)
    compiled(floats(2, 4))
    model[1] = nn.Tanh()
    compiled(floats(2, 4))
    (message,) = told()
    assert message.endswith("\n  modules: a child was added, removed or replaced")


def test_steps(told: Callable[[], list[str]]):
    model = nn.Linear(4, 3)
    step = gc.compile_step(model, F.mse_loss, gc.optim.SGD(model.parameters(), lr=0.1))
    step(floats(2, 4), floats(2, 3))
    step(floats(6, 4), floats(6, 3))
    (message,) = told()
    assert message.splitlines()[1:] == [
        "  shape of tensor 0: [2, 4] -> [6, 4]",
        "  shape of tensor 1: [2, 3] -> [6, 3]",
    ]


def test_silence(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GRAPHC_EXPLAIN_RECOMPILES", raising=False)
    compiled = gc.compile(Net().eval())
    compiled(floats(2, 4))
    compiled(floats(3, 4))
    assert not [r for r in caplog.records if r.name == "graphc.recompiles"]


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ([1, 2], [1, 3], ["static argument 1: 2 -> 3"]),
        ({"a": 1}, {"b": 1}, ["argument : a dict with a -> a dict with b"]),
        ([1], [1, 2], ["argument : a list of 1 -> a list of 2"]),
        ([1, "x"], [2, "y"], ["static argument 0: 1 -> 2", "static argument 1: 'x' -> 'y'"]),
        ((1, (2,)), (1, (3.0,)), ["static argument 1.0: 2 -> 3.0"]),
    ],
)
def test_structures(old: object, new: object, expected: list[str]):
    assert structure_differences(flatten(old)[1], flatten(new)[1]) == expected
    assert structure_differences(flatten(old)[1], flatten(old)[1]) == []


def test_counts_of_tensors():
    assert structure_differences(1, 2) == ["arguments: 1 tensors -> 2 tensors"]


def test_weights_that_can_change_unseen(told: Callable[[], list[str]]):
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 48))
    compiled = gc.compile(model)
    with gc.no_grad():
        compiled(floats(32, 64))
        model[0].weight.detach().numpy()[0] = 2
        compiled(floats(32, 64))
        (message,) = told()
        assert "the memory of a parameter or buffer was handed out" in message
        for _ in range(MOST_REWRITES + 2):
            model[1].weight.mul_(2)
            compiled(floats(32, 64))
    (message,) = told()
    assert "parameters or buffers are written to between nearly all calls" in message
