"""Programs of functions with one signature: what is taken, and what is refused."""

import numpy as np
import pytest

import graphc as gc
from graphc.calls.repeated import program, sized_program


def test_a_program_gives_what_the_function_gives_and_joins_the_graph():
    def scaled(x, y):
        return x * y, (x + y).sum()

    x, y = gc.tensor([1.0, 2.0], requires_grad=True), gc.tensor([3.0, 4.0])
    run = program(scaled, (x, y), {})
    assert run is not None
    product, total = run([x, y])
    assert product.tolist() == [3.0, 8.0] and total.item() == 10.0
    assert product.grad_fn.name() == "ScaledBackward" and product.grad_fn is total.grad_fn
    (product.sum() + total).backward()
    assert x.grad.tolist() == [4.0, 5.0] and y.grad is None


def test_where_nothing_is_saved_nothing_is_freed():
    x = gc.tensor([1.0, 2.0], requires_grad=True)
    for function, passes in ((lambda x: x.sum(), 2), (lambda x: (x * x).sum(), 1)):
        run = program(function, (x,), {})
        assert run is not None
        x.grad, y = None, run([x])
        for _ in range(passes):
            y.backward()
        if passes == 1:
            with pytest.raises(gc.errors.GradientError, match="run backward once"):
                y.backward()
        else:
            (slope,) = gc.autograd.grad(y, x, create_graph=True)
            assert slope.tolist() == [1.0, 1.0] and x.grad.tolist() == [2.0, 2.0]


def test_a_function_that_is_more_than_that_stays_with_operations():
    x, outside = gc.ones(2), gc.ones(2)
    assert program(lambda x: x + outside, (x,), {}) is None
    assert program(lambda x: x.add_(1), (x,), {}) is None
    assert program(lambda x: x.t() if x.sum() > 0 else x, (x,), {}) is None
    assert program(lambda x: x * gc.rand(2), (x,), {}) is None
    assert program(lambda x: x.view(2, 1), (x,), {}) is None
    assert program(lambda x: x, (x,), {}) is None


def test_arrays_that_are_not_dense_are_taken_and_others_refused():
    x = gc.tensor(np.arange(6.0, dtype=np.float32))
    run = program(lambda x: x * 2, (x[:3],), {})
    assert run is not None
    assert run([x[::2]]).tolist() == [0.0, 4.0, 8.0]
    assert run([x]) is None


def test_one_program_for_all_numbers():
    run = sized_program(lambda state, count: gc.arange(count) * state[1])
    assert run is not None
    for count in (1, 17, 2):
        assert run(gc.tensor([0, 3, 1]), count).tolist() == [3 * i for i in range(count)]
