"""Graphs on which the compiler fails become small."""

from __future__ import annotations

from graphc.checks import reduce
from tests.checks.planted_faults import chain, failing, names, wrong
from tests.compiler.graphs import arguments, mlp

__all__ = ["failing", "wrong"]


def test_what_is_right_is_no_fault():
    graph, arrays = chain()
    assert reduce.fault_of(graph) is None and reduce.fault_of(graph, arrays) is None


def test_native_code_that_is_wrong_is_reduced_to_the_node(wrong: None):
    graph, arrays = chain()
    fault = reduce.fault_of(graph, arrays)
    assert fault is not None and fault.kind == "wrong" and "BAD" in fault.what
    small, given = reduce.reduced(graph, arrays, lambda *part: reduce.fault_of(*part) is not None)
    assert names(small) == ["maximum"] and given is not None
    assert [a.shape for a in given] == [(3, 5)] and (given[0] < 0).any()
    assert not small.dims  # it is so for the sizes of the call, too


def test_a_compile_that_fails_is_reduced_without_arguments(failing: None):
    graph, _ = chain()
    small, given = reduce.reduced(graph, None, lambda *part: reduce.fault_of(*part) is not None)
    assert names(small) == ["sin"] and given is None
    assert [n.location.line for n in small.nodes()] == [5]


def test_parts_keep_roles_and_give_what_others_read():
    graph, arrays = chain()
    nodes = graph.nodes()
    part, given = reduce.extracted(graph, nodes[:2], dict(zip(graph.inputs, arrays, strict=True)))
    assert [v.node.attrs["path"] for v in part.inputs] == ["", "w"] and given is not None
    assert [v.name for v in part.outputs] == ["b"]


def test_time_is_up_at_some_point(wrong: None):
    graph = mlp()
    same, _ = reduce.reduced(graph, arguments(graph), lambda *_: True, budget=0)
    assert names(same) == names(graph)
