"""Nested containers as arguments, carries and results of all functions that take functions, eager and compiled."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.tensors.structure import flatten


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass
class Record:
    a: Any
    b: Any
    name: str = "static"


@dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any
    order: int = 3


@dataclass(slots=True, kw_only=True)
class Slots:
    a: Any
    b: Any


@dataclass
class Prepared:
    a: Any
    b: Any
    count: int = field(default=2, init=False)

    def __post_init__(self):
        self.count += 3


def members(tree):
    return tree.a, tree.b


def items(tree):
    return tree["a"], tree["b"]


KINDS = {
    "tuple": (lambda a, b: (a, (b,)), lambda t: (t[0], t[1][0])),
    "list": (lambda a, b: [a, [b]], lambda t: (t[0], t[1][0])),
    "dict": (lambda a, b: {"a": a, "b": {"c": b}}, lambda t: (t["a"], t["b"]["c"])),
    "OrderedDict": (lambda a, b: OrderedDict(a=a, b=b), items),
    "defaultdict": (lambda a, b: defaultdict(int, a=a, b=b), items),
    "named tuple": (Pair, members),
    "dataclass": (Record, members),
    "frozen dataclass": (Frozen, members),
    "dataclass with slots": (lambda a, b: Slots(a=a, b=b), members),
    "dataclass with __post_init__": (Prepared, members),
    "all of them": (lambda a, b: {"p": Record(a, [Pair(b, None)])}, lambda t: (t["p"].a, t["p"].b[0].a)),
}
A, B = gc.tensor([1.0, 2.0], dtype=gc.float64), gc.tensor([3.0], dtype=gc.float64)


class Uses:
    """Calls of each entry point with one kind of container."""

    def __init__(self, kind):
        self.make, self.get = KINDS[kind]
        self.tree = self.make(A, B)
        self.rows = self.make(gc.stack([A, A * 2, A * 3]), gc.stack([B, B * 2, B * 3]))

    def step(self, tree):
        a, b = self.get(tree)
        return self.make(a * 0.5 + b, (b * a.sum()).tanh())

    def loss(self, tree):
        a, b = self.get(tree)
        return (a**2).sum() * b.sum()

    def twice(self, tree):
        return self.make(*(v * 2 for v in self.get(tree)))

    def more(self, tree):
        return self.get(tree)[0].sum() < 6


ENTRIES = {
    "scan, carry": lambda u: gc.scan(lambda c, x: (u.step(c), x), u.tree, gc.ones(3))[0],
    "scan, sequences and results": lambda u: gc.scan(lambda c, x: (c + u.get(x)[1], u.twice(x)), B, u.rows)[1],
    "while_loop": lambda u: gc.while_loop(u.more, u.step, u.tree),
    "while_loop, bounded": lambda u: gc.while_loop(u.more, u.step, u.tree, max_steps=4),
    "fori_loop": lambda u: gc.fori_loop(0, 3, lambda i, c: u.step(c), u.tree),
    "cond": lambda u: gc.cond(A.sum() > 9, u.twice, u.step, (u.tree,)),
    "switch": lambda u: gc.switch(gc.tensor(1), [u.twice, u.step, u.twice], (u.tree,)),
    "map": lambda u: gc.map(u.twice, u.rows),
    "associative_scan": lambda u: gc.associative_scan(
        lambda p, q: u.make(*(x + y for x, y in zip(u.get(p), u.get(q), strict=True))), u.rows
    ),
    "checkpoint": lambda u: gc.checkpoint(u.step, u.tree),
    "vmap": lambda u: gc.vmap(u.step)(u.rows),
    "vmap, dims": lambda u: gc.vmap(u.step, (u.make(1, None),), u.make(1, 0))(u.make(gc.stack([A, B + A], 1), B)),
    "grad": lambda u: gc.grad(u.loss)(u.tree),
    "value_and_grad": lambda u: gc.func.value_and_grad(u.loss)(u.tree),
    "vjp": lambda u: (lambda output, pull: pull(output))(*gc.vjp(u.step, u.tree)),
    "jvp": lambda u: gc.jvp(u.step, (u.tree,), (u.tree,)),
    "linearize": lambda u: gc.func.linearize(u.step, u.tree)[1](u.tree),
    "jacrev": lambda u: gc.func.jacrev(u.step)(u.tree),
    "jacfwd": lambda u: gc.func.jacfwd(u.step)(u.tree),
    "hessian": lambda u: gc.func.hessian(u.loss)(u.tree),
    "functional.jacobian": lambda u: gc.autograd.functional.jacobian(u.step, (u.tree,)),
    "functional.hessian": lambda u: gc.autograd.functional.hessian(u.loss, (u.tree,)),
    "functional.hvp": lambda u: gc.autograd.functional.hvp(u.loss, (u.tree,), (u.tree,)),
    "functional.vjp": lambda u: gc.autograd.functional.vjp(u.step, (u.tree,), u.tree),
    "compile": lambda u: gc.compile(u.step)(u.tree),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_container_everywhere(entry, kind):
    use = ENTRIES[entry]
    expected = flatten(use(Uses("tuple")))[0]
    uses = Uses(kind)
    eager, compiled = use(uses), gc.compile(lambda: use(uses))()
    assert flatten(eager)[1] == flatten(compiled)[1]
    for result in (eager, compiled):
        leaves = flatten(result)[0]
        for actual, tensor in zip(leaves, expected, strict=True):
            np.testing.assert_allclose(actual.numpy(), tensor.numpy(), rtol=1e-12)


def swapped(tree):
    return {"b": tree["b"] * 2, "a": tree["a"] + 1}


@pytest.mark.parametrize(
    "function",
    [
        lambda t: gc.scan(lambda c, x: (swapped(c), None), t, gc.ones(3))[0],
        lambda t: gc.while_loop(lambda c: c["a"].sum() < 9, swapped, t),
        lambda t: gc.while_loop(lambda c: c["a"].sum() < 9, swapped, t, max_steps=9),
        lambda t: gc.cond(t["a"].sum() > 0, swapped, lambda t: {"a": t["a"], "b": t["b"]}, (t,)),
        lambda t: gc.associative_scan(lambda p, q: {"b": p["b"] * q["b"], "a": p["a"] + q["a"]}, t),
        lambda t: gc.jvp(lambda t: t["a"] * t["b"], (t,), ({"b": t["b"] * 0, "a": t["a"]},))[1],
    ],
)
def test_keys_of_dictionaries_in_another_order(function):
    tree = {"a": gc.tensor([1.0, 2.0]), "b": gc.tensor([3.0, 5.0])}
    for actual, expected in zip(flatten(gc.compile(function)(tree))[0], flatten(function(tree))[0], strict=True):
        np.testing.assert_allclose(actual.numpy(), expected.numpy())


def test_modules_are_arguments():
    model, x = nn.Linear(3, 2), gc.ones(4, 3)
    expected = model(x).sum().item()

    def step(carry, row):
        return (carry[0], carry[1] + carry[0](row).sum()), None

    def chosen(x):
        return gc.cond(x.sum() > 0, lambda m, x: m(x).sum(), lambda m, x: m(x).mean(), (model, x))

    results = [
        gc.compile(lambda m, x: m(x).sum())(model, x),
        gc.vmap(lambda m, x: m(x).sum(), in_dims=(None, 0))(model, x).sum(),
        gc.compile(chosen)(x),
        gc.compile(lambda x: gc.scan(step, (model, gc.tensor(0.0)), x)[0][1])(x),
    ]
    np.testing.assert_allclose([r.item() for r in results], expected, rtol=1e-5)
    with pytest.raises(gc.errors.ArgumentError, match="named_parameters"):
        gc.grad(lambda m, x: m(x).sum())(model, x)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "tuple" not in kind])
def test_training_steps(kind):
    # A tuple is a list of arguments of the model.
    make, get = KINDS[kind]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(gc.ones(2))

        def forward(self, tree):
            a, b = get(tree)
            return make(a * self.w, b)

    def loss(output, target):
        return ((get(output)[0] - get(target)[0]) ** 2).sum()

    model = Model()
    step = gc.compile_step(model, loss, gc.optim.SGD(model.parameters(), lr=0.1))
    x = make(gc.tensor([1.0, 2.0]), gc.tensor([1.0]))
    assert step(x, make(gc.zeros(2), gc.zeros(1))).item() == 5
    np.testing.assert_allclose(model.w.detach().numpy(), [0.8, 0.2], rtol=1e-5)
