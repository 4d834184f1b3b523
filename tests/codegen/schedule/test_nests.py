"""Nests of a program: register blocks with packed operands, each with its reason, in an equivalent program."""

from __future__ import annotations

import numpy as np

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.base import Context, Scheduled
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.nests import Nests
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.verify import verify_program
from tests.native import lowered
from tests.passes.check_pass import random_arguments
from tests.passes.graph_text import graph_of

LINEAR = graph_of("""
    graph @linear(%x: f32[64,24], %w: f32[40,24]) -> (f32[64,40]) {
      %y = matmul(%x, %w) {transpose_a=false, transpose_b=true} : f32[64,40]
      return %y
    }""")


def test_a_product_is_packed_for_its_register_block():
    program = lowered(LINEAR)
    result = Nests().run(Scheduled(program), Context(Forms(target_named("avx512"))))
    made = result.scheduled.program
    verify_program(made)
    assert [c.kernel for c in made.calls] == [f"{program.calls[0].kernel}_pack", program.calls[0].kernel]
    assert result.changed == 4
    assert result.reasons[0].startswith(f"{program.calls[0].kernel}: register block ")
    arguments = random_arguments(LINEAR)
    for got, wanted in zip(run_program(made, arguments), run_program(program, arguments), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
