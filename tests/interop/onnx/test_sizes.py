"""Which initializers are numbers of the graph, and no parameters."""

import pytest

pytest.importorskip("onnx")
import numpy as np

import graphc as gc
from graphc.interop.onnx.sizes import asked_constants
from tests.interop.onnx.alike import module_of


def _asked(inits: str, nodes: str) -> set[str]:
    module = module_of(f"(float[2, 3] x, bool c) => (float y) <{inits}> {{ {nodes} }}")
    return asked_constants(module.graph) & module.graph.constants.keys()


def test_what_a_rule_asks_for_is_no_parameter() -> None:
    assert _asked("float w = {1.0}, float v = {2.0}, int64[4] p = {0, 1, 0, 1}", "a = Pad(x, p, v) y = Add(a, w)") == {
        "p",
        "v",
    }


def test_so_is_what_it_is_computed_from() -> None:
    nodes = "s = Concat<axis=0>(i, j) y = Expand(x, s)"
    assert _asked("int64[1] i = {2}, int64[1] j = {3}", nodes) == {"i", "j"}


def test_whole_numbers_of_at_most_one_dimension_are_part_of_the_graph() -> None:
    assert _asked("int64 i = {1}, int64[1, 1] m = {1}", "a = Gather<axis=1>(x, i) y = Gather(a, m)") == {"i"}


def test_graphs_inside_ask_as_well() -> None:
    nodes = """y = If(c) <
        then_branch = t () => (float a) { a = Tile(x, r) }, else_branch = e () => (float b) { b = Identity(x) }
    >"""
    assert _asked("int64[2] r = {1, 1}", nodes) == {"r"}


def test_parameters_are_real_initializers_that_nothing_asks_for() -> None:
    module = module_of(
        "(float[2, 3] x) => (float y) <float w = {1.0}, int64[2] s = {3, 2}> { r = Reshape(x, s) y = Add(r, w) }"
    )
    assert [name for name, _ in module.named_parameters()] == ["w"]
    assert gc.compile(module)(np.zeros((2, 3), np.float32)).tolist() == [[1, 1]] * 3
