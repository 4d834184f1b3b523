"""The record of an instruction: types in the text of LLVM, calls with their declarations, kernels of a type."""

from __future__ import annotations

import pytest

from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.llvm.module import Item
from graphc.codegen.machine.instruction import (
    WIDEN,
    bytes_of,
    call,
    element_of,
    lanes_of,
    of_type,
    suffix_of,
    without_operands,
)
from graphc.codegen.machine.instructions import GATHER
from tests.codegen.kernel_native import kernel_of


@pytest.mark.parametrize(
    ("kind", "lanes", "element", "size", "suffix", "flags"),
    [
        ("<16 x float>", 16, "float", 4, "v16f32", "<16 x i1>"),
        ("<1 x i8>", 1, "i8", 1, "v1i8", "<1 x i1>"),
        ("double", 0, "double", 8, "f64", "i1"),
    ],
)
def test_types_are_read_as_llvm_writes_them(kind: str, lanes: int, element: str, size: int, suffix: str, flags: str):
    assert (lanes_of(kind), element_of(kind), bytes_of(kind), suffix_of(kind)) == (lanes, element, size, suffix)
    assert of_type(kind, "i1") == flags


def test_what_is_called_is_declared():
    declarations: dict[str, Item] = {}
    text = call(FunctionWriter(declarations), "i32", "f", [("i32", "%a"), ("ptr", "%b")])
    assert text == "call i32 @f(i32 %a, ptr %b)" and declarations == {"f": "declare i32 @f(i32, ptr)"}


@pytest.mark.parametrize(("operand", "taken"), [("", ""), ("i32 1", "i32")])
def test_instructions_without_operands_may_take_a_literal(operand: str, taken: str):
    declarations: dict[str, Item] = {}
    text = without_operands("f", operand)(FunctionWriter(declarations), (), "")
    assert text == f"call void @f({operand})" and declarations == {"f": f"declare void @f({taken})"}


def test_a_meaning_is_a_valid_kernel_of_each_type():
    assert kernel_of(GATHER.kernel("<8 x double>", "f64")).buffer("x").size == 8
    assert kernel_of(GATHER.kernel("<16 x i8>", "u8")).buffer("r").dtype.name == "u8"
    assert kernel_of(WIDEN.kernel("float")).buffer("h").size == 1
