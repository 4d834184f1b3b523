"""Modules of WebAssembly: calls between objects, functions by address, data, layout of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphc.base.errors import CompileError
from graphc.codegen.link.wasm_module import STACK_BYTES, link_wasm
from graphc.codegen.machine.target import target_named
from graphc.compiler.linking import builtins_for
from tests.codegen.link.wasm_objects import FIRST, SECOND, TABLE, call_module, compiled


def module(*exports: str, **options: int) -> bytes:
    objects = [compiled(FIRST), compiled(SECOND)]
    supply = builtins_for(target_named("wasm"))
    return link_wasm(objects, exports, data={"table": TABLE, "unread": bytes(7777)}, supply=supply, **options)


def test_objects_call_each_other_by_name_and_by_address(tmp_path: Path):
    calls = "[e.call(0, 10), e.call(0, 10), e.call(1, 2), e.call(2, 1000), e.end(), e.other(3)]"
    assert call_module(module("call", "end", "other"), tmp_path, calls) == [15, 25, 27 + 102, 675, 103, 30 + 103]


def test_a_module_imports_nothing_and_exports_what_was_asked_for(tmp_path: Path):
    module_bytes = module("call")
    exports = call_module(module_bytes, tmp_path, "Object.keys(e)")
    assert exports == ["memory", "heap", "call"]
    imports = "WebAssembly.Module.imports(new WebAssembly.Module(bytes)).length"
    assert call_module(module_bytes, tmp_path, imports) == 0


def test_what_nothing_reaches_is_dropped_with_its_undefined_names():
    small, large = module("end"), module("end", "call")
    assert len(small) < 160 < len(large)
    with pytest.raises(CompileError, match="the symbol empty is not defined"):
        module("unused")


def test_memory_holds_the_stack_then_data_then_the_heap(tmp_path: Path):
    heap, size = call_module(module("call"), tmp_path, "[e.heap.value, e.memory.buffer.byteLength]")  # type: ignore[misc]
    assert STACK_BYTES + 4000 + len(TABLE) < heap <= size == 2 << 16 and heap % 64 == 0
    assert call_module(module("call", stack_bytes=1 << 20), tmp_path, "e.heap.value") == heap - STACK_BYTES + (1 << 20)


def test_an_overflow_of_the_stack_traps(tmp_path: Path):
    text = """
define i32 @deep(i32 %n) noinline {
  %room = alloca [64 x i32]
  %from = getelementptr i32, ptr %room, i32 3
  store volatile i32 %n, ptr %from
  %more = add i32 %n, 1
  %result = call i32 @deep(i32 %more)
  %value = load volatile i32, ptr %from
  %sum = add i32 %value, %result
  ret i32 %sum
}"""
    expression = '(() => { try { e.deep(0); } catch (error) { return error.message; } return "none"; })()'
    assert call_module(link_wasm([compiled(text)], ["deep"]), tmp_path, expression) == "memory access out of bounds"


def test_equal_operands_give_equal_bytes():
    assert module("call", "end") == module("call", "end") != module("end", "call")


def test_data_beyond_the_address_space_is_refused():
    with pytest.raises(CompileError, match="WebAssembly memory has at most 4294967296"):
        module("call", stack_bytes=1 << 32)


def test_addresses_and_sizes_beyond_two_gigabytes_are_written(tmp_path: Path):
    expression = "[e.end(), e.heap.value >>> 0]"
    module_bytes = module("end", stack_bytes=(1 << 31) + (1 << 20))
    end, heap = call_module(module_bytes, tmp_path, expression)  # type: ignore[misc]
    assert end == 103 and heap > 1 << 31


MADD = """\
declare <4 x float> @f32x4.relaxed_madd({parameters}) nounwind willreturn memory(none)
define float @f(float %x) {{
  %v = insertelement <4 x float> poison, float %x, i32 0
  %r = call <4 x float> @f32x4.relaxed_madd({arguments})
  %e = extractelement <4 x float> %r, i32 0
  ret float %e
}}
"""


def test_a_call_becomes_an_instruction(tmp_path: Path):
    text = MADD.format(parameters=", ".join(["<4 x float>"] * 3), arguments=", ".join(["<4 x float> %v"] * 3))
    module = link_wasm([compiled(text)], ["f"])
    assert b"\xfd\x85\x02" in module and b"madd" not in module
    assert call_module(module, tmp_path, "e.f(3)") == 12


def test_an_instruction_has_its_own_type():
    text = MADD.format(parameters="<4 x float>", arguments="<4 x float> %v")
    with pytest.raises(CompileError, match=r"f32x4\.relaxed_madd is not called as a function of its operands"):
        link_wasm([compiled(text)], ["f"])


HOST = """\
declare i32 @from_host(i32) #0
define i32 @twice(i32 %x) {
  %a = call i32 @from_host(i32 %x)
  %b = call i32 @from_host(i32 %a)
  ret i32 %b
}
attributes #0 = { "wasm-import-module"="outside" "wasm-import-name"="next" }
"""


def test_functions_of_the_host_are_imported(tmp_path: Path):
    code = link_wasm([compiled(HOST)], ["twice"])
    imports = "WebAssembly.Module.imports(module)"
    call = "new WebAssembly.Instance(module, { outside: { next: (x) => 10 * x } }).exports.twice(3)"
    empty = link_wasm([compiled("define i32 @f() {\n  ret i32 0\n}\n")], ["f"])
    (tmp_path / "host.wasm").write_bytes(code)
    expression = f"""(() => {{
      const module = new WebAssembly.Module(require("fs").readFileSync("host.wasm"));
      return [{imports}, {call}];
    }})()"""
    expected = [[{"module": "outside", "name": "next", "kind": "function"}], 300]
    assert call_module(empty, tmp_path, expression) == expected


def test_the_address_of_a_function_of_the_host_cannot_be_taken():
    text = HOST + "define ptr @address() {\n  ret ptr @from_host\n}\n"
    with pytest.raises(CompileError, match="from_host is not defined"):
        link_wasm([compiled(text)], ["address"])
