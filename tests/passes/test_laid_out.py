"""Concatenations that Python functions are given."""

import pytest

from graphc.base.dtypes import float32
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects.host import host_call
from graphc.ops.movement.shape import concat
from graphc.ops.pointwise.elementwise import add, mul
from graphc.ops.pointwise.math import exp
from graphc.passes.laid_out import laid_out, starts


def _graph(shapes, axis=0, other=False):
    """A function gets the concatenation of what is computed; with ``other`` something else reads it, too."""
    graph = Graph("g")
    inputs = [graph.add_input(TensorType(float32, shape), f"x{i}") for i, shape in enumerate(shapes)]
    with use(GraphDispatcher(graph)):
        whole = concat(*[exp(x) for x in inputs], axis=axis)
        _, result = host_call(graph.scalar(0.0, float32), whole, number=0, name="f", results="f32[2]")
        graph.set_outputs([result, mul(whole, 2.0)] if other else [result])
    return graph, whole.node


def test_parts_that_are_stretches_are_laid_out():
    graph, node = _graph([(2, 3), (4, 3)])
    assert laid_out(graph) == {node} and starts(node) == [0, 6]


def test_parts_side_by_side_along_another_axis_are_none_unless_there_is_one_row():
    assert not laid_out(_graph([(2, 3), (2, 4)], axis=1)[0])
    graph, node = _graph([(1, 3), (1, 4)], axis=1)
    assert laid_out(graph) == {node} and starts(node) == [0, 3]


def test_what_others_read_too_is_computed_by_them():
    assert not laid_out(_graph([(2,), (3,)], other=True)[0])


def test_each_part_is_computed_by_a_call_that_writes_to_its_place():
    program = lower_graph(_graph([(2, 3), (4, 3)])[0])
    kernels = {k.name: k for k in program.kernels}
    writes = [c for c in program.calls if kernels[c.kernel].host < 0 and c.args[-1].startswith("concat")]
    assert [c.offset(1).constant for c in writes] == [0, 6]


@pytest.mark.parametrize("twice", [False, True])
def test_what_has_another_place_already_is_copied(twice):
    graph = Graph("g")
    x = graph.add_input(TensorType(float32, (3,)), "x")
    with use(GraphDispatcher(graph)):
        y = exp(x)
        whole = concat(y, y if twice else x, add(y, 1.0), axis=0)
        _, result = host_call(graph.scalar(0.0, float32), whole, number=0, name="f", results="f32[2]")
        graph.set_outputs([result])
    program = lower_graph(graph)
    name = whole.name
    places = sorted(
        c.offset(i).constant for c in program.calls for i, a in enumerate(c.args) if a == name and c.offsets
    )
    assert {0, 3, 6} <= set(places)
