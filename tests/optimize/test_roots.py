"""Newton's method and fixed points: convergence from far starts, and reports."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ConditionError
from graphc.optimize import fixed_point, newton


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


def test_steps_are_halved_where_newtons_method_would_diverge():
    x, report = newton(lambda x: x.atan(), f64(20.0), tol=1e-12, full_output=True)
    np.testing.assert_allclose(x.item(), 0, atol=1e-12)
    assert report.steps.item() < 20


def test_convergence_is_quadratic():
    errors = [newton(lambda x: x**2 - 2, f64(1.5), max_steps=n, full_output=True)[1].error.item() for n in (1, 2, 3)]
    assert errors[1] < 2 * errors[0] ** 2
    assert errors[2] < 2 * errors[1] ** 2


def test_a_start_that_solves_the_system_takes_no_step():
    x, report = newton(lambda x: x - 3, f64(3.0), full_output=True)
    assert (x.item(), report.steps.item(), report.converged.item()) == (3, 0, True)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_fixed_point_is_found_or_reported(compiled):
    def solve(scale):
        return fixed_point(lambda x: scale * x.cos(), f64([0.5, 1.0]), tol=1e-10)

    run = gc.compile(solve) if compiled else solve
    np.testing.assert_allclose(run(f64(1.0)).numpy(), 0.7390851332151607, rtol=1e-9)
    with pytest.raises(ConditionError, match="fixed_point: no solution was found"):
        run(f64(5.0))
