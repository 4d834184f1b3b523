"""Detection of aarch64 features in native code: fields of identification registers."""

from __future__ import annotations

import pytest

from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.machine.aarch64.detection import FIELDS, emit_detection
from graphc.codegen.machine.aarch64.facts import FAMILY
from graphc.codegen.machine.target import target_named

READ_0, READ_1 = (bytes.fromhex(code) for code in ("000638d5c0035fd6", "200638d5c0035fd6"))
"""``mrs x0, id_aa64isar0_el1; ret``, and the same of ``id_aa64isar1_el1``."""


def test_what_all_processors_have_needs_no_function():
    assert emit_detection("+neon", "detect") == ""
    assert FAMILY.named["neon"].detection("detect") == ""


@pytest.mark.parametrize(("name", "reads"), [("neon-dotprod", (True, False)), ("neon-i8mm", (True, True))])
def test_the_registers_of_the_features_are_read(name: str, reads: tuple[bool, bool]):
    target = target_named(name)
    text = f'target triple = "{target.triple}"\n{target.detection("detect")}'
    assert "define hidden i1 @detect()" in text
    code = build_object(text, target)
    assert (READ_0 in code, READ_1 in code) == reads
    assert "detect:" in emit_assembly(text, target)


def test_all_features_of_named_targets_have_a_field():
    for target in FAMILY.named.values():
        assert {f[1:] for f in target.features.split(",")} - {"neon"} <= FIELDS.keys()
