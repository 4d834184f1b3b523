"""Sizes: from shapes of inputs, each once, by arithmetic that is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.base.sizes.size import at, smaller, terms
from graphc.errors import UnsupportedError
from graphc.interop.onnx_export.sizes import Sizes, same, stated


class Run:
    """Operators on arrays as they are added."""

    def __init__(self, shapes: dict[str, tuple[Any, ...]], known: dict[str, tuple[int, ...]]):
        self.values: dict[str, np.ndarray] = {}
        self.ops: list[str] = []
        self.known = known
        self.sizes = Sizes(self.add, self.constant, shapes.items())

    def constant(self, array: np.ndarray) -> str:
        name = f"c{array.tolist()}"
        self.values[name] = array
        return name

    def add(self, op: str, *inputs: str, start: int = 0, end: int = 0, axis: int = 0) -> str:
        name = f"{op}{len(self.ops)}"
        self.ops.append(op)
        if op == "Shape":
            self.values[name] = np.array(self.known[inputs[0]][start:end])
            return name
        a = [self.values[i] for i in inputs]
        how = {
            "Add": lambda: a[0] + a[1],
            "Sub": lambda: a[0] - a[1],
            "Mul": lambda: a[0] * a[1],
            "Mod": lambda: np.mod(a[0], a[1]),
            "Div": lambda: np.trunc(a[0] / a[1]).astype(np.int64),
            "Concat": lambda: np.concatenate(a),
            "Max": lambda: np.maximum(a[0], a[1]),
        }
        self.values[name] = how[op]()
        return name


BATCH, TIME = gc.Dim("batch"), gc.Dim("time", min=0)
CALL = {"x": (5, 7), "y": (2 * 7 + 1, 3)}


def dimension(size: Any) -> Any:
    return terms(size)[0][0][0][0]


@pytest.mark.parametrize(
    "size",
    [
        BATCH,
        BATCH * TIME,
        3 * BATCH + TIME - 2,
        (TIME - 9) // 4,
        (BATCH + 1) // TIME,
        TIME * TIME,
        4 - BATCH,
        smaller(BATCH, 3),
    ],
)
def test_a_size_is_what_it_is_for_the_sizes_of_a_call(size: Any):
    run = Run({"x": (BATCH, TIME)}, CALL)
    assert run.values[run.sizes.one(size)].tolist() == [at(size, {dimension(BATCH): 5, dimension(TIME): 7})]


def test_each_size_is_computed_once():
    run = Run({"x": (BATCH, TIME)}, CALL)
    assert run.sizes.one(BATCH * TIME) == run.sizes.one(BATCH * TIME)
    assert run.ops == ["Shape", "Shape", "Mul"]


def test_a_vector_joins_numbers_and_sizes():
    run = Run({"x": (BATCH, TIME)}, CALL)
    assert run.values[run.sizes.vector((2, 3, BATCH, 4))].tolist() == [2, 3, 5, 4]
    assert run.values[run.sizes.vector((2, 3))].tolist() == [2, 3]
    assert run.values[run.sizes.vector((TIME,))].tolist() == [7]


def test_a_dimension_may_be_part_of_the_size_of_an_input():
    run = Run({"y": (2 * TIME + 1, 3)}, CALL)
    assert run.values[run.sizes.one(TIME)].tolist() == [7]


def test_a_dimension_of_no_input_is_an_error():
    with pytest.raises(UnsupportedError, match="the dimension batch can be computed"):
        Run({"x": (BATCH * TIME, 3)}, CALL).sizes.one(BATCH)


def test_sizes_are_the_same_where_they_are_for_all_dimensions():
    assert same(BATCH + 1, 1 + BATCH) and same(3, 3)
    assert not same(BATCH, TIME) and not same(BATCH, 3) and not same(3, BATCH)


def test_sizes_are_stated_as_numbers_or_names():
    assert [stated(s) for s in (4, BATCH, 2 * BATCH + 1)] == [4, "batch", "2*batch + 1"]
