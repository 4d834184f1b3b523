"""Graphs cut in parts: together they compute what the graph computes, and each ends where it should."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.ir.graph.cut import End, cut
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.graph.interpret import evaluate
from graphc.ir.graph.verify import verify_graph
from graphc.tracing.reads import read_flag


def _run(graph: Graph, ends: list[Value], arguments: list[np.ndarray]) -> tuple[list[np.ndarray], list[int]]:
    """Return the outputs of the parts one after the other, and the number of values between them."""
    values = dict(zip(graph.inputs, arguments, strict=True))
    crossing = []
    for part in cut(graph, [[End(value, None)] for value in ends]):
        verify_graph(part.graph)
        values.update(zip(part.outputs, evaluate(part.graph, [values[v] for v in part.inputs]), strict=True))
        crossing.append(len(part.inputs) - len(graph.inputs))
    return [values[v] for v in graph.outputs], crossing


def test_parts_compute_together_what_the_graph_computes() -> None:
    def function(x: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        y = x.exp()
        return y * y.sum(), x + 1

    x = np.float32([1, 2, 3])
    graph = gc.trace(function, gc.from_numpy(x))
    total = next(n for n in graph.nodes() if n.op.name == "sum").result
    outputs, crossing = _run(graph, [total], [x])
    for a, b in zip(outputs, evaluate(graph, [x]), strict=True):
        np.testing.assert_array_equal(a, b)
    assert crossing == [0, 2]  # exp and its sum


def test_constants_and_views_are_computed_in_each_part() -> None:
    def function(x: gc.Tensor) -> gc.Tensor:
        rows = x.reshape(3, 1) * gc.tensor([1.0, 2.0])
        return (rows / rows.sum()) * gc.tensor([1.0, 2.0]) + x.reshape(3, 1)

    x = np.float32([1, 2, 3])
    graph = gc.trace(function, gc.from_numpy(x))
    total = next(n for n in graph.nodes() if n.op.name == "sum").result
    outputs, crossing = _run(graph, [total], [x])
    np.testing.assert_array_equal(outputs[0], evaluate(graph, [x])[0])
    assert crossing == [0, 2]  # the product and its sum


def test_writes_are_in_the_last_part_and_checks_where_they_can_be() -> None:
    norm = gc.nn.BatchNorm1d(2)

    def function(x: gc.Tensor, index: gc.Tensor) -> gc.Tensor:
        return norm(x) * x[index].sum()

    graph = gc.trace(function, gc.from_numpy(np.float32([[1, 2], [3, 5]])), gc.tensor([1, 0]))
    total = next(n for n in graph.nodes() if n.op.name == "sum" and not n.result.shape).result
    first, last = [{n.op.name for n in part.graph.nodes()} for part in cut(graph, [[End(total, None)]])]
    assert "check_index" in first - last
    assert "state_write" in last - first


def test_a_check_of_a_size_comes_after_the_size() -> None:
    f = gc.compile(lambda x: gc.zeros(int(x.shape[0])).index_add(0, x.unique() * 0, gc.ones(x.unique().shape[0])))
    assert f(gc.tensor([1, 1, 2])).tolist() == [2, 0, 0]
    g = gc.compile(lambda x: x.bincount()[x])  # indices are checked against a count
    assert g(gc.tensor([0, 2, 2])).tolist() == [1, 2, 2]


def test_parts_keep_the_assumptions_about_their_sizes() -> None:
    def function(x: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
        return x.sum() + (y.exp() if y.shape[0] > 3 else y)

    graph = gc.trace(function, gc.ones(2), gc.ones(6), dims=[None, (gc.Dim("m"),)])
    total = next(n for n in graph.nodes() if n.op.name == "sum").result
    first, last = cut(graph, [[End(total, None)]])
    assert graph.assumptions and last.graph.assumptions == first.graph.assumptions == graph.assumptions


def _read(purpose: str, condition: gc.Tensor) -> bool:
    return read_flag(condition, purpose)


def test_numbers_that_need_no_other_number_are_read_together() -> None:
    def function(x: gc.Tensor) -> gc.Tensor:
        positive, large = x[x > 0], x[x > 2]  # two counts of the argument
        return positive[positive > 1].sum() + large.sum()  # and one of the first result

    f = gc.compile(function, dims={"x": (gc.Dim("n"),)})
    for values in ([1, -2, 3, 4], [-1, -2], [3, 3, 0]):
        x = np.float32(values)
        assert f(gc.from_numpy(x)).item() == x[x > 1].sum() + x[x > 2].sum()
    assert f.variants[0].paths[0].groups == ([0, 1], [2], [])


def test_only_cheap_numbers_are_read_with_a_condition() -> None:
    def function(x: gc.Tensor, rate: gc.Tensor, mode: gc.Tensor) -> gc.Tensor:
        scaled = x * 2 if _read("the rate", rate > 8) else x
        scaled = scaled + 1 if _read("the mode", mode > 0) else scaled
        return scaled.exp() if _read("the sum", scaled.sum() > 0) else scaled

    f = gc.compile(function)
    for rate, mode, x in ((9, 1, [1.0, 2.0]), (9, 0, [1.0, -2.0]), (1, 1, [-5.0, 1.0]), (9, 1, [1.0, 2.0])):
        y = np.float32(x) * (2 if rate > 8 else 1) + (1 if mode > 0 else 0)
        expected = np.exp(y) if y.sum() > 0 else y
        np.testing.assert_allclose(f(gc.tensor(x), gc.tensor(rate), gc.tensor(mode)).numpy(), expected, rtol=1e-6)
    assert {str(path.groups) for path in f.variants[0].paths} == {"([0, 1], [2], [])"}


def test_a_check_of_one_branch_does_not_stop_the_other() -> None:
    def function(x: gc.Tensor, index: gc.Tensor) -> gc.Tensor:
        return x[index] if _read("the sign", x.sum() > 0) else x * index.sum()

    f = gc.compile(function)
    assert f(gc.tensor([1.0, 2.0]), gc.tensor([1, 0])).tolist() == [2, 1]
    assert f(gc.tensor([-1.0, -2.0]), gc.tensor([7, 1])).tolist() == [-8, -16]  # no index there
    with pytest.raises(gc.errors.IndexRangeError):
        f(gc.tensor([1.0, 2.0]), gc.tensor([7, 1]))
