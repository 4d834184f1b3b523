"""Test problems of Moré, Garbow and Hillstrom (1981): least squares and smooth minimization."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArgumentError, ConditionError
from graphc.optimize import bfgs, gauss_newton, lbfgs, levenberg_marquardt


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


def rosenbrock(x):
    return gc.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def powell(x):
    root = np.sqrt
    return gc.stack([x[0] + 10 * x[1], root(5) * (x[2] - x[3]), (x[1] - 2 * x[2]) ** 2, root(10) * (x[0] - x[3]) ** 2])


def helix(x):
    angle = gc.atan2(x[1], x[0]) / (2 * np.pi)
    radius = (x[0] ** 2 + x[1] ** 2).sqrt()
    return gc.stack([10 * (x[2] - 10 * angle), 10 * (radius - 1), x[2]])


def bard(x):
    """Return the residuals of Bard's data, whose least sum of squares is 8.21487e-3."""
    y = f64([0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39])
    u = gc.arange(1, 16, dtype=gc.float64)
    v = 16 - u
    return y - (x[0] + u / (v * x[1] + gc.minimum(u, v) * x[2]))


PROBLEMS = [
    (rosenbrock, [-1.2, 1.0], 0.0),
    (powell, [3.0, -1.0, 0.0, 1.0], 0.0),
    (helix, [-1.0, 0.0, 0.0], 0.0),
    (bard, [1.0, 1.0, 1.0], 8.21487e-3),
]


@pytest.mark.parametrize("residuals, start, least", PROBLEMS)
def test_levenberg_marquardt_finds_the_least_sum_of_squares(residuals, start, least):
    def solve(x0):
        return levenberg_marquardt(residuals, x0, tol=1e-9, full_output=True)

    for run in (solve, gc.compile(solve)):
        x, report = run(f64(start))
        assert report.converged.item()
        np.testing.assert_allclose(residuals(x).square().sum().item(), least, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("method", [lbfgs, bfgs])
@pytest.mark.parametrize("residuals, start, least", PROBLEMS)
def test_quasi_newton_methods_find_the_same_minima(residuals, start, least, method):
    solve = gc.compile(lambda x0: method(lambda x: residuals(x).square().sum(), x0, tol=1e-8, full_output=True))
    x, report = solve(f64(start))
    assert report.converged.item()
    assert report.steps.item() < 80
    np.testing.assert_allclose(residuals(x).square().sum().item(), least, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("method", [lbfgs, bfgs])
def test_starts_far_from_a_curved_valley_converge(method):
    def valley(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    def solve(x0):
        return method(valley, x0, tol=1e-7, full_output=True)

    starts = 10 * gc.tensor(np.random.default_rng(0).standard_normal((8, 6)))
    x, report = gc.compile(gc.vmap(solve))(starts)
    assert report.converged.all().item()
    slopes = gc.vmap(gc.grad(valley))(x)
    assert slopes.abs().max().item() <= 1e-7
    alone, single = solve(starts[0])
    assert single.steps.item() == report.steps[0].item()
    np.testing.assert_allclose(x[0].numpy(), alone.numpy(), rtol=1e-6)


@pytest.mark.parametrize("method", [lbfgs, bfgs])
def test_a_minimum_has_gradients_by_the_arguments(method):
    def least(a):
        return method(lambda x, a: (x - a).exp().sum() - x.sum() + (x[0] - x[1]) ** 2, gc.zeros_like(a), a, tol=1e-11)

    a = f64([0.5, -0.3])
    gradient = gc.compile(gc.grad(lambda a: least(a)[0]))(a)
    e = 1e-5 * gc.eye(2, dtype=gc.float64)
    differences = [(least(a + d) - least(a - d))[0].item() / 2e-5 for d in e]
    np.testing.assert_allclose(gradient.numpy(), differences, rtol=1e-6)


def test_a_function_without_a_minimum_is_an_error_and_an_empty_history_too():
    with pytest.raises(ConditionError, match="lbfgs: no solution was found"):
        lbfgs(lambda x: -x.sum(), f64([0.0, 0.0]), max_steps=2)
    with pytest.raises(ArgumentError, match="history=0"):
        lbfgs(lambda x: x.square().sum(), f64([0.0]), history=0)


def test_lbfgs_handles_many_unknowns_without_their_hessian():
    def chain(x):
        return ((x[1:] - x[:-1]) ** 4 + (x[:-1] - 1) ** 2).sum() + (x[-1] - 1) ** 2

    with gc.no_grad():
        x, report = gc.compile(lambda x0: lbfgs(chain, x0, full_output=True))(gc.zeros(3000, dtype=gc.float64))
    assert report.converged.item()
    np.testing.assert_allclose(x.numpy(), 1, atol=1e-4)


def test_gauss_newton_fits_a_curve_in_a_few_steps():
    t = gc.linspace(0, 2, 20, dtype=gc.float64)
    y = 2 * (-1.5 * t).exp()
    p, report = gauss_newton(lambda p: p[0] * (-p[1] * t).exp() - y, f64([1.5, 1.0]), tol=1e-10, full_output=True)
    np.testing.assert_allclose(p.numpy(), [2.0, 1.5], rtol=1e-8)
    assert report.steps.item() < 10


def test_a_fit_has_gradients_by_its_data():
    t = gc.linspace(0, 2, 20, dtype=gc.float64)

    def rate(y):
        return levenberg_marquardt(lambda p: p[0] * (-p[1] * t).exp() - y, f64([1.5, 1.0]), tol=1e-12)[1]

    y = 2 * (-1.5 * t).exp() + 0.05 * (5 * t).sin()
    gradient = gc.compile(gc.grad(rate))(y)
    e = 1e-5 * gc.eye(20, dtype=gc.float64)
    differences = [(rate(y + d) - rate(y - d)).item() / 2e-5 for d in e[:3]]
    np.testing.assert_allclose(gradient[:3].numpy(), differences, rtol=1e-6)
