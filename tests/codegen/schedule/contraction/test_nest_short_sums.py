"""Sums of products along a dimension that is known at run time, and never fills a register."""

from __future__ import annotations

import pytest

from graphc.base.dtypes import float32
from graphc.base.sizes.named_dims import Dim
from graphc.codegen.machine.target import target_named
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from tests.codegen.sized import check_schedule
from tests.native import lowered


@pytest.mark.parametrize("target", ["host", "avx2", "neon"])
@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("most", [3, 7, 15, 17])
def test_rows_times_columns_shorter_than_a_register(most: int, rows: int, target: str):
    depth, graph = Dim("depth", 1, most, hint=max(most // 2, 1)), Graph("product")
    with use(GraphDispatcher(graph)):
        x = graph.add_input(TensorType(float32, (rows, depth)), "x")
        w = graph.add_input(TensorType(float32, (depth, depth)), "w")
        graph.set_outputs([matmul(x, w, transpose_b=True)])
    check_schedule(lowered(graph), target_named(target), [{"depth": n} for n in {1, most // 2, most - 1, most} - {0}])
