"""Read-only data of libraries: constants as LLVM text, and weights in the object file."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.errors import CompileError
from graphc.c_library.sections import Datum, fill, header
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named


def test_a_constant_is_defined_once_and_declared_elsewhere():
    inner = Datum("net__x", "i64", "5")
    assert inner.definition == "@net__x = hidden constant i64 5, align 8"
    assert inner.declaration == "@net__x = external hidden constant i64, align 8"
    seen = Datum("net_x", "i64", "5", 64, exported=True, section=".rodata.x")
    assert seen.definition == '@net_x = constant i64 5, section ".rodata.x", align 64'


def test_a_header_has_magic_size_and_digest():
    found = header(b"\x89GCSTAT1", 513, bytes(range(32)))
    assert len(found) == 64 and found[:8] == b"\x89GCSTAT1" and found[16:48] == bytes(range(32))
    assert int.from_bytes(found[8:16], "little") == 513


@pytest.mark.parametrize("target", ["sse2", "neon", "rv64gc"])
def test_weights_are_put_into_object_code_of_any_machine(target: str):
    machine = target_named(target)
    weights = Datum("net__weights", "[4096 x i8]", "zeroinitializer", 64, section=".rodata.net")
    code = build_object(f'target triple = "{machine.triple}"\n{weights.definition}\n', machine)
    data = np.random.default_rng(0).integers(0, 256, 4096).astype(np.uint8)
    filled = fill(code, ".rodata.net", data)
    assert len(filled) == len(code) and data.tobytes() in filled
    assert filled.replace(data.tobytes(), bytes(4096)) == code
    with pytest.raises(CompileError, match=r"no section \.rodata\.net of 5 bytes"):
        fill(code, ".rodata.net", data[:5])
