"""Programs on complex arguments: storages of real numbers that callers see as complex ones."""

from __future__ import annotations

import numpy as np

from graphc.base.dtypes import complex64, float32
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.parse import parse_program
from graphc.ir.kernel.text import print_program
from graphc.ir.kernel.verify import verify_program
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects.state import state_write
from graphc.ops.pointwise.elementwise import mul
from graphc.passes.pipeline import optimize
from tests.tensors.against_torch import numbers


def test_arguments_states_and_results_lie_as_callers_have_them():
    graph = Graph("main")
    x = graph.add_input(TensorType(complex64, (3,)), "x")
    state = graph.add_input(TensorType(complex64, (3,)), "s", "state", "the.state")
    with use(GraphDispatcher(graph)):
        product = mul(x, state)
        state_write(state, product)
    graph.set_outputs([product])
    program = lower_graph(optimize(graph))
    verify_program(program)
    assert parse_program(print_program(program)) == program
    bordering = [s for s in program.storages if s.cls in ("input", "state", "output")]
    assert [str(s.outside) for s in bordering] == ["c64[3]"] * 3
    assert {(s.dtype, s.shape) for s in bordering} == {(float32, (3, 2))}
    a, b = numbers(3, dtype=np.complex64), numbers(3, seed=1, dtype=np.complex64)
    written = b.copy()
    (found,) = run_program(program, [a, written])
    np.testing.assert_allclose(found, a * b, rtol=1e-6)
    np.testing.assert_array_equal(written, found)


def test_a_constant_that_is_a_result_lies_as_callers_have_it():
    graph = Graph("main")
    with use(GraphDispatcher(graph)) as made:
        value = np.array([1 + 2j, 3 - 4j], np.complex64)
        graph.set_outputs([made.constant(value)])
    program = lower_graph(optimize(graph))
    assert [storage.complex for storage in program.storages[:1]] == [True]
    np.testing.assert_array_equal(run_program(program, [])[0], [1 + 2j, 3 - 4j])
