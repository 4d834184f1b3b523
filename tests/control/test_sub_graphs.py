"""Random numbers and writes in branches and loops: the same numbers, gradients and states eager and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import TraceError
from graphc.tensors.structure import flatten

f64 = gc.float64


class Noisy(nn.Module):
    """Draws in branches and loops within each other, and between them."""

    def __init__(self):
        super().__init__()
        self.layer, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)

    def mix(self, x):
        return self.drop(self.layer(x)).tanh() + gc.rand(4, dtype=f64)

    def choose(self, x):
        branches = [self.mix, lambda x: x * 2, lambda x: self.mix(self.mix(x))]
        return gc.switch((x.sum() * 7).abs().long() % 3, branches, (x,))

    def step(self, state, x):
        state = gc.cond(x.sum() > 0, self.choose, lambda x: -x, (self.drop(state),))
        more = lambda s: (s[0] < 2) & (gc.rand(()) < 0.8)  # noqa: E731
        walk = lambda s: (s[0] + 1, gc.cond(s[1].sum() > 0, self.mix, self.drop, (s[1],)))  # noqa: E731
        state = gc.while_loop(more, walk, (gc.tensor(0), state), max_steps=3)[1]
        return state, self.drop(state)

    def forward(self, xs):
        last, stacks = gc.scan(self.step, xs[0], self.drop(xs))
        return self.drop(stacks).sum() + last.sum()


def batches(count):
    return [gc.tensor(np.random.default_rng(k).standard_normal((5, 4))) for k in range(count)]


def made(kind):
    gc.manual_seed(0)
    model = kind().double()
    gc.manual_seed(1)
    return model


def random_state():
    return gc.get_rng_state().numpy().copy()


def gradient(tensor):
    """Return a gradient, or zeros where eager mode leaves None after a branch that was not taken."""
    return np.zeros(tensor.shape) if tensor.grad is None else tensor.grad.numpy().copy()


def same(actual, expected):
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_numbers_gradients_and_states_are_those_of_eager_mode():
    results = []
    for compiled in (False, True):
        model = made(Noisy)
        function = gc.compile(model) if compiled else model
        values = []
        for x in batches(4):
            model.zero_grad()
            x.requires_grad_()
            loss = function(x)
            loss.backward()
            values += [loss.item(), *map(gradient, (x, model.layer.weight)), random_state()]
        results.append([*values, gc.rand(3).numpy()])
    same(results[1], results[0])


class Loop(nn.Module):
    """A loop without a bound, of which the body draws, and the condition where ``asks``."""

    def __init__(self, asks):
        super().__init__()
        self.asks, self.layer, self.drop = asks, nn.Linear(4, 4), nn.Dropout(0.5)

    def forward(self, x, count):
        def more(s):
            return (s[0] < count) & (gc.rand(()) < 0.9) if self.asks else s[0] < count

        def step(s):
            return s[0] + 1, self.drop(self.layer(s[1])) + gc.rand(4, dtype=f64)

        x = gc.while_loop(more, step, (gc.tensor(0), self.drop(x)))[1]
        return self.drop(x)


@pytest.mark.parametrize("asks", [False, True])
def test_loops_without_a_bound(asks):
    results = []
    for compiled in (False, True):
        model = made(lambda: Loop(asks))
        function = gc.compile(model) if compiled else model
        values = []
        with gc.no_grad():
            for count in (3, 0, 1, 7, 2):
                values += [function(gc.ones(3, 4, dtype=f64), gc.tensor(count)).numpy(), random_state()]
        results.append(values)
        if compiled:
            assert len(function.programs) == 1
    same(results[1], results[0])
    moved = np.diff([state[1] for state in results[0][1::2]])
    assert len(set(moved)) > 1, "how far the generator moves depends on the number of steps"


@pytest.mark.parametrize("asks", [False, True])
def test_each_step_draws_other_numbers(asks):
    def more(s):
        return (s[0] < 6) & (gc.rand(()) < 2) if asks else s[0] < 6

    def run():
        step = lambda s: (s[0] + 1, gc.where(gc.arange(6) == s[0], gc.rand(()), s[1]))  # noqa: E731
        return gc.while_loop(more, step, (gc.tensor(0), gc.zeros(6)))[1]

    gc.manual_seed(0)
    expected = run().numpy()
    gc.manual_seed(0)
    result = gc.compile(run)().numpy()
    np.testing.assert_array_equal(result, expected)
    assert len(np.unique(result)) == 6


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Noisy()

    def forward(self, x, y):
        return (self.inner(x) - y) ** 2


def trained(mode):
    """Losses of six steps and the random state behind them."""
    model = made(Loss)
    optimizer = gc.optim.Adam(model.parameters(), lr=0.01)
    target = gc.tensor(1.0, dtype=f64)

    def train(x):
        optimizer.zero_grad()
        loss = model(x, target)
        loss.backward()
        optimizer.step()
        return loss

    if mode == "function":
        train = gc.compile(train)
    results, step = [], None
    for i, x in enumerate(batches(6)):
        if mode in ("step", "resumed"):
            if i == 3 and mode == "resumed":
                assert step is not None
                saved, weights = step.state_dict(), model.state_dict()
                gc.manual_seed(99)
                model = Loss().double()
                optimizer = gc.optim.Adam(model.parameters(), lr=0.01)
                model.load_state_dict(weights)
                step = gc.compile_step(model, None, optimizer)
                step.load_state_dict(saved)
            step = step or gc.compile_step(model, None, optimizer)
            results.append(step(x, target).item())
        else:
            results.append(train(x).item())
    return [*results, random_state()]


@pytest.mark.parametrize("mode", ["function", "step", "resumed"])
def test_training(mode):
    same(trained(mode), trained("eager"))


def test_a_scan_that_draws_in_a_compiled_training_function():
    losses = []
    for compiled in (False, True):
        model = made(lambda: nn.Linear(4, 4))
        optimizer = gc.optim.SGD(model.parameters(), lr=0.1)

        def train(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = gc.scan(lambda h, _: (nn.functional.dropout(model(h)), None), x, length=3)[0].sum()
            loss.backward()
            optimizer.step()
            return loss

        function = gc.compile(train) if compiled else train
        losses.append([function(gc.ones(2, 4, dtype=f64)).item() for _ in range(3)])
    same(losses[1], losses[0])


class Normed(nn.Module):
    """Writes to buffers in a branch."""

    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.5)
        self.register_buffer("calls", gc.tensor(0))

    def forward(self, x, pred):
        def count(x):
            self.calls.add_(1)
            return x * self.calls

        y = gc.cond(pred, lambda x: self.drop(self.norm(x)), count, (x,))
        return y + self.calls


def test_buffers_that_a_branch_writes_to():
    results = []
    for compiled in (False, True):
        model = made(Normed)
        function = gc.compile(model) if compiled else model
        values = []
        for i, x in enumerate(batches(5)):
            x.requires_grad_()
            function(x, gc.tensor(i % 3 != 1)).sum().backward()
            values += [gradient(x), *(b.numpy().copy() for b in model.buffers()), random_state()]
        results.append(values)
        assert model.calls.item() == 2
    same(results[1], results[0])


def test_a_part_that_is_compiled_draws_like_the_whole():
    class Outer(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.part, self.drop = block, nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(self.part(self.drop(x)))

    class Quiet(nn.Module):
        """Draws nothing, but might."""

        def forward(self, x):
            return gc.cond(x.sum() > 0, lambda x: x + 1, lambda x: x, (x,))

    class Settled(nn.Module):
        """A condition that a trace knows."""

        def forward(self, x):
            return gc.cond(gc.tensor(True), lambda x: x + 1, lambda x: x, (x,))

    for part in (Noisy().double(), Quiet(), Settled()):
        results = []
        for model in (Outer(part), Outer(gc.compile(part))):
            gc.manual_seed(5)
            results.append([model(gc.ones(3, 4, dtype=f64)).detach().numpy() for _ in range(2)] + [random_state()])
        same(results[1], results[0])


def test_what_is_drawn_behind_does_not_depend_on_the_branch():
    drop = nn.Dropout(0.5)

    class Model(nn.Module):
        def forward(self, pred, x):
            x = drop(x)
            gc.cond(pred, lambda x: x + gc.rand(4), lambda x: x, (x,))
            return drop(x)

    for pred in (True, False):
        results = []
        for function in (Model(), gc.compile(Model())):
            gc.manual_seed(2)
            results.append([function(gc.tensor(pred), gc.ones(8, 4)).numpy(), random_state()])
        same(results[1], results[0])


def test_generators_of_ones_own():
    results = []
    for compiled in (False, True):
        generator = gc.Generator().manual_seed(7)

        def run(p, x, generator=generator):
            y = gc.cond(p, lambda x: x + gc.rand(3, generator=generator), lambda x: x + gc.rand(3), (x,))
            return y + gc.rand(3, generator=generator)

        gc.manual_seed(0)
        function = gc.compile(run) if compiled else run
        values = [function(gc.tensor(i % 2 == 0), gc.zeros(3)).numpy() for i in range(4)]
        results.append([*values, generator.get_state().numpy(), random_state()])
    same(results[1], results[0])


def test_writes_in_loops_are_refused():
    count = gc.tensor(0)
    step = lambda x: (count.add_(1), x * 2)[1]  # noqa: E731
    for loop in (
        lambda x: gc.while_loop(lambda x: x.sum() < 9, step, x),
        lambda x: gc.while_loop(lambda x: x.sum() < 9, step, x, max_steps=4),
        lambda x: gc.scan(lambda x, _: (step(x), None), x, length=3)[0],
    ):
        with pytest.raises(TraceError, match="writes to a tensor from outside"):
            gc.compile(loop)(gc.ones(2))


def eager_and_compiled(function, *numbers):
    """The arguments are copies, since compiled code does not write to those of a caller."""

    def run(*arguments):
        inside = [t * 1 for t in arguments]
        return [*flatten(function(*inside))[0], *inside]

    given = [gc.tensor(np.asarray(n)) for n in numbers]
    return [[t.numpy().copy() for t in call(*given)] for call in (run, gc.compile(run))]


def added(a):
    a.add_(1.0)
    return a


def result_of_branch(x):
    return gc.cond(x.sum() > 0, lambda a: a, lambda a: a * 2, (x,)).add_(1.0)


def view_from_branch(x):
    return gc.cond(x.sum() > 0, lambda a: a[1:], lambda a: a[:-1] * 2, (x,)).add_(1.0)


def result_from_outside(x):
    return gc.cond(x.sum() > 0, lambda: x, lambda: x * 2).add_(1.0)


def known_branch(x):
    return gc.cond(gc.tensor(True), lambda a: a, lambda a: a * 2, (x,)).add_(1.0)


def same_result_twice(x):
    a, b = gc.cond(x.sum() > 0, lambda a: (a, a), lambda a: (a, a + 1), (x,))
    return a.add_(1.0), b


def result_of_switch(x):
    return gc.switch(x.argmax() + 5, [lambda a: a.view(2, 2), lambda a: a.view(2, 2) + 1], (x,)).add_(1.0)


def loop_of_no_step(x):
    return gc.while_loop(lambda s: s.sum() > 100, lambda s: s * 2, x).add_(1.0)


def bounded_loop_of_no_step(x):
    return gc.while_loop(lambda s: s.sum() < 100, lambda s: s * 2, x, max_steps=0).add_(1.0)


def loop_that_gives_what_it_found_outside(x):
    return gc.fori_loop(0, 3, lambda i, s: x, x).add_(1.0)


def carry_of_scan(x):
    return gc.scan(lambda c, r: (c, r), x, x)[0].add_(1.0)


def stack_of_scan(x):
    return gc.scan(lambda c, r: (c, x), x, x[:1])[1].add_(1.0)


def operand_written(x):
    return gc.cond(x.sum() > 0, added, lambda a: a * 2, (x,)).mul_(3.0)


def view_written(x):
    return gc.cond(x.sum() > 0, lambda a: added(a) * 2, lambda a: a * 2, (x[1:],))


def part_of_operand_written(x):
    return gc.cond(x.sum() > 0, lambda a: added(a[0]).sum(), lambda a: a.sum(), (x.view(2, 2),))


def outside_written(x):
    return gc.cond(x.sum() > 0, lambda: added(x), lambda: x * 2).mul_(3.0)


MEMORY = [
    result_of_branch, view_from_branch, result_from_outside, known_branch, same_result_twice, result_of_switch,
    loop_of_no_step, bounded_loop_of_no_step, loop_that_gives_what_it_found_outside, carry_of_scan, stack_of_scan,
    operand_written, view_written, part_of_operand_written, outside_written,
]  # fmt: skip


@pytest.mark.parametrize("function", MEMORY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_memory_of_results_and_operands(function, sign):
    eager, compiled = eager_and_compiled(function, sign * np.arange(1.0, 5.0))
    same(compiled, eager)


def test_writes_through_two_names_are_refused():
    with pytest.raises(TraceError, match="memory it also accesses as another tensor"):
        eager_and_compiled(
            lambda x: gc.cond(x.sum() > 0, lambda a, b: added(a), lambda a, b: a, (x[1:], x)), [1.0, 2.0]
        )
    with pytest.raises(TraceError, match="memory it also accesses as another tensor"):
        eager_and_compiled(lambda x: gc.cond(x.sum() > 0, lambda a: added(a) + x, lambda a: a, (x[:],)), [1.0, 2.0])


def test_steps_that_write_to_their_arguments_are_refused():
    for loop in (
        lambda x: gc.while_loop(lambda s: s.sum() < 9, added, x),
        lambda x: gc.while_loop(lambda s: s.sum() < 9, added, x, max_steps=4),
        lambda x: gc.scan(lambda s, _: (added(s), None), x, length=3)[0],
    ):
        with gc.no_grad(), pytest.raises(TraceError, match="writes to its argument in place"):
            gc.compile(loop)(gc.ones(2))


def test_hooks_inside_of_branches_are_refused():
    def hooked(a):
        b = a * 2
        b.register_hook(lambda g: g * 10)
        return b.sin()

    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, inputs, gradients: None)
    x = gc.ones(2, requires_grad=True)
    for function in (hooked, layer):
        with pytest.raises(TraceError, match="runs in Python, which a branch"):
            gc.compile(lambda x, f=function: gc.cond(x.sum() > 0, f, lambda a: a, (x,)))(x)
    with pytest.raises(TraceError, match="a hook of a tensor"):
        gc.compile(lambda x: gc.scan(lambda c, _: (hooked(c), None), x, length=2)[0])(x)


def test_a_hook_on_the_result_of_a_branch_runs():
    def f(x):
        y = gc.cond(x.sum() > 0, lambda a: a * 2, lambda a: a, (x,))
        y.register_hook(lambda g: g * 10)
        return y

    x = gc.ones(2, requires_grad=True)
    gc.compile(f)(x).sum().backward()
    assert x.grad.tolist() == [20.0, 20.0]
