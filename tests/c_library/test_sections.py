"""Read-only data of libraries: constants as LLVM text, and weights in the object file."""

from __future__ import annotations

from graphc.c_library.sections import Datum, header


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
