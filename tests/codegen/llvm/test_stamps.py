"""Stamps: what is written down, and where."""

from __future__ import annotations

import re

from graphc.codegen.llvm.stamps import LEAD, Stamps, stamp_count
from graphc.ir.kernel.parse import parse_program

PROGRAM = parse_program("""
program @p {
  input %x: f32[4]
  output %y: f32[4]

  kernel @k(%x: f32[4] in, %y: f32[4] out) {
    for i0 in 4 parallel {
      v0: f32 = load %x[i0]
      store %y[i0] = v0
    }
  }

  call @k(%x, %y)
}
""")


def written(lines: list[str]) -> list[int]:
    """The words to which lines write, by their addresses."""
    return [int(n) for n in re.findall(r"ptr %ticks, i64 (\d+)", "\n".join(lines))]


def test_words_of_a_program():
    assert stamp_count(PROGRAM) == stamp_count(PROGRAM, each=False) == 1 + LEAD + 2
    stamps = Stamps("llvm.x86.sse2.lfence", True)
    begin = stamps.begin(2)
    assert begin[0] == f"  store i64 {LEAD}, ptr %ticks, align 8"
    assert written(begin) == [LEAD + 3, LEAD + 4, *range(1, LEAD + 1)] and written(stamps.stamp(LEAD)) == [LEAD + 1]


def test_the_stamp_of_a_repeated_call_follows_the_one_before_it():
    stamps = Stamps("llvm.x86.sse2.lfence", True)
    assert written(stamps.repeated(0, 3)) == [LEAD, LEAD + 1, LEAD + 4]
    assert sum("readcyclecounter" in line for line in [*stamps.before_run(0), *stamps.after_run(0)]) == 2
    assert set(stamps.declarations.values()) == {
        "declare i64 @llvm.readcyclecounter()",
        "declare void @llvm.x86.sse2.lfence()",
    }
