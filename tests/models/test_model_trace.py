"""Graphs in files: names of outputs, nesting, entries."""

from __future__ import annotations

import pytest

from graphc.models.model_trace import output_names


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
