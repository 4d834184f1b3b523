"""Non-temporal stores: which outputs they are used for, and equal numbers wherever the outputs start."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.codegen.machine.target import Target, target_named
from graphc.codegen.schedule.memory.non_temporal import non_temporal_buffers
from graphc.ir.kernel.statements import Program, Storage
from tests.native import Native, Place, aligned_copy, lowered, priced, scheduled, target_or_skip
from tests.passes.graph_text import graph_of

WIDE = priced(target_named("avx512"), memory={"non_temporal_bytes": 4096})
MAP = """
    graph @g(%x: f32[8,64]) -> (f32[8,64]) {
      %y = exp(%x) : f32[8,64]
      return %y
    }"""


def program(text: str, target: Target = WIDE) -> Program:
    return scheduled(lowered(graph_of(text)), target)


def non_temporal(text: str, target: Target = WIDE) -> list[frozenset[str]]:
    return list(non_temporal_buffers(program(text, target), target).values())


def test_an_output_of_a_large_kernel():
    assert non_temporal(MAP) == [frozenset({"b1"})]


@pytest.mark.parametrize(
    "target", [priced(WIDE, memory={"non_temporal_bytes": 4097}), target_named("avx2"), target_named("neon")]
)
def test_small_kernels_and_other_machines(target: Target):
    assert non_temporal(MAP, target) == []


AGAIN = """
    graph @g(%x: f32[64,64], %w: f32[64,64]) -> (f32[64,64], f32[64,64]) {
      %y = exp(%x) : f32[64,64]
      %z = matmul(%y, %w) : f32[64,64]
      return %y, %z
    }"""


def written_past_caches(text: str, target: Target) -> tuple[set[str], list[str]]:
    """Storages with non-temporal stores, and the names of the outputs."""
    p = program(text, target)
    found = non_temporal_buffers(p, target)
    written = {
        a
        for c in p.calls
        for b, a in zip(p.kernel(c.kernel).arguments, c.args, strict=True)
        if b.name in found.get(c.kernel, ())
    }
    return written, [s.name for s in p.storages if s.cls == "output"]


def test_what_a_kernel_reads_again_stays():
    written, outputs = written_past_caches(AGAIN, priced(WIDE, memory={"non_temporal_bytes": 16384}))
    assert outputs[0] not in written


def test_what_no_cache_holds_goes_though_a_kernel_reads_it_again():
    written, outputs = written_past_caches(AGAIN, priced(WIDE, memory={"non_temporal_bytes": 8192}))
    assert outputs[0] in written


def test_rows_that_end_inside_a_line_stay():
    assert non_temporal(MAP.replace("8,64", "8,63").replace("exp(%x)", "cumsum(%x) {axis=0}")) == []


def test_combining_stores_stay():
    text = """
        graph @g(%x: f32[32,64], %i: i64[16], %u: f32[16,64]) -> (f32[32,64]) {
          %y = scatter_add(%x, %i, %u) {axis=0} : f32[32,64]
          return %y
        }"""
    p = program(text)
    combining = [k.name for k in p.kernels if any(b.role == "inout" for b in k.arguments)]
    assert combining and not set(combining) & set(non_temporal_buffers(p, WIDE))


def moved(by: int) -> Place:
    """Puts outputs ``by`` bytes behind the start of a cache line."""

    def place(storage: Storage | None, array: np.ndarray) -> np.ndarray:
        if storage is None or storage.cls != "output":
            return array
        room = aligned_copy(np.zeros(array.nbytes + 64, np.uint8))
        return room[by : by + array.nbytes].view(array.dtype).reshape(array.shape)

    return place


@pytest.mark.parametrize("by", [0, 4, 32, 60])
@pytest.mark.parametrize(
    "text",
    [
        MAP,
        """
        graph @g(%x: f32[64,48]) -> (f32[48,64]) {
          %t = transpose(%x) {permutation=[1,0]} : f32[48,64]
          %y = mul(%t, %t) : f32[48,64]
          return %y
        }""",
        """
        graph @g(%x: f32[24,64]) -> (f32[24,64], f32[24,64]) {
          %m = max(%x) {axes=[1], keepdims=true} : f32[24,1]
          %y = sub(%x, %m) : f32[24,64]
          %z = mul(%y, %y) : f32[24,64]
          return %y, %z
        }""",
    ],
)
def test_numbers_wherever_outputs_start(text: str, by: int):
    target = priced(target_or_skip("avx512"), memory={"non_temporal_bytes": 4096})
    p = program(text, target)
    x = np.random.default_rng(0).standard_normal(p.storages[0].shape).astype(np.float32)
    plain = Native(p, priced(target, memory={"non_temporal_bytes": 0}))
    streaming = Native(p, target)
    assert "nontemporal" in streaming.text and "nontemporal" not in plain.text
    for got, expected in zip(streaming([x], moved(by)), plain([x]), strict=True):
        np.testing.assert_array_equal(got, expected)
