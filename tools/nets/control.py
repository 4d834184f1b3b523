"""Random programs of branches, loops and random numbers: compiled code must equal eager mode, state by state.

``python -m tools.nets.control --seconds N --seed S --results FILE``; a case is named ``way:number``.
"""

from __future__ import annotations

import itertools
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn
from graphc.base.difference import EXACT, Tolerance, difference, largest
from graphc.errors import GradientError, TraceError
from tools.nets.entries import entries
from tools.nets.run import DIFFERENT, EQUAL, FAILED, REFUSED, Net, Outcome, main

WAYS = ("call", "loop", "function", "step", "twice", "batch")
"""Calls without gradients (loops need no bound then), with gradients, a compiled training function, a compiled step,
second derivatives, and calls of ``vmap``."""
CALLS = 4
TOLERANCE = 1e-9
"""Relative to the largest element."""
REFUSALS = ("while_loop: a function checks an index", "the loss does not depend on any parameter")
"""Refusals of compiled code: checks in unbounded loops, and steps without effect."""
f64 = gc.float64

State = tuple[Any, Any]
"""f64[3,4] and an i64 number."""
Part = Callable[[State], State]


class BranchingModel(nn.Module):
    """A random program of parts that take and give a state."""

    def __init__(self, number: int, mode: str):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.drop, self.norm = nn.Dropout(0.4), nn.BatchNorm1d(4)
        self.register_buffer("seen", gc.zeros(4, dtype=f64))
        self.choice = random.Random(number)
        self.way = mode
        self.bounded = mode != "call"
        self.draws = mode != "batch" and self.choice.random() < 0.8
        self.part = self.sequence(3, writes=mode != "batch")

    def forward(self, x: Any, n: Any) -> Any:
        x, n = self.part((x, n))
        return x + 0.01 * n.to(f64)

    # ---- parts

    def sequence(self, depth: int, writes: bool = False) -> Part:
        """Return a few parts one after the other."""
        steps = [self.any_part(depth, writes) for _ in range(self.choice.randint(1, 3))]

        def run(state: State) -> State:
            for step in steps:
                state = step(state)
            return state

        return run

    def any_part(self, depth: int, writes: bool) -> Part:
        """Return a construct with parts of its own, or at the end of the depth an operation."""
        if depth and self.choice.random() < 0.7:
            return self.choice.choice(CONSTRUCTS)(self, depth - 1, writes)
        return self.operation(writes)

    def operation(self, writes: bool) -> Part:
        """Return a change of the state."""
        layer, scale = self.choice.choice(list(self.layers)), self.choice.uniform(-1.2, 1.2)
        operations: list[Part] = [
            lambda s: (layer(s[0]).tanh(), s[1] + 1),
            lambda s: (s[0] * scale + s[0].mean(1, keepdim=True), s[1] * 3 % 7),
            lambda s: (gc.sin(s[0]) + s[1].to(f64) * 0.1, s[1]),
            lambda s: (s[0].flip(1) - s[0].sum() * 0.05, (s[0][0, 0] * 3).to(gc.int64).abs()),
            lambda s: (gc.softmax(s[0], 1) + scale, s[1] + (s[0].sum() > scale).to(gc.int64)),
            lambda s: (s[0][s[1].abs() % 3] * 0.3 + s[0], s[1]),
        ]
        if self.draws:
            operations += [
                lambda s: (self.drop(s[0]), s[1]),
                lambda s: (s[0] + gc.rand(3, 4, dtype=f64), s[1]),
                lambda s: (s[0] * gc.randn(4, dtype=f64) * 0.5, s[1] + gc.randint(0, 3, ()).to(gc.int64)),
            ]
        if writes:
            operations += [lambda s: (self.norm(s[0]), s[1]), self.count]
        return self.choice.choice(operations)

    def count(self, state: State) -> State:
        """Write to a buffer, and read it."""
        with gc.no_grad():
            self.seen.mul_(0.5).add_(state[0].mean(0))
        return state[0] + self.seen, state[1]

    def test(self) -> Callable[[State], Any]:
        """Return a condition on the state."""
        limit = self.choice.uniform(-0.5, 1.5)
        tests: list[Callable[[State], Any]] = [
            lambda s: s[0].sum() > limit,
            lambda s: s[1] % 2 == 0,
            lambda s: (s[0].mean() < limit) & (s[1] < 5),
        ]
        if self.draws:
            tests.append(lambda s: gc.rand(()) < 0.5)
        return self.choice.choice(tests)


def moved(state: State, i: Any) -> State:
    """Return a state that depends on the number of an iteration."""
    return state[0] + i.to(f64) * 0.01, state[1]


_TEXT = """
cond:
    test, f, g = m.test(), m.sequence(depth, writes), m.sequence(depth, writes)
    return lambda s: gc.cond(test(s), lambda x, n: f((x, n)), lambda x, n: g((x, n)), s)
switch:
    branches = [m.sequence(depth, writes) for _ in range(m.choice.randint(2, 4))]
    return lambda s: gc.switch(s[1] % 4, [lambda x, n, p=p: p((x, n)) for p in branches], s)
while:
    body, test, most = m.sequence(depth), m.test(), m.choice.randint(0, 4)
    bound = m.choice.randint(0, 5) if m.bounded or m.choice.random() < 0.3 else None
    more = lambda s: (s[0] < most) & test(s[1])
    return lambda s: gc.while_loop(more, lambda t: (t[0] + 1, body(t[1])), (gc.tensor(0), s), max_steps=bound)[1]
fori:
    body, last = m.sequence(depth), m.choice.randint(0, 4)
    if m.choice.random() < 0.5:
        return lambda s: gc.fori_loop(0, last, lambda i, t: moved(body(t), i), s)
    bound = 3 if m.bounded else None
    return lambda s: gc.fori_loop(0, s[1] % 4, lambda i, t: moved(body(t), i), s, max_steps=bound)
scan:
    body, reverse = m.sequence(depth), m.choice.random() < 0.5
    def step(state, row):
        x, n = body((state[0] * 0.7 + row, state[1]))
        return (x, n), x[0]
    def run(state):
        (x, n), rows = gc.scan(step, state, state[0], reverse=reverse)
        return x + rows, n
    return run
map:
    body = m.sequence(depth)
    return lambda s: (gc.map(lambda row: body((row.expand(3, 4), s[1]))[0].mean(0), s[0]), s[1])
partial_sums:
    reverse = m.choice.random() < 0.5
    combine = lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1])
    def run(state):
        x = gc.cat([state[0]] * 4)
        sums = gc.associative_scan(combine, (gc.tanh(x), x), reverse=reverse)[1]
        return sums[4:7].tanh(), state[1]
    return run
checkpoint:
    body = m.sequence(depth, writes)
    return lambda s: gc.checkpoint(body, s)
"""
_ENTRIES = {e.name: e.function for e in entries(_TEXT, "m, depth, writes", {"gc": gc, "moved": moved})}
_WEIGHTED = "cond cond switch while while fori scan map partial_sums checkpoint"
CONSTRUCTS = [_ENTRIES[name] for name in _WEIGHTED.split()]
"""Functions of a model, a depth and whether buffers may be written, which return a construct with parts of its own."""


# ---- judging


def inputs(number: int, mode: str) -> Iterator[tuple[Any, Any]]:
    """Yield the arguments of the calls."""
    chance = np.random.default_rng(number)
    for _ in range(CALLS):
        shape = (2, 3, 4) if mode == "batch" else (3, 4)
        count = chance.integers(0, 5, 2) if mode == "batch" else chance.integers(0, 5)
        yield gc.tensor(chance.standard_normal(shape)), gc.tensor(count)


def run(number: int, mode: str, compiled: bool) -> list[np.ndarray]:
    """Return the results of the calls, with gradients, buffers and the random state after each."""
    gc.manual_seed(number)
    model = BranchingModel(number, mode).double()
    gc.manual_seed(number + 1)
    call = RUNS[mode](model, compiled)
    results: list[np.ndarray] = []
    for x, n in inputs(number, mode):
        results += call(x, n)
        results += [b.numpy().copy() for b in model.buffers()]
        results.append(gc.get_rng_state().numpy().copy())
    return [*results, *(p.detach().numpy().copy() for p in model.parameters()), gc.rand(2, dtype=f64).numpy()]


Calls = Callable[[Any, Any], list[np.ndarray]]


def _call(model: BranchingModel, compiled: bool) -> Calls:
    function = gc.compile(model) if compiled else model

    def call(x: Any, n: Any) -> list[np.ndarray]:
        with gc.no_grad():
            return [function(x, n).numpy()]

    return call


def _batch(model: BranchingModel, compiled: bool) -> Calls:
    # Each entry by itself in eager mode; buffers and random numbers are left out.
    def each(x: Any, n: Any) -> Any:
        return gc.stack([model(a, b) for a, b in zip(x, n, strict=True)])

    function = gc.compile(gc.vmap(model)) if compiled else each

    def call(x: Any, n: Any) -> list[np.ndarray]:
        with gc.no_grad():
            return [function(x, n).numpy()]

    return call


def _gradients(model: BranchingModel, x: Any) -> list[np.ndarray]:
    """Return the gradients. Compiled code returns zeros after an untaken branch, where eager mode has None."""
    tensors = [x, *model.parameters()]
    return [np.zeros(t.shape) if t.grad is None else t.grad.numpy().copy() for t in tensors]


def _loop(model: BranchingModel, compiled: bool) -> Calls:
    function = gc.compile(model) if compiled else model

    def call(x: Any, n: Any) -> list[np.ndarray]:
        model.zero_grad()
        x.requires_grad_()
        y = function(x, n)
        (y * y).sum().backward()
        return [y.detach().numpy(), *_gradients(model, x)]

    return call


def _twice(model: BranchingModel, compiled: bool) -> Calls:
    function = gc.compile(model) if compiled else model

    def call(x: Any, n: Any) -> list[np.ndarray]:
        model.zero_grad()
        x.requires_grad_()
        y = function(x, n)
        (first,) = gc.autograd.grad((y * y).sum(), [x], create_graph=True)
        if first.requires_grad:
            (first * first).sum().backward()
        return [first.detach().numpy(), *_gradients(model, x)]

    return call


def _trainer(model: BranchingModel) -> tuple[Any, Callable[[Any, Any], Any]]:
    # Without momentum, since a gradient of zeros moves weights that a missing gradient leaves.
    optimizer = gc.optim.SGD(model.parameters(), lr=0.05)

    def train(x: Any, n: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x, n) ** 2).mean()
        if loss.requires_grad:
            loss.backward()
        optimizer.step()
        return loss

    return optimizer, train


def _function(model: BranchingModel, compiled: bool) -> Calls:
    train = _trainer(model)[1]
    step = gc.compile(train) if compiled else train
    return lambda x, n: [step(x, n).detach().numpy()]


def _step(model: BranchingModel, compiled: bool) -> Calls:
    optimizer, train = _trainer(model)
    step = gc.compile_step(model, lambda y: (y**2).mean(), optimizer) if compiled else None

    def call(x: Any, n: Any) -> list[np.ndarray]:
        loss = train(x, n) if step is None else step((x, n))
        return [loss.detach().numpy()]

    return call


RUNS: dict[str, Callable[[BranchingModel, bool], Calls]] = {
    "call": _call,
    "loop": _loop,
    "function": _function,
    "step": _step,
    "twice": _twice,
    "batch": _batch,
}


def cases(seed: int) -> Iterator[str]:
    """Yield each way in turn, with new programs."""
    for number in itertools.count(seed * 1_000_000):
        yield f"{WAYS[number % len(WAYS)]}:{number}"


def judge(case: str) -> Outcome:
    """Compare compiled code with eager mode; programs that only eager mode can run must raise a typed error."""
    mode, number = case.split(":")
    with np.errstate(all="ignore"):
        expected = run(int(number), mode, False)
        try:
            compiled = run(int(number), mode, True)
        except (TraceError, GradientError) as error:
            is_expected = any(text in str(error) for text in REFUSALS)
            return Outcome(REFUSED if is_expected else FAILED, str(error))
        except Exception:
            return Outcome(FAILED, traceback.format_exc())
    for i, (a, b) in enumerate(zip(expected, compiled, strict=True)):
        allowed = Tolerance(TOLERANCE, TOLERANCE * max(1.0, largest(a))) if a.dtype.kind == "f" else EXACT
        apart = difference(f"array {i}", b, a, allowed, same_dtype=True)
        if not apart.is_within:
            return Outcome(DIFFERENT, str(apart))
    return Outcome(EQUAL)


NET = Net("control", __doc__ or "", cases, judge)

if __name__ == "__main__":
    sys.exit(main(NET))
