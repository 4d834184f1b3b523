"""Functions that lines call: several nodes in a row get the name that the user wrote."""

from __future__ import annotations

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from graphc.pages.called_functions import called_functions


def names(function, *examples) -> list[str]:
    return [called.name for called in called_functions(gc.trace(function, *examples)).values()]


def test_functions_and_methods():
    assert names(lambda x: F.silu(x), gc.zeros(3)) == ["silu"]

    def method(x):
        return x.relu().flatten()

    graph = gc.trace(method, gc.zeros(2, 3))
    (called,) = called_functions(graph).values()
    assert called.name == "relu"
    assert [n.op.name for n in graph.nodes() if n.results and called.has(n.op)] == ["le", "where"]


def test_operators_on_the_line_stand_beside_the_function():
    def function(x, y):
        return F.relu(x + y)

    graph = gc.trace(function, gc.zeros(3), gc.zeros(3))
    (called,) = called_functions(graph).values()
    assert called.name == "relu"
    assert [n.op.name for n in graph.nodes() if n.operands and not called.has(n.op)] == ["add"]


def test_one_op_and_several_functions_have_no_name():
    assert names(lambda x: x.exp(), gc.zeros(3)) == []

    def two(x):
        return F.relu(F.silu(x))

    assert names(two, gc.zeros(3)) == []


def test_layers_have_no_lines_of_their_own():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 4)

        def forward(self, x):
            return F.log_softmax(self.fc(x), 1)

    graph = gc.trace(Net(), gc.zeros(2, 3))
    assert {(location.module, called.name) for location, called in called_functions(graph).items()} == {
        ("", "log_softmax")
    }


def test_a_view_before_a_layer_on_the_same_line():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 4)

        def forward(self, x):
            return F.log_softmax(self.fc(x.flatten(1)), 1)

    assert names(Net(), gc.zeros(2, 3, 2)) == ["log_softmax"]
