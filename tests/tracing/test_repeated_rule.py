"""Update rules in traces: copies for parameters of equal types are what the rule itself would append."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc import nn
from graphc.ir.graph.text import print_graph
from graphc.nn import functional as F
from graphc.tracing.repeated_rule import RepeatedRule
from tools.cases import step_graph

RULES = [n for n in gc.optim.__all__ if isinstance(getattr(gc.optim, n), type) and n not in ("Optimizer", "LBFGS")]
RULES = [n for n in RULES if issubclass(getattr(gc.optim, n), gc.optim.Optimizer)]


def traced(make):
    """The graph of a step of three layers, two of which have equal shapes."""
    gc.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    return step_graph(net, F.mse_loss, make(net), gc.rand(3, 4), gc.rand(3, 2))


def described(graph):
    return print_graph(graph), [node.location for node in graph.nodes()]


@pytest.fixture(autouse=True)
def _process_without_tangents(monkeypatch):
    """Hide marks of earlier tests: a process that has used tangents or volatile tensors does not copy rules."""
    for name in ("USED", "VOLATILE"):
        monkeypatch.setattr(f"graphc.tracing.repeated_rule.{name}", [False])


def check_copies(monkeypatch, graph_of):
    """Compare the graph with that of a rule which runs for each parameter."""
    descriptions = []
    for runs_for_each in (False, True):
        if runs_for_each:
            monkeypatch.setattr(RepeatedRule, "_record", lambda *_: None)
        descriptions.append(described(graph_of()))
    assert descriptions[0] == descriptions[1]


@pytest.mark.parametrize("name", RULES)
def test_copies_are_the_nodes_of_the_rule(name, monkeypatch):
    def make(net):
        params = [p for p in net.parameters() if p.ndim == 2] if name == "Muon" else net.parameters()
        return getattr(gc.optim, name)(params, lr=1e-2)

    check_copies(monkeypatch, lambda: traced(make))


def test_groups_have_their_own_numbers(monkeypatch):
    def make(net):
        return gc.optim.AdamW([{"params": [net[0].weight], "weight_decay": 0.1}, {"params": [net[1].weight]}])

    check_copies(monkeypatch, lambda: traced(make))


def test_a_rule_runs_once_for_each_combination_of_types(monkeypatch):
    runs = []
    original = gc.optim.Adam.update

    def update(self, param, grad, state, hyper):
        runs.append(tuple(param.shape))
        return original(self, param, grad, state, hyper)

    update.__module__ = original.__module__
    monkeypatch.setattr(gc.optim.Adam, "update", update)
    traced(lambda net: gc.optim.Adam(net.parameters()))
    assert sorted(runs) == [(2,), (2, 4), (4,), (4, 4)]


def test_a_rule_of_a_user_is_not_copied(monkeypatch):
    def refuse(*_):
        raise AssertionError("a rule of a user may do anything, such as count its calls")

    class Step(gc.optim.SGD):
        def update(self, param, grad, state, hyper):
            return super().update(param, grad, state, hyper)

    monkeypatch.setattr(RepeatedRule, "_record", refuse)
    traced(lambda net: Step(net.parameters(), lr=0.1))
    with pytest.raises(AssertionError, match="a rule of a user"):
        traced(lambda net: gc.optim.SGD(net.parameters(), lr=0.1))


def test_one_gradient_of_two_parameters_is_read_by_each(monkeypatch):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(gc.ones(2)), nn.Parameter(gc.ones(2))

        def forward(self, x):
            return x * (self.a + self.b)

    def graph():
        net = Twice()
        return step_graph(net, F.mse_loss, gc.optim.Adam(net.parameters()), gc.ones(3, 2), gc.zeros(3, 2))

    check_copies(monkeypatch, graph)
