"""What all streams share: states by name, names of inputs, and copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError
from graphc.streams.running import Named, Running, StepModule, identifier


class Counter(StepModule):
    """Adds up what it gets."""

    def __init__(self) -> None:
        super().__init__({"total.of": np.zeros(2, np.float32)})

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        total = self.buffer("total.of")
        total.copy_(total + x)
        return total * 1


def test_states_are_read_put_back_and_reset():
    running = Running(Counter())
    running.compiled(gc.ones(2))
    running.compiled(gc.ones(2))
    kept = running.state
    assert kept["total.of"].tolist() == [2, 2]
    running.reset()
    assert running.state["total.of"].tolist() == [0, 0]
    running.state = kept
    assert running.compiled(gc.ones(2)).tolist() == [3, 3]
    assert running.copied().buffer("total.of").tolist() == [0, 0]


@pytest.mark.parametrize("arrays", [{}, {"other": np.zeros(2)}, None])
def test_arrays_that_are_not_the_states_are_refused(arrays: Any):
    running = Running(Counter())
    with pytest.raises(ArgumentError, match="not the states"):
        running.state = arrays


@pytest.mark.parametrize("array", [np.zeros(3, np.float32), np.zeros(2)])
def test_states_have_their_shapes_and_types(array: np.ndarray):
    running = Running(Counter())
    with pytest.raises(ArgumentError, match=r"state total.of is float32\[2\], got float(64\[2|32\[3)\]"):
        running.state = {"total.of": array}


def test_functions_take_their_arguments_by_other_names():
    named = Named(lambda a, b: a - b, ["x", "for"])
    assert named(3, 1) == named(3, input_for=1) == named(input_for=1, x=3) == 2
    assert identifier("a/b:0") == "a_b_0" and identifier("0") == "input_0" and identifier("class") == "input_class"
    assert Named.bound(nn.Linear(1, 1).forward, (4,), {}) == {"input": 4}
    with pytest.raises(ArgumentError, match="do not fit"):
        Named.bound(nn.Linear(1, 1).forward, (4, 5), {})
