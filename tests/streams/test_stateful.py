"""Models that take their state and return the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError


class Cell(nn.Module):
    """A recurrent cell with two states, which returns a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.next = nn.Linear(5, 3)

    def forward(self, x: gc.Tensor, h: gc.Tensor, count: gc.Tensor) -> dict[str, Any]:
        new = self.next(gc.cat([x, h], 1)).tanh()
        return {"y": new.sum(1) + count, "next_h": new, "next_count": count + 1}


STATES = {"h": "next_h", "count": "next_count"}


def cell() -> tuple[Cell, tuple[gc.Tensor, ...]]:
    gc.manual_seed(0)
    return Cell(), (gc.zeros(1, 2), gc.ones(1, 3), gc.zeros(1))


def test_states_stay_inside():
    model, (x, h, count) = cell()
    stream = gc.stream(model, x, h, count, stateful=STATES)
    other = stream.fresh()
    for number in range(4):
        x = gc.from_numpy(np.random.default_rng(number).standard_normal((1, 2)).astype(np.float32))
        wanted = model(x, h, count)
        h, count = wanted["next_h"], wanted["next_count"]
        found = stream(x)
        assert {*found} == {"y"}
        np.testing.assert_allclose(found["y"].detach().numpy(), wanted["y"].detach().numpy(), atol=1e-6)
    assert stream.state["count"].tolist() == [4] and other.state["count"].tolist() == [0]
    stream.reset()
    assert stream.state["h"].tolist() == [[1, 1, 1]]


def test_names_of_a_file_are_those_of_its_outputs(tmp_path: Path):
    pytest.importorskip("onnx")
    model, examples = cell()
    gc.export(model, *examples, path=tmp_path / "cell.onnx")
    read = gc.from_onnx(tmp_path / "cell.onnx")
    outputs = [port.name for port in read.graph.outputs]
    stream = gc.stream(read, *examples, stateful={"h": outputs[1], "count": outputs[2]})
    expected = model(*examples)["y"].detach().numpy()
    np.testing.assert_allclose(stream(examples[0]).detach().numpy(), expected, atol=1e-6)
    library = gc.build_library(stream.module, examples[0], path=tmp_path / "cell.so", emit=("so",), realtime=True)
    assert library.context_bytes > 64 and library.realtime["run"].outside == ()


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ({"g": "next_h"}, "no input 'g'"),
        ({"h": "other"}, "no output 'other'"),
        ({"h": 7}, "no output 7"),
        ({"h": "y"}, r"input h is f32\[1, 3\], and output y is f32\[1\]"),
    ],
)
def test_names_that_do_not_fit_are_refused(states: dict[str, str | int], message: str):
    model, examples = cell()
    with pytest.raises(ArgumentError, match=message):
        gc.stream(model, *examples, stateful=states)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"stateful": ["h"]}, "stateful is list"), ({"step": 2}, "takes its states has no dimension of time")],
)
def test_other_arguments_are_refused(arguments: dict[str, Any], message: str):
    model, examples = cell()
    with pytest.raises(ArgumentError, match=message):
        gc.stream(model, *examples, **{"stateful": {"h": "next_h"}, **arguments})
