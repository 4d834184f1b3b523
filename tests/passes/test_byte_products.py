"""The pass that chooses how products of bytes are computed: which ones change, and equal sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.base.dtypes import float32, int8, uint8
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import copy, evaluate
from graphc.ir.types import TensorType
from graphc.ops.contraction.byte_product import byte_conv, byte_matmul, real_byte_conv
from graphc.ops.contraction.convolution import conv
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.elementwise import cast, mul
from graphc.passes.byte_products import ByteProducts

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
    assert ByteProducts(costs=COSTS).run(changed).changed == count
    assert sum(node.op.name == "byte_pairs" for node in changed.nodes()) == 2 * count
    random = np.random.default_rng(0)
    arrays = [random.integers(0, 256, x).astype(np.uint8), random.integers(-128, 128, w).astype(np.int8)]
    assert np.array_equal(*(evaluate(g, arrays)[0] for g in (graph, changed)))


def test_machines_with_products_of_quads_keep_bytes():
    graph = product(*SHAPES["rows"])
    assert ByteProducts().run(graph).changed == 0


def image(side: int, channels: int, **attrs) -> Graph:
    """One 3x3 convolution with f32 results."""
    graph = Graph("g")
    x = graph.add_input(TensorType(uint8, (1, channels, side, side)), "x")
    w = graph.add_input(TensorType(int8, (channels, channels, 3, 3)), "w", "param", "w")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([real_byte_conv(x, w, **{"stride": (1, 1), "dilation": (1, 1), "zero": 7.0} | attrs)])
    return graph


SLOW = replace(DEFAULT, rewrites=replace(DEFAULT.rewrites, byte_speed=1.6))


@pytest.mark.parametrize(
    ("graph", "costs", "count"),
    [
        (image(58, 64), SLOW, 1),
        (image(58, 64), DEFAULT, 0),
        (image(58, 64, stride=(2, 2)), SLOW, 0),
        (image(58, 64, dilation=(1, 2)), SLOW, 0),
        (image(5, 4), SLOW, 0),
        (image(58, 64), replace(SLOW, strict_order=True), 0),
    ],
)
def test_reals_replace_bytes_where_that_saves_more(graph: Graph, costs: Costs, count: int):
    """Sums of products up to 2^24 are exact in f32, too: only Winograd's transforms, later, round."""
    changed = copy(graph)
    assert ByteProducts(costs=costs).run(changed).changed == count
    assert sum(node.op.name == "conv" for node in changed.nodes()) == count
    random = np.random.default_rng(0)
    x, w = (value.type for value in graph.inputs)
    arrays = [random.integers(0, 256, x.shape).astype(np.uint8), random.integers(-20, 20, w.shape).astype(np.int8)]
    assert np.array_equal(*(evaluate(g, arrays)[0] for g in (graph, changed)))


def test_products_that_convert_bytes_are_reported():
    graph = Graph("g")
    x = graph.add_input(TensorType(float32, (1, 4, 8, 8)), "x")
    w = graph.add_input(TensorType(int8, (4, 1, 3, 3)), "w", "param", "w")
    with use(GraphDispatcher(graph)):
        weight = mul(cast(w, dtype=float32), 0.5)
        padding = ((1, 1), (1, 1))
        graph.set_outputs([conv(x, weight, stride=(1, 1), padding=padding, dilation=(1, 1), groups=4)])
    assert [r.partition(": ")[2] for r in ByteProducts().run(graph).reasons] == ["conv in f32, a factor is int8"]


def test_without_the_method_bytes_stay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_WINOGRAD", "off")
    assert ByteProducts(costs=SLOW).run(image(58, 64)).changed == 0
