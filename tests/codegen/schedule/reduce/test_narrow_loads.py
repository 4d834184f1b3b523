"""Loops that wait for the LLC: which ones they are, and equal numbers wherever the arrays start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.codegen.machine.target import Target, target_named
from graphc.codegen.schedule.reduce.narrow_loads import find_narrow_loads
from graphc.ir.kernel.statements import Loop, walk
from tests.native import Native, aligned_copy, lowered, priced, scheduled, target_or_skip
from tests.passes.graph_text import graph_of

WIDE = priced(replace(target_named("avx512"), l2_bytes=1024), memory={"non_temporal_bytes": 1 << 20})
SUM = """
    graph @g(%x: f32[8,64]) -> (f32[8]) {
      %y = sum(%x) {axes=[1]} : f32[8]
      return %y
    }"""
SQUARES = """
    graph @g(%x: f32[8,64], %w: f32[64]) -> (f32[8,64]) {
      %s = mul(%x, %x) : f32[8,64]
      %t = sum(%s) {axes=[1], keepdims=true} : f32[8,1]
      %u = sub(%x, %t) : f32[8,64]
      %v = mul(%u, %u) : f32[8,64]
      %r = sum(%v) {axes=[1], keepdims=true} : f32[8,1]
      %y = mul(%x, %r) : f32[8,64]
      return %y
    }"""


def far(text: str, target: Target = WIDE) -> int:
    (kernel,) = lowered(graph_of(text)).kernels
    return len(find_narrow_loads(kernel, target))


def lanes(text: str, target: Target) -> list[int]:
    (kernel,) = scheduled(lowered(graph_of(text)), target).kernels
    return [s.axis.extent for s, _ in walk(kernel.body) if isinstance(s, Loop) and s.kind == "vector"]


def test_a_sum_of_rows():
    assert far(SUM) == 1
    assert lanes(SUM, WIDE) == [8]


@pytest.mark.parametrize(
    "target",
    [
        replace(WIDE, l2_bytes=2048),
        priced(WIDE, memory={"non_temporal_bytes": 2047}),
        priced(WIDE, memory={"narrow_load_bytes": 0}),
        replace(WIDE, vector_bytes=32),
        target_named("avx2"),
        target_named("neon"),
    ],
)
def test_near_data_and_other_machines(target: Target):
    assert far(SUM, target) == 0


def test_vectors_that_are_narrower_are_read_whole():
    assert lanes(SUM, replace(WIDE, vector_bytes=16)) == [4]


def test_only_the_first_loop_that_reads():
    assert far(SQUARES) == 1
    assert lanes(SQUARES, WIDE)[0] == 8
    assert set(lanes(SQUARES, WIDE)[1:]) == {16}


@pytest.mark.parametrize("op", ["exp(%x)", "max"])
def test_loops_that_compute_are_no_such_loops(op: str):
    if op == "max":
        text = SUM.replace("sum(", "max(")
    else:
        text = SUM.replace("%y = sum(%x)", f"%e = {op} : f32[8,64]\n      %y = sum(%e)")
    assert far(text) == 0


@pytest.mark.parametrize("width", [64, 77, 130])
@pytest.mark.parametrize("offset", [0, 16])
def test_equal_numbers(width: int, offset: int):
    target = priced(replace(target_or_skip("avx512"), l2_bytes=1024), memory={"non_temporal_bytes": 1 << 20})
    block = aligned_copy(np.random.default_rng(0).standard_normal(8 * width + 16).astype(np.float32))
    start = offset // 4
    x = block[start : start + 8 * width].reshape(8, width)
    w = np.zeros(width, np.float32)
    for text, inputs in ((SUM, [x]), (SQUARES, [x, w])):
        program = scheduled(lowered(graph_of(text.replace("64]", f"{width}]"))), target)
        expected = x.astype(np.float64).sum(1) if text is SUM else _squares(x.astype(np.float64))
        (found,) = Native(program, target)(inputs)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-3)


def _squares(x: np.ndarray) -> np.ndarray:
    t = (x * x).sum(1, keepdims=True)
    return x * ((x - t) ** 2).sum(1, keepdims=True)
