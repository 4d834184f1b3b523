"""The text of the native call: complete, valid for every machine, and the same each time."""

from __future__ import annotations

import re

import pytest

from graphc.codegen.door.python_call import emit_call
from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.machine.target import host_target, target_named
from graphc.runtime import fast_call

LAYOUT = fast_call.layout() or {}


def test_every_field_is_replaced_by_its_offset():
    text = emit_call(LAYOUT, host_target())
    assert text == emit_call(LAYOUT, host_target())
    assert not re.search(r"= get |^ *put |\{[A-Za-z]+[._]", text, re.MULTILINE)
    moved = emit_call({**LAYOUT, "Array.dtype": 1234}, host_target())
    assert text.count("ptr %array, i64 56") == moved.count("ptr %array, i64 1234") == 1


def test_a_field_without_offset_is_an_error():
    with pytest.raises(KeyError, match=r"Array\.flags"):
        emit_call({k: v for k, v in LAYOUT.items() if k != "Array.flags"}, host_target())


@pytest.mark.parametrize("name", ["host", "sse2", "neon"])
def test_it_is_built_for_every_machine(name: str):
    target = target_named(name)
    assert b"graphc_call" in build_object(emit_call(LAYOUT, target), target, quick=True)


def test_it_takes_no_symbol_from_the_process():
    """Functions come from a table, so that the code links whatever the interpreter exports."""
    assert not re.findall(
        r"@PLT|@GOTPCREL", emit_assembly(emit_call(LAYOUT, target_named("sse2")), target_named("sse2"))
    )
