"""Rows that no shared memory holds."""

from __future__ import annotations

from graphc.codegen.schedule.gpu.spill import spill_rows
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.text import print_program
from graphc.ir.kernel.verify import verify_program

PROGRAM = """program @p {
  input %x: f32[3,5]
  output %y: f32[3,5]
  temp %k0.s: f32[4]

  kernel @k0(%x: f32[15] in, %y: f32[15] out, %s: f32[5] ROLE) threads 32 {
    for i in 3 block {
      for j in 5 thread {
        v1: f32 = load %x[5*i + j]
        store %s[j] = v1
      }
      barrier block
      for k in 5 thread {
        v2: f32 = load %s[4 - k]
        store %y[5*i + k] = v2
      }
    }
  }

  call @k0(%x, %y)
}
"""


def test_scratch_becomes_an_argument_with_a_row_for_each_block():
    found = spill_rows(parse_program(PROGRAM.replace("ROLE", "scratch")))
    verify_program(found)
    text = print_program(found)
    assert "temp %k0.s.1: f32[15]" in text and "%s: f32[15] out" in text
    assert "store %s[5*i + j]" in text and "load %s[5*i - 1*k + 4]" in text and "call @k0(%x, %y, %k0.s.1)" in text


def test_shared_rows_stay():
    program = parse_program(PROGRAM.replace("ROLE", "shared"))
    assert spill_rows(program) is program
