"""Hooks of every kind in compiled functions, which other compilers leave out without a word, fire or raise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import GraphcError
from tests.end_to_end.eager_and_compiled import Program, Wrap, compare, leaf, numbers, seen


def forward_hooks_come_and_go(wrap: Wrap) -> Iterator[Any]:
    net = nn.Sequential(nn.ReLU(), nn.Tanh())
    function, x = wrap(net), numbers(4)
    yield function(x)
    after = net[0].register_forward_hook(lambda module, args, output: output + 1)
    yield function(x)
    before = net[1].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    yield function(x)
    after.remove()
    yield function(x)
    before.remove()
    yield function(x)


def test_forward_hooks_come_and_go():
    compare(seen(forward_hooks_come_and_go, gc.compile), seen(forward_hooks_come_and_go, lambda f: f))


def hooked(name: str, hook: Callable[..., Any]) -> Program:
    """A program whose module gets a hook of a kind after the first call."""

    def program(wrap: Wrap) -> Iterator[Any]:
        net = nn.Sequential(nn.Tanh(), nn.ReLU())
        function = wrap(net)
        function(leaf(4)).sum().backward()
        getattr(net[0], name)(hook)
        x = leaf(4)
        function(x).sum().backward()
        yield x.grad

    return program


def equal_or_refused(program: Program) -> None:
    """The promise itself."""
    expected = seen(program, lambda f: f)
    try:
        found = seen(program, gc.compile)
    except GraphcError as error:
        assert "try" in str(error)
        return
    compare(found, expected)


@pytest.mark.parametrize(
    ("name", "hook"),
    [
        ("register_full_backward_hook", lambda module, gi, go: (gi[0] * 2,)),
        ("register_full_backward_pre_hook", lambda module, go: (go[0] * 2,)),
        ("register_backward_hook", lambda module, gi, go: (gi[0] * 2,)),
    ],
)
def test_backward_hooks_of_modules_fire_or_raise(name: str, hook: Callable[..., Any]):
    equal_or_refused(hooked(name, hook))


def tensor_hook(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        y = x * x
        y.register_hook(lambda g: g * 3)
        return (y * x).sum()

    x = leaf(3)
    wrap(function)(x).backward()
    yield x.grad


def retained(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        y = x * 2
        y.retain_grad()
        return (y * y).sum(), y

    x = leaf(3)
    z, y = wrap(function)(x)
    z.backward()
    yield from (x.grad, y.grad)


def node_hook(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        y = x * 2
        y.grad_fn.register_hook(lambda gi, go: tuple(g if g is None else g * 5 for g in gi))
        return y.sum()

    x = leaf(3)
    wrap(function)(x).backward()
    yield x.grad


def saved(wrap: Wrap) -> Iterator[Any]:
    a, b = leaf(3), leaf(3)
    with gc.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2):
        y = wrap(lambda a, b: a * b)(a, b)
    y.sum().backward()
    yield from (a.grad, b.grad)


def saved_inside(wrap: Wrap) -> Iterator[Any]:
    def function(a: Any, b: Any) -> Any:
        with gc.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2):
            return a * b

    a, b = leaf(3), leaf(3)
    wrap(function)(a, b).sum().backward()
    yield from (a.grad, b.grad)


def result_hook(wrap: Wrap) -> Iterator[Any]:
    x = leaf(3)
    y = wrap(lambda x: x * 2)(x)
    y.register_hook(lambda g: g * 4)
    y.retain_grad()
    y.sum().backward()
    yield from (x.grad, y.grad)


def leaf_hooks(wrap: Wrap) -> Iterator[Any]:
    net = nn.Linear(3, 2)
    net.weight.register_hook(lambda g: g * 4)
    after: list[float] = []
    net.bias.register_post_accumulate_grad_hook(lambda p: after.append(float(p.grad.sum())))
    wrap(net)(gc.ones(4, 3)).sum().backward()
    yield from (net.weight.grad, net.bias.grad, np.array(after))


def functions_mode(wrap: Wrap) -> Iterator[Any]:
    def function(x: Any) -> Any:
        z = x.detach().requires_grad_()
        y = (z**2).sum()
        y.backward()
        return z.grad

    yield wrap(function)(numbers(3))


def returned_argument(wrap: Wrap) -> Iterator[Any]:
    x = numbers(3)
    y, z = wrap(lambda x: (x, x[1:]))(x)
    yield from (y, z)


@pytest.mark.parametrize(
    "program",
    [tensor_hook, retained, node_hook, saved, saved_inside, result_hook, leaf_hooks, functions_mode, returned_argument],
    ids=lambda p: p.__name__,
)
def test_hooks_and_gradients_inside_are_as_in_eager_mode_or_raise(program: Program):
    equal_or_refused(program)
