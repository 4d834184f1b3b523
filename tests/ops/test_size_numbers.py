"""Numbers that are computed from sizes, as nodes: what Python computes, as eager operations take it."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

from graphc.base.dtypes import DType, bool_, float32, float64, int8, int64
from graphc.base.sizes.assumptions import Assumptions, assuming
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import UndecidedSize, root
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import bind, evaluate
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.define import as_type, element
from graphc.ops.movement.shape import filled
from graphc.ops.pointwise.elementwise import mul

BATCH, TIME = Dim("batch", 1, 64), Dim("time", 2, 512)
SIZES = {"batch": 7, "time": 300}


def graph_of(make) -> Graph:
    """A graph with an input [batch, time] that returns ``make(input)``."""
    graph = Graph()
    x = graph.add_input(TensorType(float32, (BATCH, TIME)), "x")
    with dispatch.use(dispatch.GraphDispatcher(graph)):
        graph.set_outputs([make(x)])
    return graph


@pytest.mark.parametrize("dtype", [float32, float64, int64, int8, bool_], ids=str)
@pytest.mark.parametrize(
    "number",
    [
        lambda batch, time: time,
        lambda batch, time: batch * time // 3 - 5,
        lambda batch, time: 1 / time,
        lambda batch, time: batch / time * 0.1 + 3,
        lambda batch, time: -(batch - 0.5) / (time + 1),
        lambda batch, time: 2 - 0.3 * time,
    ],
)
def test_a_number_is_that_of_python_as_an_element_of_a_type(number, dtype: DType):
    graph = graph_of(lambda x: as_type(number(BATCH, TIME), dtype))
    expected = np.asarray(element(number(*SIZES.values()), dtype)).astype(dtype.numpy)
    (result,) = evaluate(graph, [np.zeros(tuple(SIZES.values()), np.float32)])
    assert (result.dtype, result.tobytes()) == (expected.dtype, expected.tobytes())


def test_roots_are_those_of_python_and_nothing_is_assumed_of_sizes():
    graph = graph_of(lambda x: as_type(np.sqrt(TIME) + root(BATCH / 3) + root(TIME + 1), float64))
    (result,) = evaluate(graph, [np.zeros((7, 300), np.float32)])
    assert result == math.sqrt(300) + math.sqrt(7 / 3) + math.sqrt(301) and root(2) == math.sqrt(2)


def test_powers_are_right_up_to_the_last_digits():
    graph = graph_of(lambda x: as_type(TIME**-0.5, float64))
    (result,) = evaluate(graph, [np.zeros((7, 300), np.float32)])
    assert abs(result - 300**-0.5) <= math.ulp(300**-0.5)


def test_a_remainder_of_floats_is_taken_as_a_number():
    number = operator.mod(TIME, 0.7)
    with pytest.raises(UndecidedSize, match="time is a number in calls only"):
        graph_of(lambda x: as_type(number, float64))
    with assuming(Assumptions()) as assumptions:
        graph = graph_of(lambda x: as_type(number, float64))
    assert [str(a).partition(" (")[0] for a in assumptions.found.values()] == ["time == 32"]
    assert graph.outputs[0] is graph.scalar(32 % 0.7, float64)


def test_operations_and_new_tensors_take_sizes():
    graph = graph_of(lambda x: mul(mul(x, TIME), filled(BATCH / 2, float32, (TIME,))))
    (result,) = evaluate(graph, [np.ones((7, 300), np.float32)])
    assert result.shape == (7, 300) and (result == 300 * 3.5).all()
    assert "size() {value=7} : i64[]" in str(bind(graph, SIZES))
