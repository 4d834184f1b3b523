"""32-bit RISC-V microcontrollers: how they pass numbers, and which functions compute without floating point."""

from __future__ import annotations

import pytest

from graphc.codegen.link.elf32 import read_contents
from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.machine.target import target_named

MULTIPLY_ADD = """
declare float @llvm.fma.f32(float, float, float)
define float @f(float %x, float %y, double %z) nounwind {{
  %narrow = fptrunc double %z to float
  %r = call float @llvm.fma.f32(float %x, float %y, float %narrow)
  ret float %r
}}"""


@pytest.mark.parametrize(
    ("name", "functions"),
    [("rv32imc", {"__truncdfsf2", "fmaf"}), ("rv32imfc", {"__truncdfsf2"})],
)
def test_floats_are_computed_by_functions_where_there_is_no_instruction(name: str, functions: set[str]):
    target = target_named(name)
    text = f'target triple = "{target.triple}"\n{MULTIPLY_ADD.format()}'
    assert {*read_contents(build_object(text, target)).undefined} == functions
    assert ("fmadd.s\tfa0" in emit_assembly(text, target)) == (name == "rv32imfc")
    assert target.is_bare and not target.has_pool


def test_instructions_of_atomic_memory_and_f64_are_not_used():
    for name in ("rv32imc", "rv32imfc"):
        features = target_named(name).features.split(",")
        assert features == sorted(features) and not {"+a", "+d", "+v"} & {*features}
