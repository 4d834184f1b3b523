"""The CPU schedule of whole programs: packing of operands and of constants, order of storages, equal results."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.nests import run_copy
from graphc.codegen.schedule.pipeline import schedule_program
from graphc.ir.kernel.interpret import run_kernel, run_program
from graphc.ir.kernel.statements import Program
from tests.codegen.kernel_native import kernel_of
from tests.native import TARGETS, Tolerance, check_all, lowered, scheduled, target_or_skip
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of

WIDE = target_named("avx512")
LINEAR = """
    graph @linear(%x: f32[12,24], %w: f32[40,24] param "w") -> (f32[12,40]) {
      %y = matmul(%x, %w) {transpose_a=false, transpose_b=true} : f32[12,40]
      return %y
    }"""


def constant_weight() -> Program:
    weight = np.arange(40 * 24, dtype=np.float32).reshape(40, 24) / 64 - 7
    text = ", ".join(str(v) for v in weight.ravel())
    graph = graph_of(f"""
        graph @linear(%x: f32[12,24]) -> (f32[12,40], f32[12,40]) {{
          %w = constant() {{value=f32[40,24]({text})}} : f32[40,24]
          %y = matmul(%x, %w) {{transpose_a=false, transpose_b=true}} : f32[12,40]
          %e = exp(%x) : f32[12,24]
          %z = matmul(%e, %w) {{transpose_a=false, transpose_b=true}} : f32[12,40]
          return %y, %z
        }}""")
    return lowered(graph)


def packed(program: Program) -> list[str]:
    return [s.name for s in program.storages if ".packed" in s.name]


def test_an_operand_that_lies_badly_is_packed_by_a_kernel_of_its_own():
    program = schedule_program(lowered(graph_of(LINEAR)), WIDE)
    assert [c.kernel for c in program.calls] == ["k0_pack", "k0"]
    assert [program.storage(name).cls for name in packed(program)] == ["temp"]


def test_constants_are_packed_at_compile_time():
    program = scheduled(constant_weight(), WIDE)
    assert not any(c.kernel.endswith("_pack") for c in program.calls)
    assert [program.storage(name).cls for name in packed(program)] == ["constant"]
    arguments = [np.random.default_rng(0).standard_normal((12, 24)).astype(np.float32)]
    expected = run_program(constant_weight(), arguments)
    Tolerance().check(run_program(program, arguments), expected)


def test_a_constant_that_is_only_used_packed_is_dropped():
    program = schedule_program(constant_weight(), WIDE)
    used = {a for c in program.calls for a in c.args}
    assert all(s.name in used for s in program.storages if s.cls == "constant")


def test_storages_keep_their_order():
    rank = {"input": 0, "param": 0, "state": 0, "output": 1, "constant": 2, "temp": 3}
    for name in ("avx512", "avx2", "sse2", "neon"):
        order = [rank[s.cls] for s in schedule_program(constant_weight(), target_named(name)).storages]
        assert order == sorted(order)


@pytest.mark.parametrize("target", TARGETS)
def test_linear_layer_natively(target: str):
    target_or_skip(target)
    graph = graph_of(LINEAR)
    check_all(graph, random_arguments(graph))


def test_copies_of_constants_are_what_the_kernel_means():
    kernel = kernel_of("""
        kernel @pack(%b0: f32[30] in, %b1: f32[30] out) {
          for p in 2 parallel {
            for l in 3 parallel {
              for k in 5 parallel {
                v: f32 = load %b0[15*p + 5*l + k]
                store %b1[15*p + l + 3*k] = v
              }
            }
          }
        }""")
    source = np.arange(30, dtype=np.float32)
    expected = np.zeros(30, np.float32)
    run_kernel(kernel, {"b0": source, "b1": expected})
    np.testing.assert_array_equal(run_copy(kernel, source), expected)


def test_a_program_of_nothing():
    program = scheduled(lowered(graph_of("graph @g(%x: f32[0]) -> (f32[0]) {\n  return %x\n}")), WIDE)
    assert program.calls == () and program.kernels == () and program.arena == 0
