"""Graphs in files: names of outputs, nesting, entries."""

from __future__ import annotations

import pytest

import graphc as gc
from graphc import nn
from graphc.models.model_trace import entry_spec, output_names, snapshot


@pytest.mark.parametrize(
    ("structure", "names"),
    [
        (0, ["output"]),
        ({"tuple": [0, 1]}, ["output.0", "output.1"]),
        ({"list": [{"tuple": [1]}, 0]}, ["output.1", "output.0.0"]),
        ({"dict": [["a", 0], ["b", {"dict": [["c", 1]]}]]}, ["a", "b.c"]),
        ({"tuple": [None, 0]}, ["output.1"]),
    ],
)
def test_output_names(structure: object, names: list[str]):
    assert output_names(structure, len(names)) == names


def test_entries_name_the_classes_of_modules_that_made_nodes():
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(), nn.Sequential(nn.Linear(3, 2))).eval()
    graph = snapshot(model, [gc.zeros(1, 2)]).graph
    assert graph.classes["1"] == "Dropout"
    assert entry_spec("forward", graph).classes == {"0": "Linear", "2": "Sequential", "2.0": "Linear"}
    two = [nn.Linear(2, 2), nn.Linear(2, 2)]

    def function(x):
        return two[1](two[0](x))

    assert entry_spec("forward", snapshot(function, [gc.zeros(1, 2)]).graph).classes == {}
