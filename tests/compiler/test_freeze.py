"""Freezing: what is only read becomes constant, what is written stays, numbers stay."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.compiler.compile import compile_graph
from graphc.compiler.freeze import freeze, freeze_narrow, written_states
from graphc.errors import ArgumentError
from graphc.ir.graph.graph import CONSTANT, input_path
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.verify import verify_graph
from tests.compiler.graphs import MLP, arguments, counter, mlp, weights


def test_params_become_constants_that_keep_their_names():
    graph = mlp()
    arrays = arguments(graph)
    frozen = freeze(graph, weights(graph, arrays))
    verify_graph(frozen)
    assert [v.name for v in frozen.inputs] == ["x"]
    assert {n.results[0].name for n in frozen.nodes() if n.op is CONSTANT and n.results[0].shape} == {"w", "b"}
    for found, expected in zip(evaluate(frozen, arrays[:1]), evaluate(graph, arrays), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert graph == parse_graph(MLP)


def test_arrays_are_shared_and_stay_writeable_for_their_owner():
    graph = mlp()
    arrays = arguments(graph)
    frozen = freeze(graph, weights(graph, arrays))
    held = next(n.attrs["value"] for n in frozen.nodes() if n.op is CONSTANT and n.results[0].name == "w")
    assert np.shares_memory(held, arrays[1]) and arrays[1].flags.writeable


def test_only_what_is_given_is_frozen():
    graph = mlp()
    frozen = freeze(graph, {"fc.bias": np.zeros(32, np.float32)})
    assert [input_path(v) for v in frozen.inputs] == ["", "fc.weight"]


def test_written_states_stay():
    graph = counter()
    assert [v.name for v in written_states(graph)] == ["n"]
    frozen = freeze(graph, {"total": np.zeros(3, np.float32)})
    assert [input_path(v) for v in frozen.inputs] == ["", "total"]
    assert compile_graph(frozen).manifest.of_class("state")[0].written


def test_narrow_weights_are_frozen_optimized_and_narrow():
    text = MLP.replace("f32[32,17]", "f32[32,170]").replace("f32[4,17]", "f32[4,170]")
    graph = parse_graph(text)
    arrays = arguments(graph)
    found = freeze_narrow(graph, weights(graph, arrays), "bf16")
    verify_graph(found.graph)
    assert found.count == 1 and found.params == {} and [v.name for v in found.graph.inputs] == ["x"]
    for got, expected in zip(evaluate(found.graph, arrays[:1]), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-2, atol=5e-2)
    with pytest.raises(ArgumentError, match="no precision"):
        freeze_narrow(graph, {}, "bfloat")
