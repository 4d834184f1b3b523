"""The pass that widens bytes to pairs: which products change, and equal sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.base.dtypes import int8, uint8
from graphc.codegen.machine.costs import DEFAULT
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy, evaluate
from graphc.ir.types import TensorType
from graphc.ops.contraction.byte_product import byte_conv, byte_matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.passes.byte_pairs import BytePairs

COSTS = replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, byte_pairs=True))
SHAPES = {
    "rows": ((8, 13), (13, 5)),
    "one row": ((1, 13), (13, 5)),
    "image": ((1, 3, 6, 5), (4, 3, 3, 3)),
    "one pixel": ((1, 3, 3, 3), (4, 3, 3, 3)),
}


def product(x: tuple[int, ...], w: tuple[int, ...]) -> Graph:
    graph = Graph("g")
    operands = graph.add_input(TensorType(uint8, x), "x"), graph.add_input(TensorType(int8, w), "w")
    with use(GraphDispatcher(graph)):
        result = byte_matmul(*operands) if len(x) == 2 else byte_conv(*operands, stride=(1, 1), dilation=(1, 1))
    graph.set_outputs([result])
    return graph


@pytest.mark.parametrize(("name", "count"), [("rows", 1), ("one row", 0), ("image", 1), ("one pixel", 0)])
def test_products_with_many_results_change(name: str, count: int):
    x, w = SHAPES[name]
    graph = product(x, w)
    changed = copy(graph)
    assert BytePairs(costs=COSTS).run(changed).changed == count
    assert sum(node.op.name == "byte_pairs" for node in changed.nodes()) == 2 * count
    random = np.random.default_rng(0)
    arrays = [random.integers(0, 256, x).astype(np.uint8), random.integers(-128, 128, w).astype(np.int8)]
    assert np.array_equal(*(evaluate(g, arrays)[0] for g in (graph, changed)))


def test_machines_with_products_of_quads_keep_bytes():
    graph = product(*SHAPES["rows"])
    assert BytePairs().run(graph).changed == 0
