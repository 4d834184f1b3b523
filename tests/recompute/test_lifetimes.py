"""Lifetimes of values before anything is lowered."""

from graphc.base.dtypes import float32
from graphc.codegen.schedule.memory.liveness import intervals, peak
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement.shape import transpose
from graphc.ops.pointwise.elementwise import add
from graphc.ops.pointwise.math import tanh
from graphc.recompute.lifetimes import Lifetimes, Span, profile


def _graph():
    graph = Graph("chain")
    x = graph.add_input(TensorType(float32, (64, 64)), "x")
    with use(GraphDispatcher(graph)):
        a = tanh(x)
        b = matmul(a, x)
        c = matmul(b, transpose(a, permutation=(1, 0)))
        graph.set_outputs([add(matmul(c, x), a)])
    return graph


def test_the_profile_counts_what_is_alive():
    assert profile([Span(4, 0, 2), Span(1, 1, 1), Span(2, 2, 3)], 4) == [4, 5, 6, 2]


def test_readers_are_found_through_views():
    graph = _graph()
    lifetimes = Lifetimes(graph)
    (tanh_value,) = (n.results[0] for n in graph.nodes() if n.op.name == "tanh")
    assert lifetimes.is_stored(tanh_value) and lifetimes.nbytes(tanh_value) == 64 * 64 * 4
    assert lifetimes.readers[tanh_value] == [1, 2, 3]
    (view,) = (n.results[0] for n in graph.nodes() if n.op.name == "transpose")
    assert list(lifetimes.behind(view)) == [tanh_value]


def test_outputs_are_no_temporaries():
    lifetimes = Lifetimes(_graph())
    assert lifetimes.nbytes(lifetimes.graph.outputs[0]) == 0


def test_the_largest_sum_is_that_of_the_lowered_program():
    graph = _graph()
    lifetimes = Lifetimes(graph)
    live = intervals(lower_graph(graph))
    sizes = {i.storage.name: i.storage.nbytes for i in live}
    assert max(profile(lifetimes.spans(), len(lifetimes.plan.groups))) == peak(live, sizes)
