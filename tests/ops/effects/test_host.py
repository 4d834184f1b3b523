"""host_call: types, order by tokens, and what refuses it."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.dtypes import complex64, float32, int64
from graphc.base.errors import ArgumentError, AttributeValueError, GradientError
from graphc.base.host_function import HostFunction
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.autodiff import vjp_graph
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.effects.host import host_call, interpreting, text_of, types_of
from graphc.ops.pointwise import elementwise as ew
from graphc.passes.pipeline import optimize
from graphc.passes.split_complex import SplitComplex
from graphc.runtime.host_calls import HostRun


def graph_of_two_calls() -> Graph:
    graph = Graph("main")
    x = graph.add_input(TensorType(float32, (2, 3)), "x")
    with dispatch.use(GraphDispatcher(graph)):
        token, doubled = host_call(graph.scalar(0.0, float32), x, number=0, name="double", results="f32[2,3]")
        host_call(token, doubled, number=1, name="look")
        graph.set_outputs([ew.add(doubled, 1.0)])
    return graph


def run(number, arrays):
    return [arrays[0] * 2] if number == 0 else []


def test_types_are_texts():
    types = (TensorType(float32, (2, 3)), TensorType(int64))
    assert text_of(types) == "f32[2,3] i64[]"
    assert types_of("f32[2,3] i64[]") == types and types_of("") == ()
    for text in ("f9[2]", "f32", "f32[2", "f32[a]"):
        with pytest.raises(AttributeValueError, match="is not a type"):
            types_of(text)


def test_interpreted_graphs_call_what_they_are_given():
    seen = []
    with interpreting(lambda number, arrays: seen.append(number) or run(number, arrays)):
        (result,) = evaluate(graph_of_two_calls(), [np.ones((2, 3), np.float32)])
    np.testing.assert_array_equal(result, np.full((2, 3), 3, np.float32))
    assert seen == [0, 1]
    with pytest.raises(ArgumentError, match="calls the Python function double, which it does not contain"):
        evaluate(graph_of_two_calls(), [np.ones((2, 3), np.float32)])


def test_the_text_parses_back():
    graph = graph_of_two_calls()
    assert str(parse_graph(str(graph))) == str(graph)


def test_calls_whose_results_nobody_needs_stay():
    names = [node.op.name for node in optimize(graph_of_two_calls()).nodes()]
    assert names.count("host_call") == 2


def test_what_cannot_be_done_is_refused():
    graph = graph_of_two_calls()
    with pytest.raises(GradientError, match="second derivative would go through the Python function"):
        vjp_graph(graph, [graph.inputs[0]], [0])
    with pytest.raises(ArgumentError, match="does not support batches"):
        gc.vmap(lambda x: host_call(gc.zeros(()), x, number=0, name="f", results="f32[3]")[1])(gc.ones(2, 3))


def test_functions_see_complex_numbers_where_programs_have_pairs():
    graph = Graph("main")
    z = graph.add_input(TensorType(complex64, (2,)), "z")
    with dispatch.use(GraphDispatcher(graph)):
        _, result = host_call(graph.scalar(0.0, float32), ew.mul(z, z), number=0, name="f", results="c64[2]")
        graph.set_outputs([result])
    spec = ((2,), np.dtype(np.complex64))
    function = HostFunction("f", lambda state, z: [np.conj(z)], (spec,), (spec,))
    given = np.array([1 + 2j, 3 - 1j], np.complex64)
    for program in (graph, SplitComplex().run(graph).graph):
        with interpreting(HostRun([function], {}).rewind()):
            (made,) = evaluate(program, [given])
        np.testing.assert_array_equal(made, np.conj(given * given))
    assert "c64" not in [v.dtype.name for n in program.nodes() if n.op is host_call.op for v in n.operands]
    doubled = gc.opaque(lambda z: gc.tensor(z.numpy() * 2), results=lambda z: z)
    assert gc.compile(lambda z: doubled(z * 1j))(gc.tensor(given)).tolist() == [-4 + 2j, 2 + 6j]
