"""Programs as they are called: params that each call gives."""

import numpy as np

from graphc.base.dtypes import float32
from graphc.calls.bound_program import GivenProgram, build
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.elementwise import add


def test_params_may_be_others_in_each_call():
    graph = Graph("sum")
    x = graph.add_input(TensorType(float32, (3,)), "x")
    p = graph.add_input(TensorType(float32, (3,)), "p", "param", "p")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([add(x, p)])
    calls = GivenProgram(build(graph))
    given = np.arange(3, dtype=np.float32)
    for param in (np.ones(3, np.float32), np.zeros(3, np.float32), np.ones((2, 3), np.float32)[1]):
        for _ in range(2):
            (found,) = calls.run([given], (param,))
            np.testing.assert_array_equal(found, given + param)
    (found,) = calls.run([np.arange(6, dtype=np.float32)[::2]], (param,))  # not dense
    np.testing.assert_array_equal(found, [1, 3, 5])
