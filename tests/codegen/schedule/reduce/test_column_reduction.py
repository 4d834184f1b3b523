"""Sums over rows that are read as they lie: which reductions they are, and equal numbers for any shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.reduce.split_reduction import split_reductions
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Load, Loop, walk
from graphc.ir.kernel.verify import verify_program
from tests.native import Native, lowered, priced, scheduled, target_or_skip
from tests.passes.graph_text import graph_of


def columns(rows: int, width: int, op: str = "sum") -> str:
    return f"""
        graph @g(%x: f32[{rows},{width}]) -> (f32[{width}]) {{
          %y = {op}(%x) {{axes=[0]}} : f32[{width}]
          return %y
        }}"""


def both(rows: int, width: int) -> str:
    """Two sums of columns that share what they read, one with a factor for each row."""
    return f"""
        graph @g(%x: f32[{rows},{width}], %w: f32[{rows},1]) -> (f32[{width}], f32[{width}]) {{
          %s = sum(%x) {{axes=[0]}} : f32[{width}]
          %p = mul(%x, %w) : f32[{rows},{width}]
          %t = sum(%p) {{axes=[0]}} : f32[{width}]
          return %s, %t
        }}"""


SMALL = {"rows_from": 1, "rows_stretch": 1024, "fewest_rows": 1, "high": 2, "wide": 8, "row_bytes": 256}
"""Costs at which small arrays have the form of large ones."""


def names(text: str) -> list[str]:
    return [k.name for k in scheduled(lowered(graph_of(text)), target_named("avx512")).kernels]


def test_large_sums_of_columns_have_rows_of_partial_sums():
    assert names(columns(4096, 1024)) == ["k0_partial0", "k0"]
    assert names(columns(4096, 1024, "max")) == ["k0_partial0", "k0"]


@pytest.mark.parametrize(("rows", "width"), [(512, 1024), (16384, 256), (32, 131072)])
def test_small_narrow_and_flat_ones_stay(rows: int, width: int):
    assert names(columns(rows, width)) == ["k0"]


def test_rows_that_are_read_again_block_by_block_stay():
    text = """
        graph @g(%x: f32[2048,1024]) -> (f32[2048,1024]) {
          %m = sum(%x) {axes=[0], keepdims=true} : f32[1,1024]
          %y = sub(%x, %m) : f32[2048,1024]
          return %y
        }"""
    assert names(text) == ["k0"]


def vector_times_matrix(rows: int, width: int, vectors: int = 1, kind: str = "") -> str:
    return f"""
        graph @g(%x: f32[{vectors},{rows}], %w: f32[{rows},{width}]{kind}) -> (f32[{vectors},{width}]) {{
          %y = matmul(%x, %w) : f32[{vectors},{width}]
          return %y
        }}"""


def test_one_vector_times_a_matrix_that_is_new_in_each_call_adds_up_its_rows():
    assert names(vector_times_matrix(2048, 1024)) == ["k0_partial0", "k0"]


def test_products_with_several_vectors_or_weights_stay():
    assert not any("partial" in name for name in names(vector_times_matrix(2048, 1024, 2)))
    program = lowered(graph_of(vector_times_matrix(2048, 1024)))
    weights = [replace(s, cls="weight") if s.name == "w" else s for s in program.storages]
    kept = scheduled(replace(program, storages=tuple(weights)), target_named("avx512"))
    assert not any("partial" in k.name for k in kept.kernels)


def test_products_with_narrow_weights_stay():
    """A conversion beside the product changes nothing: these sums were once made of partial ones of 285 MB."""
    text = """
        graph @g(%x: f32[16,17,512], %w: bf16[16,512,512]) -> (f32[16,17,512]) {
          %v = cast(%w) {dtype=f32} : f32[16,512,512]
          %y = matmul(%x, %v) : f32[16,17,512]
          return %y
        }"""
    assert not any("partial" in name for name in names(text))


def test_rows_of_partial_sums_are_made_of_several():
    assert names(columns(128, 65536)) == ["k0"]


@pytest.mark.parametrize("shape", [(9, 64), (67, 77), (128, 33)])
def test_a_vector_times_a_matrix(shape: tuple[int, int]):
    program = lowered(graph_of(vector_times_matrix(*shape)))
    target = priced(target_or_skip("host"), reduction=SMALL)
    result = scheduled(program, target)
    assert any("partial" in k.name for k in result.kernels)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, shape[0])).astype(np.float32), rng.standard_normal(shape).astype(np.float32)
    (got,) = Native(result, target)([x, w])
    np.testing.assert_allclose(got, x.astype(np.float64) @ w, rtol=1e-5, atol=1e-5)


def test_eight_rows_pass_at_a_time_side_by_side():
    kernel = scheduled(lowered(graph_of(columns(4096, 1024))), target_named("avx512")).kernels[0]
    vectors = [s for s, _ in walk(kernel.body) if isinstance(s, Loop) and s.kind == "vector"]
    most = max(sum(isinstance(s, Load) and s.buffer == "b0" for s in v.body) for v in vectors)
    assert most == 8


@pytest.mark.parametrize("shape", [(9, 64), (40, 64), (67, 77), (5, 300), (128, 33)])
@pytest.mark.parametrize("text", [columns, both])
def test_equal_numbers(shape, text):
    graph = graph_of(text(*shape))
    program = lowered(graph)
    split = split_reductions(program, replace(DEFAULT.reduction, **SMALL))
    verify_program(split)
    assert len(split.kernels) > len(program.kernels)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32)]
    if text is both:
        inputs.append(rng.standard_normal((shape[0], 1)).astype(np.float32))
    expected = [inputs[0].astype(np.float64).sum(0)]
    if text is both:
        expected.append((inputs[0].astype(np.float64) * inputs[1]).sum(0))
    for result, expected_result in zip(run_program(split, inputs), expected, strict=True):
        np.testing.assert_allclose(result, expected_result, rtol=1e-5, atol=1e-5)
    target = priced(target_or_skip("host"), reduction=SMALL)
    for result, expected_result in zip(Native(scheduled(program, target), target)(inputs), expected, strict=True):
        np.testing.assert_allclose(result, expected_result, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", ["max", "prod"])
def test_other_combinations(op: str):
    x = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    x[3, 4] = np.nan
    target = priced(target_or_skip("host"), reduction=SMALL)
    (result,) = Native(scheduled(lowered(graph_of(columns(40, 50, op))), target), target)([x])
    np.testing.assert_allclose(result, getattr(np, op)(x, axis=0), rtol=1e-5)
