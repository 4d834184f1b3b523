"""Hooks around compiled functions fire or raise: those of tensors, nodes and saved values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import graphc as gc
from graphc.errors import GraphcError
from tests.end_to_end.eager_and_compiled import Program, Wrap, compare, leaf, numbers, seen


def equal_or_refused(program: Program) -> None:
    """The promise itself."""
    expected = seen(program, lambda f: f)
    try:
        found = seen(program, gc.compile)
    except GraphcError as error:
        assert "try" in str(error)
        return
    compare(found, expected)


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
    [retained, node_hook, saved, saved_inside, result_hook, functions_mode, returned_argument],
    ids=lambda p: p.__name__,
)
def test_hooks_and_gradients_inside_are_as_in_eager_mode_or_raise(program: Program):
    equal_or_refused(program)
