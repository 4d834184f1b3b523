"""Bringing symbols together: one definition for each name, functions on demand, blocks of data."""

from __future__ import annotations

import pytest

from graphc.codegen.link.resolve import DATA, resolve
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named
from graphc.errors import CompileError
from tests.codegen.link.objects import TABLE, built

TARGET = target_named("sse2")


def code(text: str) -> bytes:
    return build_object(f'target triple = "{TARGET.triple}"\n{text}', TARGET)


def test_what_nobody_defines_is_missing():
    assert sorted(resolve([built("sse2")]).missing) == ["fmod", "memset", "table"]


def test_a_block_of_data_is_a_definition_on_a_page_of_its_own():
    program = resolve([built("sse2")], {"table": TABLE})
    assert "table" not in program.missing
    (section,) = program.data
    assert (section.name, section.data, section.alignment) == (f"{DATA}.table", TABLE, 4096)


def test_functions_are_supplied_when_they_are_called_and_may_call_others():
    asked = []
    texts = {
        "f": "declare i32 @g()\ndefine hidden i32 @f() {\n  %x = call i32 @g()\n  ret i32 %x\n}",
        "g": "define hidden i32 @g() {\n  ret i32 3\n}",
    }

    def supply(name: str) -> bytes | None:
        asked.append(name)
        return code(texts[name]) if name in texts else None

    main = "declare i32 @f()\ndeclare i32 @h()\ndefine i32 @main() {\n  %x = call i32 @f()\n"
    main += "  %y = call i32 @h()\n  %z = add i32 %x, %y\n  ret i32 %z\n}"
    program = resolve([code(main)], supply=supply)
    assert sorted(asked) == ["f", "g", "h"] and list(program.missing) == ["h"]


def test_a_name_that_is_defined_twice_is_refused_but_for_a_weak_one():
    strong, weak = "define i32 @f() {\n  ret i32 1\n}", "define weak i32 @f() {\n  ret i32 2\n}"
    with pytest.raises(CompileError, match="f is defined twice"):
        resolve([code(strong), code(strong)])
    for order in ([strong, weak], [weak, strong]):
        assert resolve([code(text) for text in order]).defined["f"].binding == 1


def test_machines_are_not_mixed():
    with pytest.raises(CompileError, match="several machines"):
        resolve([built("sse2"), built("neon")])
    with pytest.raises(CompileError, match="no object code"):
        resolve([])


def test_flags_of_the_processor_are_kept():
    assert resolve([built("rv64gc")]).flags == 5, "compressed instructions, and f64 in registers"
    assert resolve([built("sse2")]).flags == 0
