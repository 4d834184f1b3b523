"""Register blocks with few sums: terms go to several sums in turn, unless their order is promised."""

from __future__ import annotations

import pytest

from graphc.base.dtypes import DType, float32, int32
from graphc.codegen.machine.target import Target, in_strict_order, target_named
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.statements import Acc, Loop, Program, Stmt
from graphc.ir.types import TensorType
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from tests.codegen.sized import check_schedule
from tests.native import lowered


def product(rows: int, depth: int, columns: int, dtype: DType = float32) -> Program:
    graph = Graph("product")
    with use(GraphDispatcher(graph)):
        x = graph.add_input(TensorType(dtype, (rows, depth)), "x")
        w = graph.add_input(TensorType(dtype, (depth, columns)), "w")
        graph.set_outputs([matmul(x, w)])
    return lowered(graph)


def copies_of_sums(body: tuple[Stmt, ...], inside: bool = False) -> set[int]:
    """Return the extents of unrolled loops inside of loops over terms."""
    found: set[int] = set()
    for stmt in body:
        if isinstance(stmt, Loop):
            if inside and stmt.kind == "unroll":
                found.add(stmt.axis.extent)
            found |= copies_of_sums(stmt.body, inside or stmt.kind == "reduce")
        elif isinstance(stmt, Acc):
            assert not inside
    return found


def copies(target: Target, rows: int, depth: int, columns: int, dtype: DType = float32) -> set[int]:
    scheduled = schedule_program(product(rows, depth, columns, dtype), target)
    return set().union(*(copies_of_sums(kernel.body) for kernel in scheduled.kernels))


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "expected"),
    [(1, 48, 16, {8}), (1, 18, 16, {6}), (1, 7, 16, set()), (1, 11, 16, set()), (1, 48, 32, {4}), (8, 48, 64, set())],
)
def test_terms_go_to_several_sums_where_few_are_in_registers(rows: int, depth: int, columns: int, expected: set[int]):
    assert copies(target_named("avx512"), rows, depth, columns) == expected


@pytest.mark.parametrize("target", ["host", "avx2", "sse2", "neon"])
@pytest.mark.parametrize("depth", [6, 16, 35])
def test_the_sums_are_right(depth: int, target: str):
    check_schedule(product(1, depth, 8), target_named(target), [{}])


def test_strict_order_keeps_one_sum():
    assert copies(in_strict_order(target_named("avx512")), 1, 48, 16) == set()


def test_sums_of_integers_stay_one():
    assert copies(target_named("avx512"), 1, 48, 16, int32) == set()
