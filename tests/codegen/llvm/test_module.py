"""Modules as lists of functions: their texts, and what other parts know of a function."""

from __future__ import annotations

from graphc.codegen.llvm.module import Function, Module

SUM = Function("sum", (("ptr noalias", "%x"), ("i64", "%n")), "entry:\n  ret i64 %n", "i64", "nounwind")
START = Function("start", (), "entry:\n  ret void", local=False, calls=True)


def test_a_function_is_defined_and_declared():
    assert SUM.text == "define internal i64 @sum(ptr noalias %x, i64 %n) nounwind {\nentry:\n  ret i64 %n\n}"
    assert SUM.definition("hidden ") == SUM.text.replace("internal", "hidden")
    assert SUM.declaration == "declare hidden i64 @sum(ptr noalias, i64) nounwind"
    assert START.text == "define void @start() #0 {\nentry:\n  ret void\n}"


def test_the_text_of_a_module_is_that_of_its_parts_in_order():
    module = Module(("head", SUM, "", START, "tail"))
    assert module.text == f"head\n{SUM.text}\n\n{START.text}\ntail"
    assert module.functions == [SUM, START]
    assert module.outside == "head\n\ntail"
