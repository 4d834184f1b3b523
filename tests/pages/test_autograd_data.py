"""Autograd graphs as data: operations, leaves, and the modules that they belong to."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.pages.autograd_data import autograd_records
from graphc.tensors import repeated


@pytest.fixture(autouse=True)
def operations_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that earlier tests have called often are programs with one operation for all that they compute."""
    monkeypatch.setattr(repeated, "is_watched", lambda: True)


def test_operations_and_leaves():
    x = gc.tensor([1.0, 2.0], requires_grad=True)
    records = autograd_records([(x * x).exp().sum()])
    assert [r["op"] for r in records] == ["leaf", "Mul", "Exp", "Sum", "result"]
    assert records[0]["results"][0][1] == "f32[2]" and records[3]["kind"] == "reduce"
    makers = {name: r["op"] for r in records for name, _ in r["results"]}
    assert [[makers[o] for o in r["operands"]] for r in records] == [[], ["leaf", "leaf"], ["Mul"], ["Exp"], ["Sum"]]


def test_parameters_are_named_and_group_operations():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)))
    records = autograd_records([model(gc.ones(5, 3)).sum()], model)
    weights = [r["op"] for r in records if r.get("weights")]
    assert {"0.weight", "2.2.bias"} <= set(weights)
    paths = {r["op"]: r["path"] for r in records}
    assert paths["Tanh"] == ["2"] and paths["Where"] == []
    assert [r["path"] for r in records if r["op"] == "Matmul"] == [["0"], ["2", "0"], ["2", "2"]]


def test_an_operation_without_gradient_of_its_input_is_not_taken_for_a_parameter():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 3))
    records = autograd_records([model(gc.ones(1, 1, 8, 8)).sum()], model)
    assert [r["path"] for r in records if r["op"] == "Where"] == [[]]


def test_several_results_and_custom_functions():
    class Double(gc.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = Double.apply(gc.tensor([1.0], requires_grad=True))
    titles = [r["op"] for r in autograd_records([y, y.exp(), gc.zeros(1)])]
    assert "Double" in titles and titles[-2:] == ["result 0", "result 1"]


def test_tensors_without_a_graph():
    with pytest.raises(ArgumentError, match="no autograd graph"):
        autograd_records([gc.zeros(1)])
