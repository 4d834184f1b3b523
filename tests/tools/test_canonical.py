"""Numbered names: programs that differ in names alone have one text, other programs have different ones."""

from __future__ import annotations

from dataclasses import replace

from graphc.codegen.machine.target import target_named
from graphc.compiler.stages import Stages
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.verify import verify_program
from tools import cases
from tools.canonical import canonical_llvm, canonical_program

PROGRAM = """
program @{name} arena 64 {{
  input %{x}: f32[4,8]
  param %w: f32[8] "fc.weight"
  output %out0: f32[4]
  temp %{t}: f32[8] at 0

  kernel @{k}(%{b}: f32[8] in, %c: f32[8] out) {{
    for {i} in 8 parallel {{
      {v}: f32 = load %{b}[{i}]
      v2: f32 = mul({v}, f32(2.0))
      store %c[{i}] = v2
    }}
  }}

  kernel @k1(%b0: f32[32] in, %b1: f32[8] in, %b2: f32[4] out) {{
    for {i} in 4 parallel {{
      acc {acc}: f32 = add f32(0.0)
      for {j} in 8 reduce {{
        v1: f32 = load %b0[8*{i} + {j}]
        v2: f32 = load %b1[{j}]
        v3: f32 = mul(v1, v2)
        update {acc} with v3
      }}
      v4 = read {acc}
      store %b2[{i}] = v4
    }}
  }}

  call @{k}(%w, %{t})
  call @k1(%{x}, %{t}, %out0)
}}
"""
NAMES = dict(name="f", x="x", t="t0", k="k0", b="b0", i="i0", j="i1", v="v1", acc="acc0")
OTHERS = dict(name="g", x="z", t="packed", k="double", b="b9", i="z_7", j="a_1", v="v1.4", acc="a")


def canonical(text: str) -> str:
    program = parse_program(text)
    verify_program(program)
    return canonical_program(program)


def test_names_make_no_difference():
    assert canonical(PROGRAM.format(**NAMES)) == canonical(PROGRAM.format(**OTHERS))


def test_everything_else_does():
    text = PROGRAM.format(**NAMES)
    changes = (
        ("f32(2.0)", "f32(3.0)"),
        ("= mul(v1, v2)", "= add(v1, v2)"),
        ("8*i0 + i1", "i0 + 4*i1"),
        ("8 parallel", "8 serial"),
        ("arena 64", "arena 128"),
        ("fc.weight", "fc.bias"),
        ("acc0: f32 = add", "acc0: f32 = max"),
    )
    for old, new in changes:
        assert old in text
        assert canonical(text) != canonical(text.replace(old, new)), old


def test_the_text_is_a_program_again():
    for _, graph in cases.graphs(["lstm_b1_t64"]):
        stages = Stages(graph, target=target_named("avx2"), tuned={})
        program = stages.scheduled
        again = canonical_program(program)
        renamed = replace(program, kernels=tuple(replace(k, origin=()) for k in program.kernels))
        assert again.count("\n") == len(stages.text("scheduled").splitlines())
        assert canonical_program(renamed) == again


LLVM = """
declare float @llvm.exp.f32(float)

define internal void @{k}(ptr %{a}) #0 {{
entry:
  br label %{l}
{l}:
  %{v} = load float, ptr %{a}
  ret void
}}

define void @graphc_entry(ptr %table) #0 {{
  call void @{k}(ptr %table)
  ret void
}}
"""


def test_llvm_names_make_no_difference_and_symbols_do():
    text = LLVM.format(k="k0", a="b0", l="loop", v="v1")
    assert canonical_llvm(text) == canonical_llvm(LLVM.format(k="double", a="x.1", l="again", v="t"))
    assert canonical_llvm(text) != canonical_llvm(text.replace("graphc_entry", "other"))
    assert canonical_llvm(text) != canonical_llvm(text.replace("load float", "load double"))
    assert canonical_llvm(text) != canonical_llvm(text.replace("ptr %table)\n  ret", "ptr null)\n  ret"))
