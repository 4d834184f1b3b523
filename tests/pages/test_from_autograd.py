"""Pictures of autograd graphs: every recorded operation, leaves by name, groups by the parameters they read."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.pages.from_autograd import autograd_diagram
from graphc.tensors import repeated


@pytest.fixture(autouse=True)
def operations_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that earlier tests have called often are programs with one operation for all that they compute."""
    monkeypatch.setattr(repeated, "is_watched", lambda: True)


def test_operations_and_leaves():
    x = gc.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).exp().sum()
    diagram = autograd_diagram([y])
    assert [b.title for b in diagram.boxes] == ["leaf", "Mul", "Exp", "Sum", "result"]
    assert diagram.boxes[0].detail == "f32[2]"
    assert diagram.boxes[3].kind == "reduce"
    assert diagram.lines == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_parameters_are_named_and_group_operations():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)))
    diagram = autograd_diagram([model(gc.ones(5, 3)).sum()], model)
    homes = {b.title: diagram.homes[i].path for i, b in enumerate(diagram.boxes)}
    assert homes["0.weight"] == ("0",)
    assert homes["2.2.bias"] == ("2", "2")
    assert homes["Tanh"] == ("2",)
    assert homes["Where"] == ()
    matmuls = [diagram.homes[i].path for i, b in enumerate(diagram.boxes) if b.title == "Matmul"]
    assert matmuls == [("0",), ("2", "0"), ("2", "2")]


def test_an_operation_without_gradient_of_its_input_is_not_taken_for_a_parameter():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 3))
    diagram = autograd_diagram([model(gc.ones(1, 1, 8, 8)).sum()], model)
    assert [diagram.homes[i].path for i, b in enumerate(diagram.boxes) if b.title == "Where"] == [()]


def test_several_results_and_custom_functions():
    class Double(gc.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = gc.tensor([1.0], requires_grad=True)
    y = Double.apply(x)
    diagram = autograd_diagram([y, y.exp(), gc.zeros(1)])
    titles = [b.title for b in diagram.boxes]
    assert "DoubleBackward" in titles
    assert titles[-2:] == ["result 0", "result 1"]


def test_tensors_without_a_graph():
    with pytest.raises(ArgumentError, match="no autograd graph"):
        autograd_diagram([gc.zeros(1)])
