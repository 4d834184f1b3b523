"""Products with 8-bit codes in groups: every stage computes them, as one contraction."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import float32, int8
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops.contraction.group_product import group_matmul, panels_of
from graphc.ops.dispatch import GraphDispatcher, use
from tests.native import check_all, lowered

SIZES = [(1, 40, 2, 32), (7, 33, 3, 16), (17, 70, 1, 8), (5, 128, 2, 32)]
"""Rows, columns, groups, elements of a group."""


def product(rows: int, columns: int, groups: int, size: int) -> tuple[Graph, list[np.ndarray]]:
    """Return a product whose sums are exact in any order."""
    random = np.random.default_rng(rows)
    graph, depth = Graph("product"), groups * size
    integers = panels_of(random.integers(-128, 128, (depth, columns)).astype(np.int8))
    powers = panels_of(2.0 ** random.integers(-4, 4, (groups, columns)).astype(np.float32))
    with use(GraphDispatcher(graph)):
        x = graph.add_input(TensorType(float32, (rows, depth)), "x")
        graph.set_outputs([group_matmul(x, constant(graph, integers, int8), constant(graph, powers, float32))])
    return graph, [random.integers(-32, 33, (rows, depth)).astype(np.float32) / 16]


def test_it_is_one_contraction():
    (kernel,) = lowered(product(7, 33, 3, 16)[0]).kernels
    match = find_contraction(kernel)
    assert match is not None and match.work == 7 * 33 * 48


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_stage_computes_the_reference(sizes: tuple[int, int, int, int]):
    check_all(*product(*sizes))
