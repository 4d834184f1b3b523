"""Sums of integers start at what is added to them; sums of floats, and totals with other readers, stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

import graphc as gc
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.reduce.initial_values import start_at_addends
from graphc.ir.kernel.statements import Acc, Const, Kernel, Let, walk
from graphc.ops.contraction.byte_product import byte_matmul
from tests.codegen.kernel_native import check_equivalent, check_native, kernel_of, random_memory

TEXT = """
    kernel @k(%a: i32[48] in, %b: i32[16] in, %y: i32[16] out) {
      for i in 16 vector {
        acc s: i32 = add i32(0)
        for k in 3 reduce {
          x: i32 = load %a[3*i + k]
          update s with x
        }
        t = read s
        c: i32 = load %b[i]
        r: i32 = add(t, c)
        store %y[i] = r
      }
    }"""


def changed(text: str) -> tuple[Kernel, list[Acc]]:
    """A kernel after the change, which computes the same, and its accumulators."""
    before = kernel_of(text)
    after = replace(before, body=start_at_addends(before.body))
    check_equivalent(before, after)
    return after, [s for s, _ in walk(after.body) if isinstance(s, Acc)]


@pytest.mark.parametrize("added", ["add(t, c)", "add(c, t)"])
def test_a_sum_starts_at_a_loaded_term(added: str):
    kernel, (acc,) = changed(TEXT.replace("add(t, c)", added))
    assert acc.init == "c" and not any(isinstance(s, Let) for s, _ in walk(kernel.body))
    check_native(kernel, target_named("host"), random_memory(kernel))


def test_a_load_before_the_sum_stays_where_others_read_it():
    early = "c: i32 = load %b[i]\n        d: i32 = mul(c, c)\n        acc s"
    text = TEXT.replace("        c: i32 = load %b[i]\n", "").replace("acc s", early)
    kernel, (acc,) = changed(text.replace("store %y[i] = r", "e: i32 = add(r, d)\n        store %y[i] = e"))
    assert acc.init == "c"
    check_native(kernel, target_named("host"), random_memory(kernel))


def test_a_sum_starts_at_a_constant():
    _, (acc,) = changed(TEXT.replace("add(t, c)", "add(t, i32(7))"))
    assert isinstance(acc.init, Const) and acc.init.value == 7


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i32", "f32"),
        ("add(t, c)", "sub(t, c)"),
        ("add i32(0)", "add i32(3)"),
        ("add i32(0)", "max i32(-2147483648)"),
        ("r: i32 = add(t, c)", "u: i32 = add(t, c)\n        r: i32 = mul(u, t)"),
        ("r: i32 = add(t, c)", "d: i32 = mul(c, c)\n        r: i32 = add(t, d)"),
        ("acc s", "store %y[i] = i32(1)\n        acc s"),
    ],
)
def test_others_stay(old: str, new: str):
    text = TEXT.replace(old, new).replace("add f32(0)", "add f32(0.0)")
    if "store %y[i] = i32(1)" in text:
        text = text.replace("load %b[i]", "load %y[i]").replace("%b: i32[16] in, ", "").replace("out)", "inout)")
    before = kernel_of(text)
    assert start_at_addends(before.body) is before.body


def test_products_of_codes_start_at_their_corrections():
    codes = gc.tensor([[1, 2], [3, 4], [5, 6], [7, 8]], dtype="int8")
    start = gc.tensor([-1000, 1000], dtype="int32")
    compiled = gc.compile(lambda x: byte_matmul(x, codes) + start)
    assert compiled(gc.tensor([[1, 2, 3, 255]], dtype="uint8")).tolist() == [[807, 3068]]
