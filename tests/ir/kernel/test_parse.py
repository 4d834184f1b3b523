"""Texts of kernels and programs read back as what was printed; refusals are in the files of wrong programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from graphc.base.dtypes import float32
from graphc.base.sizes.named_dims import Dim
from graphc.base.sizes.size import larger, smaller
from graphc.errors import ParseError
from graphc.ir.kernel.index import Axis, Div, Dynamic, Index, Mod, as_index
from graphc.ir.kernel.parse import parse_kernel, parse_program
from graphc.ir.kernel.statements import Bound, Const, Kernel, Load, Loop
from graphc.ir.kernel.text import collect_data, print_kernel, print_program
from graphc.ir.literal import digest
from tests.ir.random_kernels import kernels


@settings(max_examples=100, deadline=None)
@given(kernels())
def test_random_kernels_read_back(kernel: Kernel):
    assert parse_kernel(print_kernel(kernel)) == kernel


def parse_index(text: str) -> Index:
    (loop,) = parse_kernel(
        f"kernel @k() {{ for i in 8 serial {{ for j in 8 serial {{ v: i64 = index {text} }} }} }}"
    ).body
    return loop.body[0].body[0].index


I0, J0 = as_index(Axis("i", 8)), as_index(Axis("j", 8))


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("0", Index()),
        ("-3", as_index(-3)),
        ("i", I0),
        ("j + i", I0 + J0),
        ("i - j", I0 - J0),
        ("-1*i + 4", 4 - I0),
        ("3*(i + 2)", 3 * I0 + 6),
        ("(i + 2)*3", 3 * I0 + 6),
        ("2*3", as_index(6)),
        ("(i // 3)", I0 // 3),
        ("i // 3", I0 // 3),
        ("(2*i + j) % 5", (2 * I0 + J0) % 5),
        ("7*((2*i + j) // 5 % 2)", (2 * I0 + J0) // 5 % 2 * 7),
        ("-1*i // 3", (-1 * I0) // 3),
        ("5 - 2*(i // 3)", 5 - (I0 // 3) * 2),
        ("3*(i // 3) + (i % 3)", I0),
        ("[n:-1..4] + i", Index(((Dynamic("n", -1, 4), 1),)) + I0),
    ],
)
def test_index_expressions(text: str, index: Index):
    assert parse_index(text) == index
    assert parse_index(str(index)) == index


def test_clamped_sizes_are_part_of_indices():
    text = "dim n = 1..99 hint 9\nkernel @k() {{ for i in n serial {{ v: i64 = index {} }} }}"
    n = Dim("n", 1, 99, hint=9)
    kernel = parse_kernel(text.format("max(n - 3, 0)*i + (n - max(n - 5, 0)) - 1"))
    assert kernel.body[0].body[0].index == as_index(Axis("i", n)) * (larger(n, 3) - 3) + smaller(n, 5) - 1
    assert parse_kernel(print_kernel(kernel)) == kernel


def test_quotients_stay_as_written():
    inside = Index(((Axis("i", 8), 2),))
    assert parse_index("(2*i // 4)").terms == ((Div(inside, 4), 1),)
    assert parse_index("(2*i % 4)").terms == ((Mod(inside, 4), 1),)


def test_comments_and_layout_do_not_count():
    text = """# what it does
    kernel @k(%x: f32[4] in) {  # head
      for i0 in 4   parallel { v1: f32 = load %x[i0]
        if 0 <= i0 < 3   # guard on the next line
        else f32(-0.0) } }"""
    axis = Axis("i0", 4)
    (loop,) = parse_kernel(text).body
    guard = (Bound(as_index(axis), 0, 3),)
    load = Load("v1", "x", as_index(axis), float32, guard, Const(-0.0, float32))
    assert loop == Loop(axis, "parallel", (load,))


PROGRAM = """program @"odd name" arena 192 {
  input %x: f32[2,3]
  param %p0: f32[10] "fc1.weight"
  state %s0: i64[2] "graphc.random"
  output %"y 1": f32[] alias %p0
  constant %c0: i32[4] = i32[4](1, -2, 3, 4)
  constant %c1: f32[5,5] = f32[5,5](sha256:DIGEST)
  temp %t0: f32[4] at 128

  kernel @k() {
  }

  call @k()
  call @k()
}
"""


def test_program_reads_back():
    array = np.arange(25, dtype=np.float32).reshape(5, 5)
    text = PROGRAM.replace("sha256:DIGEST", digest(array))
    program = parse_program(text, {digest(array): array})
    assert print_program(program) == text
    assert collect_data(program).keys() == {digest(array)}
    again = parse_program(print_program(program), collect_data(program))
    assert again == program
    for a, b in zip(program.storages, again.storages, strict=True):
        np.testing.assert_array_equal(a.data, b.data)


def test_data_must_be_what_was_printed():
    array = np.arange(25, dtype=np.float32).reshape(5, 5)
    name = digest(array)
    for wrong in (array + 1, array.astype(np.float64), array.reshape(25)):
        with pytest.raises(ParseError, match=f"the data passed for {name} differ from the printed ones"):
            parse_program(PROGRAM.replace("sha256:DIGEST", name), {name: wrong})


def test_missing_data_name_the_remedy():
    with pytest.raises(ParseError) as error:
        parse_program(PROGRAM.replace("DIGEST", "0" * 16))
    assert error.value.remedy == "pass data=collect_data(...) of the printed object"
