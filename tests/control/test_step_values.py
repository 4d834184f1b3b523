"""Trip counts of loops that constants and counters decide."""

import numpy as np
import pytest

import graphc as gc


def _loops(test, step, *init):
    def function(*state):
        return gc.while_loop(lambda s: test(*s), lambda s: step(*s), state)

    first = [gc.tensor(x) for x in init]
    traced = gc.trace(lambda x: function(*[gc.tensor(y) for y in init[:-1]], x), first[-1])
    return [n for n in traced.nodes() if n.op.name in ("scan", "while_loop")], function, first


@pytest.mark.parametrize(
    ("test", "step", "first", "count"),
    [
        (lambda i, x: i < 7, lambda i, x: (i + 2, x * 2), 0, 4),
        (lambda i, x: i * i < 50, lambda i, x: (i + 1, x * 2), 0, 8),
        (lambda i, x: i > -3, lambda i, x: (i - 1, x * 2), 5000, 5003),
        (lambda t, x: t < 1, lambda t, x: (t + 0.1, x.sin()), 0.0, 10),
        (lambda i, x: (i < 9) & (i != 6), lambda i, x: (1 + i, x * 2), 0, 6),
    ],
)
def test_the_number_of_steps_is_known(test, step, first, count):
    (loop,), function, init = _loops(test, step, first, np.float64(1.5))
    assert (loop.op.name, loop.attrs["length"]) == ("scan", count)
    last = function(*init)
    compiled = gc.compile(lambda x: function(gc.tensor(first), x))(init[-1])
    assert [a.item() for a in last] == [a.item() for a in compiled]


@pytest.mark.parametrize(
    ("test", "step", "first"),
    [
        (lambda i, x: x < 7, lambda i, x: (i + 1, x + 1), 0),
        (lambda i, x: i < 1000, lambda i, x: (i * 2, x * 2), 1),
        (lambda i, x: i < 1 << 40, lambda i, x: (i + 1, x * 2), 0),
        (lambda t, x: t.sin() < 0.9, lambda t, x: (t + 0.1, x * 2), 0.0),  # native code may round sines differently
        (lambda i, x: (gc.arange(999) + i < 70_000).any(), lambda i, x: (i + 1, x * 2), 0),  # too many numbers
    ],
)
def test_other_loops_stay_loops_without_a_bound(test, step, first):
    (loop,), _, _ = _loops(test, step, first, np.float64(1.5))
    assert loop.op.name == "while_loop" and loop.attrs["most"] == 0


def test_a_bound_beside_another_condition_makes_a_loop_differentiable():
    def function(x):
        return gc.while_loop(
            lambda s: (s[0] < 50) & (s[1].abs().max() > 0.1), lambda s: (s[0] + 1, s[1].sin() * 0.8), (gc.tensor(0), x)
        )[1].sum()

    x = gc.tensor(np.random.default_rng(0).normal(size=3))
    (loop,) = [n for n in gc.trace(function, x).nodes() if n.op.name == "while_loop"]
    assert loop.attrs["most"] == 50
    np.testing.assert_allclose(gc.compile(gc.grad(function))(x).numpy(), gc.grad(function)(x).numpy(), rtol=1e-12)


def test_a_later_write_to_a_bound_is_refused():
    bound = gc.tensor(3)

    def function(x):
        x = gc.while_loop(lambda s: s[0] < bound, lambda s: (s[0] + 1, s[1] * 2), (gc.tensor(0), x))[1]
        bound.add_(1)
        return x

    with pytest.raises(gc.errors.TraceError, match="whose values it has read"):
        gc.compile(function)(gc.ones(2))


@pytest.mark.parametrize("test", [lambda s: s[0] < 0, lambda s: (s[0] < 0) & (s[1] < 9)])
def test_a_loop_without_steps_is_left_out(test):
    def function(x):
        return gc.while_loop(test, lambda s: (s[0] + 1, s[1] * 2 + gc.rand(())), (gc.tensor(0), x))

    x = gc.tensor(1.5)
    traced = gc.trace(function, x)
    assert all(node.op.name not in ("scan", "while_loop") for node in traced.nodes())
    gc.manual_seed(1)
    following = gc.rand(2).tolist()
    gc.manual_seed(1)
    (i, last), slope = gc.compile(lambda x: (function(x), gc.jvp(lambda x: function(x)[1], (x,), (x,))[1]))(x)
    assert (i.item(), last.item(), slope.item()) == (0, 1.5, 1.5) and gc.rand(2).tolist() == following


def test_an_index_out_of_range_matters_only_in_steps():
    table = gc.tensor([1, 2])

    def function(x, last):
        def step(s):
            return s[0] + table.index_select(0, gc.tensor([4]) + 5).reshape(()), s[1] * 2

        return gc.while_loop(lambda s: s[0] < last, step, (gc.tensor(0), x))[1]

    x = gc.tensor(1.5)
    for run in (function, gc.compile(function)):
        assert run(x, 0).item() == 1.5
        with pytest.raises(gc.errors.IndexRangeError, match="index 9"):
            run(x, 1)
