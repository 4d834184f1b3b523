"""Edges, hooks on several tensors, anomaly mode, node hooks at leaves."""

from __future__ import annotations

import pytest

import graphc
from graphc.autograd import graph
from graphc.errors import ArgumentError, GradientError


def pieces():
    x = graphc.tensor([1.0, 2.0], requires_grad=True)
    return x, x * 2, x + 1


def test_a_hook_on_all_runs_once_with_all_gradients():
    x, a, b = pieces()
    seen = []
    handle = graph.register_multi_grad_hook([a, x, b], seen.append)
    (a * b).sum().backward(retain_graph=True)
    assert len(seen) == 1
    assert [g.tolist() for g in seen[0]] == [[2, 3], [6, 10], [2, 4]]
    (a.sum()).backward(retain_graph=True)
    assert [g is None for g in seen[1]] == [False, False, True]
    handle.remove()
    handle.remove()
    (a * b).sum().backward()
    assert len(seen) == 2


def test_a_hook_on_any_runs_with_the_first_gradient():
    _, a, b = pieces()
    seen = []
    with graph.register_multi_grad_hook((a, b), seen.append, mode="any"):
        (a * b).sum().backward()
    assert len(seen) == 1
    with pytest.raises(ArgumentError, match="mode"):
        graph.register_multi_grad_hook((a, b), seen.append, mode="some")


def test_only_what_leads_to_the_inputs_counts():
    x, a, b = pieces()
    y = graphc.tensor(1.0, requires_grad=True)
    seen = []
    graph.register_multi_grad_hook([a, y], seen.append)
    graphc.autograd.grad((a * b).sum() * y, x)
    assert seen[0][1] is None and seen[0][0].tolist() == [2, 3]


def test_edges_of_tensors():
    x, a, _ = pieces()
    edge = graph.get_gradient_edge(a)
    assert edge.node is a.grad_fn and edge.output_nr == 0
    assert graph.get_gradient_edge(x).node is a.grad_fn.next_functions[0][0]


def test_hooks_of_a_leaf_run_around_its_accumulation():
    x = graphc.tensor([1.0], requires_grad=True)
    order = []
    node = graph.get_gradient_edge(x).node
    x.register_hook(lambda g: order.append("tensor"))
    node.register_prehook(lambda g: order.append("before"))
    node.register_hook(lambda gi, go: order.append(("after", len(gi), len(go))))
    x.register_post_accumulate_grad_hook(lambda p: order.append(p.grad.item()))
    (x * 3).sum().backward()
    assert order == ["tensor", "before", 3.0, ("after", 0, 1)]


def test_anomaly_mode_names_the_line():
    x = graphc.tensor([0.0, 1.0], requires_grad=True)
    with graphc.autograd.detect_anomaly():
        y = (x / x).sqrt()
        with pytest.raises(GradientError) as caught:
            y.sum().backward()
    assert "test_graph.py" in str(caught.value) and "(x / x).sqrt()" in str(caught.value)
    with graphc.autograd.detect_anomaly(check_nan=False):
        (x / x).sum().backward()
    with graphc.autograd.set_detect_anomaly(True):
        assert graphc.autograd.is_anomaly_enabled() and graphc.autograd.is_anomaly_check_nan_enabled()
    assert not graphc.autograd.is_anomaly_enabled()


def test_nodes_carry_notes():
    _, a, _ = pieces()
    a.grad_fn.metadata["who"] = "me"
    assert a.grad_fn.metadata == {"who": "me"}


def test_saved_tensors_go_through_hooks():
    x = graphc.tensor([1.0, 2.0, 3.0], requires_grad=True)
    kept, read = [], []

    def pack(tensor):
        assert not tensor.requires_grad and not graphc.is_grad_enabled()
        kept.append(tensor.numpy().copy())
        return len(kept) - 1

    def unpack(number):
        read.append(number)
        return graphc.from_numpy(kept[number])

    with graph.saved_tensors_hooks(pack, unpack):
        y = x.exp()
    z = (y * x).sum()
    assert len(kept) == 2 and not read
    (first,) = graphc.autograd.grad(z, x, create_graph=True)
    assert len(read) == 1  # The result of exp alone.
    (second,) = graphc.autograd.grad(first.sum(), x)
    value = x.detach()
    assert graphc.allclose(first.detach(), value.exp() * (1 + value))
    assert graphc.allclose(second, value.exp() * (2 + value))


def test_the_innermost_hooks_count_and_none_is_no_freed_value():
    x = graphc.ones(2, requires_grad=True)
    outer = []
    with graph.saved_tensors_hooks(outer.append, lambda _: graphc.ones(2)):
        with graph.saved_tensors_hooks(lambda t: None, lambda _: graphc.full((2,), 3.0)):
            y = x * x
        assert not outer
        z = x * 2
    assert len(outer) == 3 and z.requires_grad
    assert graphc.autograd.grad(y.sum(), x)[0].tolist() == [6, 6]


def test_saved_tensors_of_custom_functions_go_through_hooks():
    class Square(graphc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = graphc.tensor([1.0, -2.0], requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t * 10, lambda t: t / 10):
        y = Square.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [2, -4]


def test_a_pair_of_hooks_works_inside_of_a_trace():
    def function(x):
        with graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
            y = (x * x).sum()
        return graphc.autograd.grad(y, x)[0]

    x = graphc.tensor([1.0, 2.0], requires_grad=True)
    assert function(x).tolist() == [2, 4]
    traced = graphc.trace(function, x)
    assert any(node.op.name == "cast" for node in traced.nodes())
    assert graphc.compile(function)(x).tolist() == [2, 4]


def test_an_unpack_hook_returns_what_was_saved():
    x = graphc.ones(2, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: graphc.ones(3)):
        y = x * x
    with pytest.raises(
        GradientError, match=r"the unpack hook of an operand of mul returned f32\[3\], expected f32\[2\]"
    ):
        y.sum().backward()
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 1.0):
        y = x * x
    with pytest.raises(GradientError, match="returned float"):
        y.sum().backward()
