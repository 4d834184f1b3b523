"""Products with narrow weights of rows whose number is known at run time: bf16 pairs, bytes in quads, 4-bit steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from graphc.base.dtypes import bfloat16, bfloat16x2, bits_of, float32, int32, pair
from graphc.base.sizes.named_dims import Dim
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.codegen.schedule.forms import canonical
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.kernel.map import Names
from graphc.ir.types import TensorType
from graphc.ops.contraction.byte_product import i8_quads, quad_matmul
from graphc.ops.contraction.group_product import panels_of
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.contraction.nibble_product import GROUP, nibble_matmul, nibble_quad_matmul, store_nibbles
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.elementwise import cast
from tests.codegen.sized import check_schedule
from tests.native import lowered

ROWS = Dim("rows", 1, 500, hint=64)
RANDOM = np.random.default_rng(0)


def pairs(graph: Graph, columns: int, depth: int) -> Value:
    x = graph.add_input(TensorType(bfloat16x2, (ROWS, depth)), "x")
    weight = RANDOM.integers(-8, 9, (2, columns, depth)).astype(np.float32)
    return matmul(x, constant(graph, pair(weight[0], weight[1]), bfloat16x2), transpose_b=True)


def quads(graph: Graph, columns: int, depth: int) -> Value:
    x = graph.add_input(TensorType(float32, (ROWS, 4 * depth)), "x")
    factor = graph.add_input(TensorType(float32, (ROWS, 1)), "factor")
    weight = RANDOM.integers(0, 2**30, (columns, depth)).astype(np.int32)
    return quad_matmul(i8_quads(x, factor), constant(graph, weight, int32))


def powers(scale: np.ndarray) -> np.ndarray:
    """Scales without their last digits: powers of two."""
    return (bits_of(scale) & np.uint16(0xFF80)).view(bfloat16.numpy)


def steps_of_f32(graph: Graph, columns: int, depth: int) -> Value:
    words, scale = map(panels_of, store_nibbles(RANDOM.standard_normal((depth, columns), np.float32)))
    x = graph.add_input(TensorType(float32, (ROWS, 8 * words.shape[1])), "x")
    scales = cast(constant(graph, powers(scale), bfloat16), dtype=float32)
    return nibble_matmul(x, constant(graph, words, int32), scales)


def steps_of_quads(graph: Graph, columns: int, depth: int) -> Value:
    words, scale = map(panels_of, store_nibbles(RANDOM.standard_normal((depth, columns), np.float32)))
    x = graph.add_input(TensorType(int32, (ROWS, GROUP // 4 * scale.shape[1])), "x")
    start = graph.add_input(TensorType(int32, (ROWS, scale.shape[1])), "start")
    scales = cast(constant(graph, powers(scale), bfloat16), dtype=float32)
    return nibble_quad_matmul(x, start, constant(graph, words, int32), scales)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("target", ["host", "avx2", "neon"])
@pytest.mark.parametrize(("columns", "depth"), [(70, 40), (33, 70)])
@pytest.mark.parametrize("product", [pairs, quads, steps_of_f32, steps_of_quads])
def test_rows_times_narrow_weights_are_right_at_every_size(
    product: Callable[[Graph, int, int], Value], columns: int, depth: int, target: str
):
    graph = Graph("product")
    with use(GraphDispatcher(graph)):
        graph.set_outputs([product(graph, columns, depth)])
    program = lowered(graph)
    assert any(find_contraction(canonical(kernel, Names())) for kernel in program.kernels)
    check_schedule(program, target_named(target), [{"rows": n} for n in (1, 7, 14)])
