"""Reader of WebAssembly objects: contents, damage of each byte, features that it refuses."""

from __future__ import annotations

import random

import pytest

from graphc.base.errors import ArtifactError, CompileError
from graphc.codegen.link.wasm_format import MAGIC, Relocation, SymbolKind
from graphc.codegen.link.wasm_module import link_wasm
from graphc.codegen.link.wasm_reader import read_wasm_object
from tests.codegen.link.wasm_objects import FIRST, SECOND, TABLE, compiled


def test_functions_data_and_symbols():
    read = read_wasm_object(compiled(FIRST))
    assert {f.name for f in read.functions} == {"add", "half", "call", "unused"}
    assert {s.name for s in read.symbols if s.kind is SymbolKind.FUNCTION and s.definition is None} == {
        *("other", "empty", "fmod")
    }
    sizes = {d.name: len(d.contents) for d in read.data}
    assert sizes == {".data.count": 4, ".bss.zeros": 4000, ".rodata.functions": 12, ".rodata.nowhere": 4}
    rules = {relocation.rule for piece in (*read.functions, *read.data) for relocation in piece.relocations}
    assert {Relocation.R_WASM_TABLE_INDEX_I32, Relocation.R_WASM_FUNCTION_INDEX_LEB} <= rules
    assert {Relocation.R_WASM_TYPE_INDEX_LEB, Relocation.R_WASM_MEMORY_ADDR_LEB} <= rules


def test_names_of_units_end_at_their_first_zero_byte():
    name = "unit_".ljust(32, "_")
    code = compiled(f"define i32 @{name}(i32 %x) {{\n  ret i32 %x\n}}\n")
    renamed = code.replace(name.encode(), b"k0".ljust(32, b"\0"))
    assert [f.name for f in read_wasm_object(renamed).functions] == ["k0"]


def test_other_files_are_refused():
    for data in (b"", b"\x7fELF" + bytes(100), MAGIC[:6], b"\0asm\2\0\0\0"):
        with pytest.raises(ArtifactError, match="not a WebAssembly module of version 1"):
            read_wasm_object(data)
    with pytest.raises(ArtifactError, match="it has no section linking"):
        read_wasm_object(MAGIC)
    module = link_wasm([compiled("define void @f() {\n  ret void\n}\n")], ["f"])
    with pytest.raises(CompileError, match="the section memory of WebAssembly object code cannot be linked"):
        read_wasm_object(module)


@pytest.mark.parametrize("text", [FIRST, SECOND])
def test_truncated_objects_are_refused_at_every_byte(text: str):
    code = compiled(text)
    end_of_relocations = code.rindex(b"reloc.") + 20
    for length in range(end_of_relocations):
        with pytest.raises((ArtifactError, CompileError), match=r"damaged|not |no section|cannot|bodies") as caught:
            link_wasm([code[:length]], ["call", "end"], data={"table": TABLE})
        assert str(caught.value)


def test_damaged_objects_raise_a_typed_error_or_are_linked():
    generator, refused = random.Random(0), 0
    for text in (FIRST, SECOND):
        code = compiled(text)
        for _ in range(1000):
            damaged = bytearray(code)
            for _ in range(generator.randint(1, 3)):
                damaged[generator.randrange(len(code))] = generator.randrange(256)
            try:
                link_wasm(
                    [bytes(damaged), compiled(SECOND if text == FIRST else FIRST)],
                    ["call", "end"],
                    data={"table": TABLE},
                )
            except (ArtifactError, CompileError) as error:
                refused += 1
                assert str(error)
    assert refused > 400


def test_unknown_relocations_are_named():
    code = bytearray(compiled(SECOND))
    first = code.index(b"reloc.CODE") + len(b"reloc.CODE") + 2
    for number in (8, 26):  # offsets of functions, addresses of 64 bits
        code[first] = number
        with pytest.raises(CompileError, match=f"the relocation {number} of WebAssembly object code is unknown"):
            read_wasm_object(bytes(code))
    code[first] = Relocation.R_WASM_MEMORY_ADDR_LEB
    with pytest.raises(ArtifactError, match="R_WASM_MEMORY_ADDR_LEB refers to symbol"):
        read_wasm_object(bytes(code))
