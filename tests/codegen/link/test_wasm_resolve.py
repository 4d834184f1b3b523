"""Symbols of WebAssembly objects: duplicate, missing and unfit definitions."""

from __future__ import annotations

import pytest

from graphc.base.errors import CompileError
from graphc.codegen.link.wasm_resolve import resolve_wasm
from tests.codegen.link.wasm_objects import FIRST, SECOND, TABLE, compiled

CALL = "declare i32 @f(i32)\ndefine i32 @g(i32 %x) {\n  %r = call i32 @f(i32 %x)\n  ret i32 %r\n}\n"


def resolve(*texts: str, exports: tuple[str, ...] = ("g",), data: dict[str, bytes] | None = None):
    return resolve_wasm([compiled(text) for text in texts], exports, data or {}, lambda name: None)


def test_functions_and_data_that_exports_reach():
    program = resolve(SECOND, FIRST + "\n", exports=("end",), data={"table": TABLE, "unread": b"x"})
    assert [f.name for f in program.functions] == ["end"] and [d.name for d in program.blocks] == ["table"]
    assert not program.has_stack and not program.has_table and len(program.data) == 1


def test_a_symbol_is_defined_once():
    define = "define i32 @f(i32 %x) {\n  ret i32 %x\n}\n"
    assert len(resolve(CALL, define).functions) == 2
    with pytest.raises(CompileError, match="the symbol f is defined twice"):
        resolve(CALL, define, define + "\n")
    weak = define.replace("define", "define weak")
    assert len(resolve(CALL, weak, define).functions) == len(resolve(CALL, define, weak).functions) == 2


def test_the_object_of_an_undefined_function_is_supplied():
    supplied: list[str] = []

    def supply(name: str) -> bytes:
        supplied.append(name)
        return compiled("define hidden i32 @f(i32 %x) {\n  ret i32 %x\n}\n")

    assert len(resolve_wasm([compiled(CALL)], ["g"], {}, supply).functions) == 2 and supplied == ["f"]


def test_missing_definitions_and_exports_are_named():
    with pytest.raises(CompileError, match="the symbol f is not defined"):
        resolve(CALL)
    with pytest.raises(CompileError, match="the symbol table is not defined"):
        resolve(SECOND, FIRST, exports=("end",))
    with pytest.raises(CompileError, match="the export h is not a function"):
        resolve(CALL, exports=("h",))


def test_a_call_has_the_type_of_its_function():
    with pytest.raises(CompileError, match="the symbol f is used as another type"):
        resolve(CALL, "define i32 @f(i64 %x) {\n  ret i32 0\n}\n")
    with pytest.raises(CompileError, match="the symbol f is used as another type"):
        resolve(CALL, "@f = constant i32 5\n")
