"""Graphs are divided into as few native parts as can be, which PyTorch runs around."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
parts: Any = pytest.importorskip("graphc.interop.torch.parts")


def divided(function: Any, *args: Any, refused: str = "atan") -> Any:
    """The division in which PyTorch runs one operator, and the native parts' own."""
    make = torch.fx.experimental.proxy_tensor.make_fx
    module = make(function, tracing_mode="symbolic", _allow_non_fake_inputs=True)(*args)
    chosen = [n for n in module.graph.nodes if refused in str(n.target)]
    division = parts.Division(module, chosen)
    return division, [[n.target._schema.name.removeprefix("aten::") for n in nodes] for nodes in division.native]


def check(function: Any, *args: Any, refused: str = "atan") -> Any:
    """Runs the parts as PyTorch's own graphs, joined, and compares."""
    division, native = divided(function, *args, refused=refused)
    modules = division.subgraphs()
    joined = division.joined([(p, lambda arguments, p=p: p.module(*arguments)) for p in modules])
    arguments = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
    boxed = list(arguments)
    result = joined.forward(boxed)
    assert not boxed
    others = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
    torch.testing.assert_close(result, function(*others))
    torch.testing.assert_close(arguments, others)
    return native, modules


X = torch.linspace(-1, 1, 12).reshape(3, 4)


def test_an_operator_in_the_middle_leaves_a_part_before_and_one_after_it():
    native, modules = check(lambda x: (x.sin() + 1).atan().exp() * 2, X)
    assert native == [["sin", "add"], ["exp", "mul"]]
    assert [len(p.inputs) for p in modules] == [1, 1]


def test_what_pytorch_computes_of_arguments_comes_first_so_that_there_is_one_native_part():
    native, _ = check(lambda x, y: x.atan() + y.sin().exp(), X, X + 1)
    assert native == [["sin", "exp", "add"]]


def test_parts_beside_each_other_are_one():
    native, _ = check(lambda x: (x.sin() * x.cos().atan()).exp() + x.tan(), X)
    assert native == [["sin", "cos", "tan"], ["mul", "exp", "add"]]


def test_views_and_constants_stand_where_they_are_needed():
    def function(x: Any) -> Any:
        y = (x.sin() * 2).t()
        return y.atan().sum() + torch.ones(12).exp(), y.cos() + 1

    native, (modules, last) = check(function, X)
    assert native == [["sin", "mul", "exp", "cos", "add"], ["sum", "add"]]
    assert [n.name for n in modules.outputs] == ["mul", "exp", "add_1"]  # not the view, which PyTorch makes for itself
    assert [n.name for n in last.inputs] == ["atan", "exp"]


def test_results_of_which_there_are_several_cross_one_by_one():
    def function(x: Any) -> Any:
        a, b = torch.var_mean(x.sin() + 1, 1)
        c, d = (b.atan() + a).sort()
        return c.exp() + d * 2, a

    native, modules = check(function, X)
    assert native == [["sin", "add", "var_mean"], ["add", "sort", "exp", "mul", "add"]]
    assert len(modules[0].outputs) == 2


def test_sizes_cross_and_only_plain_ones():
    def function(x: Any) -> Any:
        rows = x.shape[0] * 2 + 1
        y = (x.sin() + 1).atan().sum() * rows
        return y.exp() + torch.full((x.shape[0] + 1,), 2.0)

    native, modules = check(function, X)
    assert native == [["sin", "add"], ["sum", "mul", "exp", "add"]]
    assert [type(parts.value_of(n)).__name__ for n in modules[1].inputs].count("SymInt") == 1


def test_an_operator_alone_between_others_of_pytorch_is_theirs_too():
    division, native = divided(lambda x: (x.sin().exp().atan() + 1).atan().cos() * 2, X)
    assert native == [["sin", "exp"], ["cos", "mul"]]
    assert [n.name for n in division.lonely] == ["add"]


def test_what_is_written_to_arguments_is_written_when_all_has_read_them():
    def function(x: Any, y: Any) -> Any:
        view = x[1:].sin() + 1
        torch.ops.aten.copy_(x, y.atan())
        return view.exp() * 2, x.cos() + 1

    native, _ = check(function, X, X + 1, refused="atan")
    assert native == [["sin", "add"], ["exp", "mul", "cos", "add"]]


def test_random_numbers_keep_their_order():
    def function(x: Any) -> Any:
        a = torch.bernoulli((x.sin().abs() + 1).atan() / 4)
        b = torch.rand(3, 4)
        return a + b.exp() * 2

    _, native = divided(function, X, refused="bernoulli")
    division, _ = divided(function, X, refused="r")
    drawn = [n for n in division.phases if parts.is_ordered(n)]
    assert len(drawn) == 2 and division.phases[drawn[0]] <= division.phases[drawn[1]]
    assert native[-1][-1] == "add"


def test_constants_and_branches_of_the_graph_go_along():
    constant = torch.arange(12.0).reshape(3, 4)
    native, modules = check(lambda x: (x.sin() + constant).atan().exp() * constant, X)
    assert native == [["sin", "add"], ["exp", "mul"]]
    assert all(any(n.op == "get_attr" for n in p.module.graph.nodes) for p in modules)
