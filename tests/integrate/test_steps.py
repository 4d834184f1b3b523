"""Steps and their control: first sizes, acceptance, growth, and interpolation."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.integrate.steps import GROWTH, SHRINK, Control, attempt, begin, hermite, interpolant
from graphc.integrate.tableaus import tableau_of

DOPRI5 = tableau_of("dopri5")


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


def started(first_step=None, rtol=1e-6):
    control = Control(rtol, rtol, first_step, 100)
    return begin(DOPRI5, decay, f64(0.0), f64(10.0), [f64(1.0)], control), control


def decay(t, ys):
    return [-ys[0]]


def tried(walk, control, last=10.0, tableau=DOPRI5):
    return attempt(tableau, decay, f64(last), walk, control)


def test_the_first_size_suits_the_rates():
    walk, _ = started()
    assert 1e-3 < walk.size.item() < 1
    assert started(0.25)[0].size.item() == 0.25


def test_a_step_within_the_tolerance_is_accepted_and_the_next_one_grows():
    walk, control = started(0.01)
    walk = tried(walk, control)
    assert (walk.start.item(), walk.end.item(), walk.rejected.item()) == (0, 0.01, 0)
    np.testing.assert_allclose(walk.y1[0].item(), np.exp(-0.01), rtol=1e-12)
    np.testing.assert_allclose(walk.rate[0].item(), -np.exp(-0.01), rtol=1e-12)
    assert 0.01 < walk.size.item() <= 0.01 * GROWTH


def test_a_step_beyond_the_tolerance_is_repeated_with_a_smaller_size():
    walk, control = started(5.0)
    walk = tried(walk, control)
    assert (walk.end.item(), walk.steps.item(), walk.rejected.item()) == (0, 1, 1)
    assert walk.y1[0].item() == 1
    assert 5 * SHRINK <= walk.size.item() < 5
    again = tried(walk, control)
    while again.rejected > walk.rejected:
        walk, again = again, tried(again, control)
    assert again.size.item() <= walk.size.item()


def test_a_rate_that_is_not_finite_rejects_the_step():
    walk, control = started(0.5)
    walk = attempt(DOPRI5, lambda t, ys: [ys[0] / (t < 0.2).to(gc.float64)], f64(10.0), walk, control)
    assert walk.rejected.item() == 1
    assert walk.size.item() == 0.5 * SHRINK


def test_the_last_step_ends_at_the_last_time():
    walk, control = started(0.3)
    assert tried(walk, control, last=0.1).end.item() == 0.1


@pytest.mark.parametrize("method, between", [("dopri5", 1e-7), ("dop853", 1e-12), ("rodas5p", 1e-7)])
def test_interpolation_meets_both_ends_and_the_solution_between(method, between):
    tableau = tableau_of(method)
    control = Control(1e-6, 1e-6, 0.1, 100)
    walk = begin(tableau, decay, f64(0.0), f64(10.0), [f64(1.0)], control)
    state = interpolant(tableau, decay, attempt(tableau, decay, f64(10.0), walk, control))
    for t, tolerance in ((0.0, 1e-15), (0.05, between), (0.1, max(between, 1e-9))):
        np.testing.assert_allclose(state(f64(t))[0].item(), np.exp(-t), rtol=tolerance)


def test_the_hermite_polynomial_is_exact_for_cubics():
    def cubic(t):
        return [t**3 - 2 * t]

    def slope(t):
        return [3 * t**2 - 2]

    start, h = f64(1.0), f64(0.5)
    value = hermite(f64(0.3), h, cubic(start), cubic(start + h), slope(start), slope(start + h))
    np.testing.assert_allclose(value[0].item(), cubic(f64(1.15))[0].item(), rtol=1e-14)
