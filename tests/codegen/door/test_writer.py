"""The writer emits valid LLVM, with fields at the offsets of the layout."""

from __future__ import annotations

import pytest

from graphc.codegen.door.writer import NativeWriter
from graphc.codegen.llvm.build import build_object
from graphc.codegen.machine.target import target_named

LAYOUT = {"List.count": 16, "List.items": 24, "Item.size": 40, "Item.value": 8}


def the_sum(w: NativeWriter) -> None:
    """Stores the sum of the values of a list in its count, or -1 where one is 0."""
    count, items = w.get("i64", "%list", "List.count"), w.get("ptr", "%list", "List.items")
    w.put("i64", "0", "%list", "List.count")
    with w.each(count) as i:
        value = w.get("i64", w.record("Item", items, i), "Item.value")
        w.avoid(w.equal("i64", value, "0"), "bad")
        before = w.get("i64", "%list", "List.count")
        w.put("i64", w.value(f"add i64 {before}, {value}"), "%list", "List.count")
    w.do("ret void")
    w.label("bad")
    w.put("i64", "-1", "%list", "List.count")
    w.do("ret void")


def test_a_function_with_a_loop_is_built():
    writer = NativeWriter(LAYOUT)
    the_sum(writer)
    text = f"define void @the_sum(ptr %list) {{\n{writer.body}\n}}\n"
    assert text.count("i64 16") == 5 and "mul i64 %i" in text and ", 40" in text
    assert b"the_sum" in build_object(text, target_named("sse2"), quick=True)


def test_a_condition_goes_on_behind_it_or_elsewhere():
    writer = NativeWriter(LAYOUT)
    writer.need("%a", "no")
    writer.avoid("%b", "yes")
    entry, first, second = writer.body.split("next")[0], *writer.body.splitlines()[1:4:2]
    assert entry.startswith("entry:")
    assert first == "  br i1 %a, label %next1, label %no" and second == "  br i1 %b, label %yes, label %next2"
    assert writer.block == "next2"


def test_an_unknown_field_is_an_error():
    with pytest.raises(KeyError, match=r"List\.size"):
        NativeWriter(LAYOUT).get("i64", "%list", "List.size")
