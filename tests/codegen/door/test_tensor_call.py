"""The text of the native call on tensors of another library: complete, and valid for every machine."""

from __future__ import annotations

import re

import pytest

from graphc.codegen.door.tensor_call import emit_tensor_call
from graphc.codegen.llvm.build import build_object, emit_assembly
from graphc.codegen.machine.target import host_target, target_named
from graphc.runtime import tensor_call

LAYOUT = tensor_call.layout() or {}


def test_every_field_is_replaced_by_its_offset():
    text = emit_tensor_call(LAYOUT, host_target())
    assert text == emit_tensor_call(LAYOUT, host_target())
    moved = emit_tensor_call({**LAYOUT, "View.strides": 1234}, host_target())
    assert moved != text and moved.count("i64 1234") == 1
    with pytest.raises(KeyError, match=r"TensorArgument\.address"):
        emit_tensor_call({k: v for k, v in LAYOUT.items() if k != "TensorArgument.address"}, host_target())


@pytest.mark.parametrize("name", ["host", "sse2", "neon"])
def test_it_is_built_for_every_machine(name: str):
    target = target_named(name)
    assert b"graphc_tensor_call" in build_object(emit_tensor_call(LAYOUT, target), target, quick=True)


def test_it_takes_no_symbol_from_the_process():
    target = target_named("sse2")
    assert not re.findall(r"@PLT|@GOTPCREL", emit_assembly(emit_tensor_call(LAYOUT, target), target))
