"""Phases: kernels whose nests write one buffer in turn become one kernel each, and mean the same."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.codegen.schedule.loops.distribute import distribute_loops
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.verify import verify_program
from graphc.ir.op import REGISTRY
from graphc.ops import registry
from tests.native import lowered
from tests.ops.test_every_op import sample_graph

assert registry.FAMILIES

SCATTER = """
graph @scatter(%x: f32[5,3], %i: i64[4], %u: f32[4,3]) -> (f32[5,3], f32[4,3]) {
  %y = scatter_add(%x, %i, %u) {axis=0} : f32[5,3]
  %e = exp(%u) : f32[4,3]
  return %y, %e
}
"""


def test_fill_and_scatter_are_two_kernels():
    program = lowered(parse_graph(SCATTER))
    phased = distribute_loops(program)
    assert len(phased.calls) == len(program.calls) + 1
    fill, add = (k for k in phased.kernels if k.name.endswith(("_0", "_1")))
    assert [b.role for b in fill.buffers] == ["in", "out"]
    assert [b.role for b in add.buffers] == ["inout", "in", "in"]
    verify_program(phased)
    x, u = np.ones((5, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
    arguments = [x, np.array([4, 0, 4, 2]), u]
    for got, expected in zip(run_program(phased, arguments), run_program(program, arguments), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_other_programs_stay_as_they_are():
    text = "graph @f(%x: f32[5,3]) -> (f32[5,3]) {\n  %y = exp(%x) : f32[5,3]\n  return %y\n}"
    program = lowered(parse_graph(text))
    assert distribute_loops(program) is program


@pytest.mark.parametrize("name", ["scatter_add", "max_pool_grad", "sum", "concat"])
def test_every_sample_means_the_same(name: str):
    op = REGISTRY[name]
    assert op.samples is not None
    for sample in op.samples():
        program = lowered(sample_graph(op, sample.operands, sample.attrs))
        phased = distribute_loops(program)
        verify_program(phased)
        for got, expected in zip(
            run_program(phased, sample.operands), run_program(program, sample.operands), strict=True
        ):
            np.testing.assert_array_equal(got, expected)
