"""Roots between two points: known values, derivatives, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ConditionError, DTypeError
from graphc.optimize import root_scalar


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


# Test functions of Chandrupatla's paper and of Alefeld, Potra and Shi, with their roots.
CASES = [
    (lambda x: x**3 - 2 * x - 5, 2.0, 3.0, 2.0945514815423265),
    (lambda x: 1 - 1 / x**2, 0.5, 1.51, 1.0),
    (lambda x: (x - 3) ** 3, 0.0, 5.0, 3.0),
    (lambda x: 6 * (x - 2) ** 5, 0.0, 5.0, 2.0),
    (lambda x: x.exp() - 2 - 0.01 / x**2 + 0.000002 / x**3, 0.01, 4.0, 0.7032048403631358),
    (lambda x: x - (-x).exp(), 0.0, 1.0, 0.5671432904097838),
    (lambda x: x**9, -1.0, 0.5, 0.0),
]


@pytest.mark.parametrize("f, a, b, root", CASES)
def test_roots_are_known(f, a, b, root):
    def solve(a, b):
        return root_scalar(f, a, b)

    for run in (solve, gc.compile(solve)):
        np.testing.assert_allclose(run(f64(a), f64(b)).item(), root, rtol=1e-12, atol=1e-9)


def test_elements_have_brackets_of_their_own():
    y = f64([2.0, 9.0, 1e-6, 1e6])
    roots = gc.compile(lambda y: root_scalar(lambda x, y: x**2 - y, gc.zeros_like(y), y + 1, y))(y)
    np.testing.assert_allclose(roots.numpy(), np.sqrt(y.numpy()), rtol=1e-14)


def test_derivatives_are_those_of_the_root():
    def root(y):
        return root_scalar(lambda x, y: x**3 - y, f64(0.0), f64(10.0), y)

    for wrap in (lambda f: f, gc.compile):
        np.testing.assert_allclose(wrap(gc.grad(root))(f64(8.0)).item(), 1 / 12, rtol=1e-12)
        np.testing.assert_allclose(wrap(gc.grad(gc.grad(root)))(f64(8.0)).item(), -2 / 9 / 32, rtol=1e-10)
    np.testing.assert_allclose(gc.jvp(root, (f64(8.0),), (f64(2.0),))[1].item(), 1 / 6, rtol=1e-12)


def test_errors_say_what_is_missing():
    with pytest.raises(ConditionError, match="same sign"):
        root_scalar(lambda x: x**2 + 1, f64(-1.0), f64(1.0))
    with pytest.raises(ConditionError, match="in 3 steps"):
        root_scalar(lambda x: x**3 - 2, f64(0.0), f64(2.0), max_steps=3)
    with pytest.raises(DTypeError, match="from f64 to f32"):
        root_scalar(lambda x: x, f64(-1.0), gc.tensor(1.0))
