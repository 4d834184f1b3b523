"""Microcontrollers: their instructions, and that LLVM states how they pass numbers."""

from __future__ import annotations

import pytest

from graphc.codegen.llvm.build import emit_assembly
from graphc.codegen.machine.target import target_named
from graphc.codegen.machine.thumb.facts import FAMILY

ADD = """
define <4 x float> @f(<4 x float> %x, <4 x float> %y) nounwind {
  %r = fadd <4 x float> %x, %y
  ret <4 x float> %r
}"""


@pytest.mark.parametrize("name", FAMILY.named)
def test_numbers_are_passed_in_registers_of_floats(name: str):
    target = target_named(name)
    text = f'target triple = "{target.triple}"\ndefine float @f(float %x) nounwind {{\n  ret float %x\n}}'
    assert ".eabi_attribute\t28, 1" in emit_assembly(text, target)
    assert target.is_bare and not target.has_pool


@pytest.mark.parametrize("name", FAMILY.named)
def test_vectors_are_not_used(name: str):
    """As LLVM compares them with NaN wrongly."""
    target = target_named(name)
    text = emit_assembly(f'target triple = "{target.triple}"\n{ADD}', target)
    assert text.count("vadd.f32\ts") == 4 and "vadd.f32\tq" not in text
