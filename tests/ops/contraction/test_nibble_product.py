"""Products with 4-bit steps: how they are stored, what they are of, and that every stage computes the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import bfloat16, bits_of, float32, int32, widen
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.contraction.match import find_contraction
from graphc.compiler.stages import Stages
from graphc.ir.graph.build import constant
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Prefetch, walk
from graphc.ir.types import TensorType
from graphc.ops.contraction.group_product import PANEL, panels_of
from graphc.ops.contraction.nibble_product import GROUP, nibble_matmul, nibble_quad_matmul, steps_of, store_nibbles
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.elementwise import cast
from tests.native import TARGETS, check_native, lowered, target_or_skip

SIZES = [(1, 1, 1), (1, 200, 40), (7, 33, 96), (5, 70, 31), (15, 130, 64), (9, 128, 96), (29, 17, 257)]
"""Rows, columns, elements summed: odd ones, and sums that are no whole number of groups."""


def normal(*dims: int) -> np.ndarray:
    return np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32)


def small(*dims: int) -> np.ndarray:
    """Sixteenths, of which sums of products with steps are exact in any order."""
    return np.random.default_rng(sum(dims)).integers(-32, 33, dims).astype(np.float32) / 16


def powers(scale: np.ndarray) -> np.ndarray:
    """Scales without their last digits: powers of two."""
    return (bits_of(scale) & np.uint16(0xFF80)).view(bfloat16.numpy)


def exact_product(rows: int, columns: int, depth: int) -> tuple[Graph, list[np.ndarray]]:
    """A product whose sums are exact: its scales are powers of two."""
    words, scale = map(panels_of, store_nibbles(normal(depth, columns)))
    graph = Graph("product")
    with use(GraphDispatcher(graph)):
        x = graph.add_input(TensorType(float32, (rows, 8 * words.shape[1])), "x")
        steps, scales = constant(graph, words, int32), constant(graph, powers(scale), bfloat16)
        graph.set_outputs([nibble_matmul(x, steps, cast(scales, dtype=float32))])
    return graph, [small(*x.shape)]


def quad_product(rows: int, columns: int, depth: int) -> tuple[Graph, list[np.ndarray]]:
    """The same with rows of bytes."""
    words, scale = map(panels_of, store_nibbles(normal(depth, columns)))
    graph, groups = Graph("product"), scale.shape[1]
    random = np.random.default_rng(rows)
    with use(GraphDispatcher(graph)):
        x = graph.add_input(TensorType(int32, (rows, GROUP // 4 * groups)), "x")
        start = graph.add_input(TensorType(int32, (rows, groups)), "start")
        steps, scales = constant(graph, words, int32), constant(graph, powers(scale), bfloat16)
        graph.set_outputs([nibble_quad_matmul(x, start, steps, cast(scales, dtype=float32))])
    quads = random.integers(-127, 128, (*x.shape, 4)).astype(np.int8).view(np.int32)[..., 0]
    return graph, [quads, random.integers(-(2**15), 2**15, start.shape).astype(np.int32)]


@pytest.mark.sampled(50)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("product", [exact_product, quad_product])
def test_every_stage_computes_the_same_bits(product, size: tuple[int, int, int], target: str):
    graph, arguments = product(*size)
    machine = target_or_skip(target)
    check_native(graph, arguments, machine)
    found = Stages(graph, target=machine)
    (expected,) = evaluate(graph, arguments)
    for program in (found.lowered, found.scheduled):
        np.testing.assert_array_equal(run_program(program, [a.copy() for a in arguments])[0], expected)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_stored_weight_is_within_a_step(size: tuple[int, int, int]):
    """An element is off by half a step and the rounding of the scale; one opposite to the largest by a step at most."""
    _, columns, depth = size
    weight = normal(depth, columns)
    words, scale = store_nibbles(weight)
    assert words.shape == (-(-depth // GROUP) * GROUP // 8, columns) and scale.shape == (-(-depth // GROUP), columns)
    steps = np.repeat(widen(scale), GROUP, axis=0)
    error = np.abs(steps_of(words) * steps - np.pad(weight, ((0, -depth % GROUP), (0, 0))))
    assert (error <= np.abs(steps) * (1 + 2.0**-5)).all()
    assert (error <= np.abs(steps) * 0.54)[np.abs(steps_of(words)) < 7].all()


def test_steps_are_those_that_were_stored():
    column = np.arange(-16, 16, dtype=np.float32)[:, None] / 2
    words, scale = store_nibbles(column)
    assert widen(scale).tolist() == [[1.0]]
    np.testing.assert_array_equal(steps_of(words), np.minimum(np.rint(column), 7))
    words, scale = store_nibbles(-column)  # the largest one is -8 steps of a negative scale
    assert widen(scale).tolist() == [[-1.0]]
    np.testing.assert_array_equal(steps_of(words), np.minimum(np.rint(column), 7))


def test_zeros_stay_and_what_is_not_finite_is_not_hidden():
    words, scale = store_nibbles(np.zeros((40, 3), np.float32))
    assert not words.any() and not widen(scale).any()
    for wrong in (np.nan, np.inf, -np.inf):
        weight = normal(64, 3)
        weight[40, 1] = wrong
        words, scale = store_nibbles(weight)
        with np.errstate(invalid="ignore"):
            panels = [panels_of(words), panels_of(widen(scale))]
            (result,) = nibble_matmul.op.evaluate([np.ones((1, 64), np.float32), *panels], {})
        assert np.isfinite(result[0]).tolist() == [[True, False, True]]


def test_a_product_of_groups_is_one_register_block():
    """Two sums inside each other, of which the inner one unpacks eight steps of a word."""
    graph, _ = exact_product(3, 200, 256)
    (kernel,) = lowered(graph).kernels
    found = find_contraction(kernel)
    assert found is not None and found.b.name == found.unpacked and found.b.dtype is int32
    assert [x.extent for x in found.reduced] == [8, 4, 8]


def test_emitted_code_unpacks_vectors():
    """A word is read once for eight multiply-adds. Steps come from a table where the machine has a register for it,
    else from the bits of a number that is larger by 2^23."""
    graph, _ = exact_product(1, 256, 256)
    text = Stages(graph, target=target_named("avx512")).asm
    assert "vpermps\t%zmm" in text and "vsubps" not in text and "vaddps" not in text
    text = Stages(graph, target=target_named("avx2")).asm
    assert "vsubps\t%ymm" in text and "vsubss" not in text and "vaddps" not in text
    assert "ushr" in Stages(graph, target=target_named("neon")).asm


def test_words_that_are_read_once_are_asked_for_before():
    """However many lines a step reads: what it does with each takes so long that later steps are not under way."""
    program = Stages(exact_product(1, 4096, 1024)[0], target=target_named("avx512")).scheduled
    asked = [s for kernel in program.kernels for s, _ in walk(kernel.body) if isinstance(s, Prefetch)]
    assert len(asked) == PANEL * 4 // 64  # bytes of a row of words over those of a line


@pytest.mark.parametrize("target", ["sse2", "avx2", "avx512", "neon"])
@pytest.mark.parametrize("rows", [1, 40])
def test_panels_are_read_where_they_are(rows: int, target: str):
    program = Stages(exact_product(rows, 2 * PANEL, 1024)[0], target=target_named(target)).scheduled
    stored = [s.name for s in program.storages if s.cls == "constant" and s.dtype is int32]
    assert stored and not [name for name in stored if "packed" in name]


def test_other_matrices_are_packed():
    program = Stages(exact_product(40, 257, 1024)[0], target=target_named("avx2")).scheduled
    assert [s.name for s in program.storages if s.cls == "constant" and "packed" in s.name]
