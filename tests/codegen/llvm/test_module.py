"""Modules as lists of functions: their texts, and what other parts know of a function."""

from __future__ import annotations

from graphc.codegen.llvm.module import Function, LlvmModule, joined, prefixed

SUM = Function("sum", (("ptr noalias", "%x"), ("i64", "%n")), "entry:\n  ret i64 %n", "i64", "nounwind")
START = Function("start", (), "entry:\n  ret void", local=False, calls=True)


def test_a_function_is_defined_and_declared():
    assert SUM.text == "define internal i64 @sum(ptr noalias %x, i64 %n) nounwind {\nentry:\n  ret i64 %n\n}"
    assert SUM.definition("hidden ") == SUM.text.replace("internal", "hidden")
    assert SUM.declaration == "declare i64 @sum(ptr noalias, i64) nounwind"
    assert START.text == "define void @start() #0 {\nentry:\n  ret void\n}"


def test_the_text_of_a_module_is_that_of_its_parts_in_order():
    module = LlvmModule(("head", SUM, "", START, "tail"))
    assert module.text == f"head\n{SUM.text}\n\n{START.text}\ntail"
    assert module.functions == [SUM, START]
    assert module.outside == "head\n\ntail"


def test_what_a_module_defines_has_a_prefix_and_the_rest_has_none():
    table = "@table = internal constant [2 x i64] zeroinitializer"
    caller = Function("start", (), "  call void @sum(ptr @table)\n  call void @llvm.trap()", local=False, calls=True)
    found = prefixed(LlvmModule(("declare void @llvm.trap()", table, SUM, caller)), "net_")
    assert [f.name for f in found.functions] == ["net_sum", "net_start"]
    assert found.functions[1].body == "  call void @net_sum(ptr @net_table)\n  call void @llvm.trap()"
    assert found.functions[1].local
    assert found.outside == f"declare void @llvm.trap()\n{table.replace('@', '@net_')}"


def test_modules_become_one_with_their_declarations_once():
    first, second = LlvmModule(("declare void @f()", SUM)), LlvmModule(("declare void @f()", START))
    assert joined([first, second]).items == ("declare void @f()", SUM, START)
