"""Graphs within graphs: branches, loops, and regions without gradients."""

from __future__ import annotations

from typing import Any

import pytest

import graphc
from graphc.errors import UnsupportedError
from graphc.interop.aten.graph import AtenGraph, Ref, Step
from graphc.interop.aten.run import Runner

X = Ref("x")
DOUBLE = AtenGraph("double", ["x"], [Step("y", "aten.mul.Tensor", (X, 2))], (Ref("y"),))
NEGATE = AtenGraph("negate", ["x"], [Step("y", "aten.neg.default", (X,))], (Ref("y"),))
SUMS = AtenGraph("sums", ["c", "x"], [Step("y", "aten.add.Tensor", (Ref("c"), X))], (Ref("y"), Ref("y")))
LESS = AtenGraph("less", ["x"], [Step("y", "aten.lt.Scalar", (X, 100))], Ref("y"))


def run(target: str, *args: Any, **graphs: AtenGraph) -> Any:
    inputs = [name for name in ("p", "x") if any(name == getattr(a, "name", "") for a in _flat(args))]
    return Runner(AtenGraph("main", inputs, [Step("r", target, args)], Ref("r"), dict(graphs)))


def _flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _flat(part)] if isinstance(value, (list, tuple)) else [value]


def test_cond_takes_the_branch_that_its_predicate_says():
    branch = run("higher_order.cond", Ref("p"), Ref("yes"), Ref("no"), [X], yes=DOUBLE, no=NEGATE)
    x = graphc.tensor([1.0, 2.0])
    assert branch(graphc.tensor(True), x)[0].tolist() == [2, 4]
    assert branch(graphc.tensor(False), x)[0].tolist() == [-1, -2]
    compiled = graphc.compile(branch)
    assert compiled(graphc.tensor(True), x)[0].tolist() == [2, 4]
    assert compiled(graphc.tensor(False), x)[0].tolist() == [-1, -2]


def test_cond_with_gradients_has_them_eagerly_and_is_refused_compiled():
    branch = run("higher_order.cond", Ref("p"), Ref("yes"), Ref("no"), [X], yes=DOUBLE, no=NEGATE)
    x = graphc.tensor([1.0, 2.0], requires_grad=True)
    branch(graphc.tensor(True), x)[0].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]
    with pytest.raises(UnsupportedError, match="cond with gradients"):
        graphc.compile(branch)(graphc.tensor(True), x)


def test_cond_with_different_numbers_is_refused_compiled():
    numbered = [AtenGraph(f"give_{n}", ["x"], [], (X, n)) for n in (1, 2)]
    branch = run("higher_order.cond", Ref("p"), Ref("yes"), Ref("no"), [X], yes=numbered[0], no=numbered[1])
    assert branch(graphc.tensor(False), graphc.ones(1))[1] == 2
    with pytest.raises(UnsupportedError, match="cond whose branches give different numbers"):
        graphc.compile(branch)(graphc.tensor(False), graphc.ones(1))


def test_while_loop_repeats_eagerly_and_compiled():
    loop = run("higher_order.while_loop", Ref("test"), Ref("body"), [X], test=LESS, body=DOUBLE)
    assert loop(graphc.tensor(3.0))[0].item() == graphc.compile(loop)(graphc.tensor(3.0))[0].item() == 192


def test_scan_hands_on_what_a_step_gives_and_stacks_the_rest():
    total = run("higher_order.scan", Ref("body"), [Ref("p")], [X], [], body=SUMS)
    args = graphc.zeros(2), graphc.tensor([[1.0, 2.0], [3.0, 4.0]])
    for function in (total, graphc.compile(total)):
        last, sums = function(*args)
        assert last.tolist() == [4, 6] and sums.tolist() == [[1, 2], [4, 6]]


def test_map_applies_a_graph_to_each_slice():
    each = run("higher_order.map_impl", Ref("body"), [X], [], body=DOUBLE)
    assert each(graphc.tensor([[1.0], [2.0]]))[0].tolist() == [[2], [4]]


def test_a_region_without_gradients_gives_none():
    region = run("higher_order.wrap_with_set_grad_enabled", False, Ref("body"), X, body=DOUBLE)
    x = graphc.tensor([1.0], requires_grad=True)
    assert not region(x)[0].requires_grad and graphc.is_grad_enabled()


def test_autocast_is_run_where_it_is_off_and_refused_where_it_is_on():
    for enabled in (False, True):
        region = run("higher_order.wrap_with_autocast", "cpu", None, enabled, None, Ref("body"), X, body=DOUBLE)
        if enabled:
            with pytest.raises(UnsupportedError, match="autocast"):
                region(graphc.ones(1))
        else:
            assert region(graphc.ones(1))[0].tolist() == [2]
