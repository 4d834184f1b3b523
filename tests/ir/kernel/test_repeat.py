"""Repeated calls: the order in which they run, how long storages live, their text, and what the verifier refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphc.errors import ParseError, VerifyError
from graphc.ir.kernel.index import Axis, as_index
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.repeat import blocks, executions, live_spans, loop_spans, position
from graphc.ir.kernel.statements import Call, Program
from graphc.ir.kernel.text import print_program
from graphc.ir.kernel.verify import verify_program

A, B = Axis("a", 2), Axis("b", 3)
CALLS = (Call("p", ()), Call("q", (), loops=(A,)), Call("r", (), loops=(A, B)), Call("s", ()))
TEXT = """\
program @sums {
  input %x: f32[3,2]
  output %total: f32[2]
  output %steps: f32[3,2]
  temp %t: f32[2]

  kernel @zero(%y: f32[2] out) {
    for i in 2 parallel {
      store %y[i] = f32(0.0)
    }
  }

  kernel @add(%x: f32[2] in, %y: f32[2] inout) {
    for i in 2 parallel {
      v: f32 = load %x[i]
      w: f32 = load %y[i]
      z: f32 = add(v, w)
      store %y[i] = z
    }
  }

  kernel @copy(%x: f32[2] in, %y: f32[2] out) {
    for i in 2 parallel {
      v: f32 = load %x[i]
      store %y[i] = v
    }
  }

  call @zero(%total)
  repeat r0 in 3 {
    call @copy(%x[-2*r0 + 4], %t)
    call @add(%t, %total)
    call @copy(%total, %steps[-2*r0 + 4])
  }
}
"""


def test_order_of_runs():
    runs = [(call.kernel, tuple(at.values())) for call, at in executions(CALLS)]
    inner = [[("q", (i,)), *(("r", (i, j)) for j in range(3))] for i in range(2)]
    assert runs == [("p", ()), *inner[0], *inner[1], ("s", ())]
    assert [c.runs for c in CALLS] == [1, 2, 6, 1]


def test_blocks_of_neighbours():
    found = [(axis, [c.kernel for c in block]) for axis, block in blocks(CALLS)]
    assert found == [(None, ["p"]), (A, ["q", "r"]), (None, ["s"])]
    assert loop_spans(CALLS) == {B: (2, 2), A: (1, 2)}
    assert list(loop_spans(CALLS)) == [B, A]


def test_position_of_a_part():
    assert position(as_index(A) * 5 + as_index(B) + 7, {A: 1, B: 2}) == 14


def test_text_reads_back_and_runs():
    program = parse_program(TEXT)
    verify_program(program)
    assert print_program(program) == TEXT and parse_program(print_program(program)) == program
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    total, stacks = run_program(program, [x])
    np.testing.assert_array_equal(total, x.sum(0))
    np.testing.assert_array_equal(stacks, np.cumsum(x[::-1], axis=0)[::-1])


def test_loops_inside_of_loops_read_back():
    calls = "call @k()\n    repeat b in 3 {\n      call @k()\n    }\n    call @k()"
    text = f"program @p {{\n  kernel @k() {{\n  }}\n\n  repeat a in 2 {{\n    {calls}\n  }}\n  call @k()\n}}\n"
    program = parse_program(text)
    assert [c.loops for c in program.calls] == [(A,), (A, B), (A,), ()]
    assert print_program(program).replace("\n\n", "\n") == text.replace("\n\n", "\n")
    verify_program(program)


def test_what_lives_as_long_as_its_loop():
    program = parse_program(TEXT)
    assert live_spans(program) == {"x": (1, 3), "t": (1, 2), "total": (0, 3), "steps": (1, 3)}
    late = program.calls[2], program.calls[1], program.calls[3]
    swapped = replace(program, calls=(program.calls[0], *late))
    assert live_spans(swapped)["t"] == (1, 3), "the value of the iteration before is read"


def test_places_and_loops_that_are_wrong():
    def refused(message: str, **changes: object) -> None:
        program = parse_program(TEXT)
        calls = [*program.calls]
        calls[1] = replace(calls[1], **changes)
        with pytest.raises(VerifyError, match=message):
            verify_program(replace(program, calls=tuple(calls)))

    loop = Axis("r0", 3)
    refused("%x has 6 elements, not 8", offsets=(as_index(loop) * 2 + 2, as_index(0)))
    refused("is not affine in the enclosing loops", offsets=(as_index(Axis("other", 3)), as_index(0)))
    refused("one base offset per storage", offsets=(as_index(loop),))
    refused("a loop has no iterations", loops=(Axis("none", 0),), offsets=())
    refused("two loops around a call have the same name", loops=(loop, loop))


def test_a_loop_is_one_run_of_neighbours():
    program = parse_program(TEXT)
    apart = Program("p", (), program.kernels, (CALLS[1], CALLS[0], CALLS[1]))
    with pytest.raises(VerifyError, match="the loops a are not all of neighbouring calls"):
        verify_program(apart)
    again = TEXT.replace("  }\n}\n", "  }\n  repeat r0 in 2 {\n  }\n}\n")
    with pytest.raises(ParseError, match="r0 is a loop already"):
        parse_program(again)


def test_memory_that_overlaps_across_iterations():
    planned = TEXT.replace("@sums {", "@sums arena 192 {").replace("temp %t: f32[2]", "temp %t: f32[2] at 64")
    extra = "  call @zero(%u)\n  call @zero(%total)\n"
    program = planned.replace("  call @zero(%total)\n", extra)
    program = program.replace("call @add(%t, %total)\n", "call @add(%t, %total)\n    call @add(%u, %total)\n")
    verify_program(parse_program(program.replace("at 64\n", "at 64\n  temp %u: f32[2] at 128\n")))
    with pytest.raises(VerifyError, match="in use at once"):
        verify_program(parse_program(program.replace("at 64\n", "at 64\n  temp %u: f32[2] at 64\n")))
