"""Nodes of the autograd graph."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import graphc
from graphc.errors import GradientError
from graphc.tape.node import AccumulateGrad, Node, freed, leaves_behind, run_hooks


def test_names_and_edges():
    x = graphc.ones(2, requires_grad=True)
    y = (x.max() * graphc.ones(1)).isnan()
    assert y.grad_fn is None
    z = x.amax() * 2
    assert z.grad_fn.name() == "MulBackward" and repr(z.grad_fn) == "<MulBackward>"
    (first, zero), (second, _) = z.grad_fn.next_functions
    assert first.name() == "MaxBackward" and zero == 0 and second is None
    assert isinstance(first.next_functions[0][0], AccumulateGrad)


def test_operands_are_older():
    x = graphc.ones(1, requires_grad=True)
    y = (x * 2).exp()
    node = y.grad_fn
    assert node.sequence > node.next_functions[0][0].sequence > node.next_functions[0][0].next_functions[0][0].sequence


def test_a_leaf_has_one_accumulator_while_it_is_used():
    x = graphc.ones(1, requires_grad=True)
    y, z = x * 2, x * 3
    assert y.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[0][0]


def test_hooks_run_in_order_and_keep_the_count():
    hooks = OrderedDict({0: lambda g: None, 1: lambda g: g[0] + 1, 2: lambda g: (g[0] * 10,)})
    assert run_hooks(hooks, (1,)) == (20,)
    hooks[3] = lambda g: (1, 2)
    with pytest.raises(GradientError, match="returned 2 gradients, expected 1"):
        run_hooks(hooks, (1,))


def test_the_base_has_no_gradient():
    with pytest.raises(NotImplementedError):
        Node().run([])
    assert "retain_graph=True" in str(freed())


def test_leaves_behind_nodes_are_found_with_the_first_that_reaches_them():
    a, b, c = (graphc.ones(2).requires_grad_() for _ in range(3))
    first, second = a * 2 + a, (a + b).sum() + c.detach().sum()
    assert leaves_behind([first.grad_fn, None, second.grad_fn]) == {id(a): 0, id(b): 2}
