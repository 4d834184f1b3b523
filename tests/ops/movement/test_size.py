"""The op that gives a size as a number."""

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.sizes.named_dims import Dim
from graphc.ir.graph.parse import parse_graph
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType
from tests.ops.one_kernel import lower_op


def test_a_size_is_a_number_of_each_call():
    time = Dim("time", 2, 512)
    op = REGISTRY["size"]
    attrs = op.normalize({"value": 3 * time - 1})
    assert op.result_types((), attrs) == (TensorType(int64),)
    assert op.bounds is not None and op.bounds([], (), attrs) == (5, 1535)
    assert "3*time - 1" in str(lower_op(op, (), attrs).body)


def test_a_graph_gives_it():
    text = """dim time = 2..512 hint 128
graph @g(%x: f32[time]) -> (i64[]) {
  %n = size() {value=3*time - 1} : i64[]
  return %n
}
"""
    graph = parse_graph(text)
    assert str(graph) == text
    (node,) = graph.nodes()
    assert node.op.evaluate((), {"value": 5})[0] == np.int64(5)
