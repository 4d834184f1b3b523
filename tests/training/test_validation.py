"""Validation: means over all samples in evaluation mode, of every kind of step, and measures that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.nn import functional as F
from graphc.training.validation import Validation, column_value

X = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
Y = X.sum(1, keepdims=True)
BATCHES = [(gc.tensor(X[:4]), gc.tensor(Y[:4])), (gc.tensor(X[4:]), gc.tensor(Y[4:]))]


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 1))


def step_of(model: Any, loss: Any, optimizer: Any = None) -> Any:
    return gc.compile_step(model, loss, optimizer or gc.optim.SGD(model.parameters(), lr=0.1))


def test_means_count_samples_without_dropout():
    model = net()
    validation = Validation(step_of(model, F.mse_loss), BATCHES, {"mae": gc.metrics.MAE()})
    values = [validation.measure(["loss"]) for _ in range(2)]
    output = model.eval()(gc.tensor(X)).detach().numpy()
    wanted = {"valid.loss": ((output - Y) ** 2).mean(), "valid.mae": np.abs(output - Y).mean()}
    assert values == [pytest.approx(wanted, rel=1e-5)] * 2


def test_weights_change_between_measures():
    model = net()
    step = step_of(model, F.mse_loss)
    validation = Validation(step, BATCHES, {})
    first = validation.measure(["loss"])["valid.loss"]
    for _ in range(50):
        step(*BATCHES[0])
    model.eval()
    assert validation.measure(["loss"])["valid.loss"] == pytest.approx(
        float(F.mse_loss(model(gc.tensor(X)), gc.tensor(Y))), rel=1e-5
    )
    assert first != validation.measure(["loss"])["valid.loss"]


class Complete(nn.Module):
    """A model that computes its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x: Any, y: Any) -> Any:
        output = self.layer(x)
        return output, F.mse_loss(output, y)


def test_a_model_that_computes_its_loss():
    model = Complete()
    step = step_of(model, None)
    loss = float(F.mse_loss(model.layer(gc.tensor(X)), gc.tensor(Y)))
    assert Validation(step, BATCHES, {}).measure(["loss"])["valid.loss"] == pytest.approx(loss, rel=1e-5)
    with pytest.raises(ArgumentError, match="has no loss function"):
        Validation(step, BATCHES, {"mae": gc.metrics.MAE()})


def test_losses_by_name():
    model = nn.Linear(3, 1)
    optimizer = {"a": gc.optim.SGD([model.weight], lr=0.1), "b": gc.optim.SGD([model.bias], lr=0.1)}
    step = step_of(model, lambda output, y: {"a": F.mse_loss(output, y), "b": output.mean()}, optimizer)
    found = Validation(step, BATCHES, {}).measure(["a", "b"])
    assert found["valid.b"] == pytest.approx(float(model(gc.tensor(X)).mean()), rel=1e-5)


def test_arrays_are_no_columns():
    assert column_value("a", np.float32(2)) == column_value("a", gc.tensor(2)) == 2.0
    with pytest.raises(ArgumentError, match=r"a is an array \[2\]"):
        column_value("a", gc.ones(2))
