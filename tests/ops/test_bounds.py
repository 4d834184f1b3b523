"""Bounds of integer results, compared with the references."""

from __future__ import annotations

import numpy as np
import pytest

import graphc.ops.registry
from graphc.base.sizes.named_dims import Dim
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph
from graphc.ir.op import REGISTRY, OpDef, Trait
from graphc.ops.bounds import least, most
from graphc.passes.checks import integer_ranges

assert graphc.ops.registry.FAMILIES
WITH_RULE = [op for op in REGISTRY.values() if op.bounds is not None]
SAMPLES = [
    pytest.param(op, sample, id=f"{op.name}-{i}")
    for op in WITH_RULE
    if op.samples
    for i, sample in enumerate(op.samples())
]


@pytest.mark.parametrize(("op", "sample"), SAMPLES)
def test_results_lie_within_the_bounds_that_follow_from_those_of_the_operands(op, sample):
    """The operands stand in the graph as constants, whose bounds are their extremes."""
    graph, attrs = Graph("g"), op.normalize(sample.attrs)
    operands = [emit(graph, CONSTANT, (), {"value": array})[0] for array in sample.operands]
    (result,) = emit(graph, op, operands, attrs)
    found = op.evaluate(sample.operands, attrs)[0]
    if found.dtype.kind in "iub" and found.size:
        low, high = integer_ranges(graph)[result]
        assert low <= found.min()
        assert found.max() <= high


def test_all_that_moves_elements_has_a_rule():
    without: list[OpDef] = [op for op in REGISTRY.values() if op.has(Trait.VIEW) and op.bounds is None]
    assert [op.name for op in without] == ["state_read"]  # what is in a state is known at the call only


def test_bounds_are_as_narrow_as_the_operands_allow():
    graph = Graph("g")
    (x,) = emit(graph, CONSTANT, (), {"value": np.array([-2, 3])})
    (y,) = emit(graph, CONSTANT, (), {"value": np.array([4, 5])})
    expected = {"add": (2, 8), "sub": (-7, -1), "mul": (-10, 15), "mod": (0, 4), "minimum": (-2, 3), "maximum": (4, 5)}
    found = {name: emit(graph, REGISTRY[name], (x, y), {})[0] for name in expected}
    ranges = integer_ranges(graph)
    assert {name: ranges[value] for name, value in found.items()} == expected


def test_ends_of_ranges_that_are_sizes_are_compared_for_all_sizes():
    n, m = Dim("n", 1, 8), Dim("m", 4, 9)
    assert (least([n - 1, n, n + 2]), most([0, n - 1])) == (n - 1, n - 1)
    assert (least([n, m]), least([n, m], 1), most([n, m]), most([n, m], 0)) == (1, 8, 9, 4)
    graph = Graph("g")
    (positions,) = emit(graph, REGISTRY["iota"], (), {"shape": (n,), "axis": 0})
    (twice,) = emit(graph, REGISTRY["add"], (positions, positions), {})
    assert integer_ranges(graph) == {positions: (0, n - 1), twice: (0, 2 * n - 2)}
