"""Forms of kernels: found once, for what the calls bind."""

from __future__ import annotations

from dataclasses import replace

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.forms import Forms, common_loops, constant_buffers
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.statements import Program
from tests.native import lowered
from tests.passes.graph_text import graph_of

LINEAR = """
    graph @linear(%x: f32[64,24], %w: f32[40,24] {cls} "w") -> (f32[64,40]) {
      %y = matmul(%x, %w) {transpose_a=false, transpose_b=true} : f32[64,40]
      return %y
    }"""


def linear(cls: str) -> Program:
    return lowered(graph_of(LINEAR.replace("{cls}", cls)))


def test_a_form_is_found_once_for_a_body_and_what_is_constant():
    kernel = linear("param").kernels[0]
    forms = Forms(target_named("avx512"))
    form = forms.find(kernel, frozenset())
    assert forms.find(replace(kernel, name="other"), frozenset()) is form
    packed = forms.find(kernel, frozenset({kernel.arguments[1].name}))
    assert packed is not form
    assert form.tiled and packed.tiled and packed.cycles <= form.cycles


def test_weights_are_constant_buffers_and_params_are_not():
    for cls, count in (("weight", 1), ("param", 0)):
        program = linear(cls)
        assert len(constant_buffers(program, program.kernels[0])) == count


def test_common_loops_are_the_outermost_ones():
    a, b, c = Axis("a", 2), Axis("b", 3), Axis("c", 4)
    assert [common_loops((a, b), other) for other in ((), (a,), (a, c), (a, b), (a, b, c), (b, a))] == [
        0,
        1,
        1,
        2,
        2,
        0,
    ]
