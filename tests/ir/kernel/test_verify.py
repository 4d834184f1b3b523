"""The verifier of kernels and programs, on files of wrong ones and on right ones that need its subtler parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.base.dtypes import float32, uint8
from graphc.errors import ParseError, VerifyError
from graphc.ir.kernel.parse import parse_kernel, parse_program
from graphc.ir.kernel.statements import Buffer, Const, Kernel, Let, Storage, Store
from graphc.ir.kernel.verify import verify_kernel, verify_program
from tests.ir.cases import Case, message_under, read_cases

RIGHT = {
    "row sums": """
kernel @k(%x: f32[4096] in, %y: f32[64] out) {
  for i0 in 64 parallel {
    acc a1: f32 = add f32(0.0)
    for i1 in 64 reduce {
      v1: f32 = load %x[64*i0 + i1]
      update a1 with v1
    }
    v2 = read a1
    store %y[i0] = v2
  }
}
""",
    "siblings reuse names": """
kernel @k(%y: i64[8] out) {
  for i0 in 4 parallel {
    v1: i64 = index i0
    store %y[i0] = v1
  }
  for i0 in 3 parallel {
    v1: i64 = index i0
    store %y[i0 + 4] = v1
  }
}
""",
    "two-dimensional guard": """
kernel @k(%x: f32[784] in, %y: f32[900] out) {
  for i0 in 30 parallel {
    for i1 in 30 parallel {
      v1: f32 = load %x[28*i0 + i1 - 29] if 0 <= i0 - 1 < 28 and 0 <= i1 - 1 < 28 else f32(0.0)
      store %y[30*i0 + i1] = v1
    }
  }
}
""",
    "guard at the tail of a tiled loop": """
kernel @k(%x: f32[100] in, %y: f32[100] out) {
  for o in 13 parallel {
    for l in 8 vector {
      v1: f32 = load %x[8*o + l] if 0 <= 8*o + l < 100 else f32(0.0)
      store %y[8*o + l] = v1 if 0 <= 8*o + l < 100
    }
  }
}
""",
    "only enumeration shows that it fits": """
kernel @k(%x: f32[100] in, %y: f32[90] out) {
  for i0 in 90 parallel {
    v1: f32 = load %x[30*(i0 % 3) + (i0 // 3) + 10*((i0 + 1) % 2)]
    store %y[i0] = v1
  }
}
""",
    "versions, one of which runs": """
dim n = 1..8 hint 4
kernel @k(%x: f32[16*n] in, %y: f32[16*n] out) {
  for w in -((n + 6) // 8) + 1 version {
    for i in 16 parallel {
      v: f32 = load %x[i]
      store %y[i] = v
    }
  }
  for z in ((n + 6) // 8) version {
    for i in 16*n parallel {
      v: f32 = load %x[i]
      store %y[i] = v
    }
  }
}
""",
    "memory asked for beyond a buffer": """
kernel @k(%x: f32[8] in, %y: f32[8] out) {
  for i0 in 8 parallel {
    prefetch %x[i0 + 8]
    v1: f32 = load %x[i0]
    store %y[i0] = v1
  }
}
""",
    "guard leaves one iteration": """
kernel @k(%y: f32[1] out) {
  for i0 in 8 parallel {
    store %y[0] = f32(1.0) if 3 <= i0 < 4
  }
}
""",
    "place computed inside the loop": """
kernel @k(%i: i64[8] in, %y: f32[4] out) {
  for i0 in 8 parallel {
    v1: i64 = load %i[i0]
    store %y[[v1:0..3]] = f32(1.0)
  }
}
""",
    "combining store": """
kernel @k(%y: f32[1] inout) {
  for i0 in 8 parallel {
    store %y[0] add= f32(1.0)
  }
}
""",
    "scratch reused by every iteration": """
kernel @k(%y: f32[8] out, %t: f32[1] scratch) {
  for i0 in 8 parallel {
    store %t[0] = f32(1.0)
    v1: f32 = load %t[0]
    store %y[i0] = v1
  }
}
""",
    "lanes of an accumulator": """
kernel @k(%x: f32[64] in, %y: f32[1] out) {
  acc a1: f32 = add f32(0.0)
  for i0 in 4 reduce {
    for i1 in 2 unroll {
      for i2 in 8 vector {
        v1: f32 = load %x[16*i0 + 8*i1 + i2]
        update a1 with v1
      }
    }
  }
  v2 = read a1
  store %y[0] = v2
}
""",
    "a sum of the first elements": """
kernel @k(%n: i64[1] in, %x: f32[64] in, %y: f32[1] out) {
  v1: i64 = load %n[0]
  acc a1: f32 = add f32(0.0)
  for i0 in 64 reduce until v1 {
    v2: f32 = load %x[i0]
    update a1 with v2
  }
  v3 = read a1
  store %y[0] = v3
}
""",
    "accumulator read in an outer reduce loop": """
kernel @k(%y: f32[1] inout) {
  for i0 in 4 reduce {
    acc a1: f32 = add f32(0.0)
    for i1 in 4 reduce {
      update a1 with f32(1.0)
    }
    v1 = read a1
    store %y[0] add= v1
  }
}
""",
    "nothing runs": """
kernel @k(%x: f32[0] in, %y: f32[0] out) {
  for i0 in 0 parallel {
    for i1 in 4 parallel {
      v1: f32 = load %x[4*i0 + i1]
      store %y[4*i0 + i1] = v1
    }
  }
}
""",
}

PROGRAM = """
program @p arena 256 {
  input %x: f32[4]
  param %w: f32[4] "fc.weight"
  output %y: f32[2,2]
  output %z: f32[4] alias %x
  temp %t: f32[4] at 0
  temp %u: f32[4] at 0
  temp %v: f32[4] alias %w

  kernel @copy(%x: f32[4] in, %y: f32[4] out) {
    for i0 in 4 parallel {
      v1: f32 = load %x[i0]
      store %y[i0] = v1
    }
  }

  kernel @add(%x: f32[4] in, %y: f32[4] inout) {
    for i0 in 4 parallel {
      v1: f32 = load %x[i0]
      store %y[i0] add= v1
    }
  }

  call @copy(%x, %t)
  call @add(%t, %w)
  call @add(%w, %v)
  call @copy(%v, %u)
  call @copy(%u, %y)
}
"""

PANEL = """
dim t = 1..1300 hint 1100
program @p arena 64*((t + 15) // 16) + 1024 {
  output %y: f32[1]
  temp %t: f32[128*((t + 31) // 32) - 256*((t + 63) // 64) + 256] at 0

  kernel @fill(%x: f32[128*((t + 31) // 32) - 256*((t + 63) // 64) + 256] out, %y: f32[1] out) {
    store %x[0] = f32(0.0)
    store %y[0] = f32(0.0)
  }

  call @fill(%t, %y)
}
"""
"""One or two panels for what is left over from 64 rows, beside the scratch memory of a row."""


@pytest.mark.parametrize("case", read_cases("wrong_kernels.gck", "#"))
def test_wrong_kernel(case: Case):
    if not case.line:
        with pytest.raises(ParseError) as parse_error:
            parse_kernel(case.text)
        assert parse_error.value.what == case.message
        return
    with pytest.raises(VerifyError) as error:
        verify_kernel(parse_kernel(case.text))
    assert error.value.what == f"@k: {case.message}"
    assert message_under(error.value.where or "", case.line) == case.message


@pytest.mark.parametrize("case", read_cases("wrong_programs.gck", "#"))
def test_wrong_program(case: Case):
    if not case.line:
        with pytest.raises(ParseError) as parse_error:
            parse_program(case.text)
        assert parse_error.value.what == case.message
        return
    with pytest.raises(VerifyError) as error:
        verify_program(parse_program(case.text))
    assert error.value.what == f"@p: {case.message}"
    assert message_under(error.value.where or "", case.line) == case.message


@pytest.mark.parametrize("text", [pytest.param(t, id=n.replace(" ", "-")) for n, t in RIGHT.items()])
def test_right_kernel(text: str):
    verify_kernel(parse_kernel(text))


def test_right_program():
    verify_program(parse_program(PROGRAM))


def test_a_call_may_read_one_part_of_memory_and_write_another():
    kernel = "kernel @k(%x: f32[4] in, %y: f32[4] out) {\n v1: f32 = load %x[0]\n store %y[0] = v1\n }"
    verify_program(parse_program(f'program @p {{\n state %w: f32[8] "w"\n {kernel}\n call @k(%w[0], %w[4])\n}}'))


def test_temporaries_end_before_the_scratch_memory():
    program = parse_program(PROGRAM)
    verify_program(replace(program, scratch=192))
    with pytest.raises(VerifyError, match="%t ends at 16 of 0 bytes"):
        verify_program(replace(program, scratch=256))


def test_a_temporary_is_compared_with_what_is_before_scratch_memory_of_any_size():
    program = parse_program(PANEL)
    scratch = program.arena - 1024
    verify_program(replace(program, scratch=scratch))
    with pytest.raises(VerifyError, match=r"%t ends at .* of 960 bytes"):
        verify_program(replace(program, arena=program.arena - 64, scratch=scratch))


def test_wrong_kernel_in_a_program_is_shown_itself():
    with pytest.raises(VerifyError, match="@add: v2 is not defined here"):
        verify_program(parse_program(PROGRAM.replace("add= v1", "add= v2")))


def test_whole_message():
    kernel = parse_kernel(RIGHT["row sums"].replace("64*i0 + i1", "64*i0 + i1 + 1"))
    with pytest.raises(VerifyError) as error:
        verify_kernel(kernel)
    assert str(error.value) == (
        "@k: index 64*i0 + i1 + 1 lies in 1..4096, %x has 4096 elements\n"
        "  where  line 5\n"
        "    2 |   for i0 in 64 parallel {\n"
        "    3 |     acc a1: f32 = add f32(0.0)\n"
        "    4 |     for i1 in 64 reduce {\n"
        "    5 |       v1: f32 = load %x[64*i0 + i1 + 1]\n"
        "      |       ^ index 64*i0 + i1 + 1 lies in 1..4096, %x has 4096 elements\n"
        "    6 |       update a1 with v1\n"
        "    7 |     }\n"
        "    8 |     v2 = read a1"
    )


@pytest.mark.parametrize(
    ("const", "message"),
    [
        (Const(0.1, float32), "literal 0.1 is not rounded to f32"),
        (Const(1, float32), "literal 1 is not of type f32"),
        (Const(True, uint8), "literal True is not of type u8"),
        (Const(300, uint8), "literal 300 is not rounded to u8"),
    ],
)
def test_literals_have_their_type(const: Const, message: str):
    kernel = Kernel("k", (Buffer("y", const.dtype, 1, "out"),), (Let("v1", "neg", (const,), const.dtype),))
    with pytest.raises(VerifyError, match=message):
        verify_kernel(kernel)


def test_unusual_literals_are_right():
    values = [float("nan"), float("inf"), -0.0]
    body = tuple(Let(f"v{i}", "neg", (Const(v, float32),), float32) for i, v in enumerate(values))
    verify_kernel(Kernel("k", (), body))


def test_store_of_an_unknown_combine():
    from_outside = Store("y", parse_index(), Const(1.0, float32), (), "sub")
    with pytest.raises(VerifyError, match="sub is not one of add, mul, max, min, and, or"):
        verify_kernel(Kernel("k", (Buffer("y", float32, 1, "inout"),), (from_outside,)))


def parse_index():
    (stmt,) = parse_kernel("kernel @k(%y: f32[1] out) { store %y[0] = f32(1.0) }").body
    return stmt.index


def test_storage_class_and_data():
    program = parse_program("program @p { }")
    wrong = Storage("x", float32, (2,), "arg")
    with pytest.raises(VerifyError, match="storage class arg is not one of"):
        verify_program(type(program)("p", (wrong,), (), ()))
    wrong = Storage("x", float32, (2,), "constant", data=np.zeros(3, np.float32))
    with pytest.raises(VerifyError, match=r"the data are float32\[3\]"):
        verify_program(type(program)("p", (wrong,), (), ()))
