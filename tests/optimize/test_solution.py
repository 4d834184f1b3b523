"""Derivatives of solutions by the implicit function theorem, for all solvers in all modes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArgumentError, ConditionError, DTypeError
from graphc.optimize import fixed_point, gauss_newton, lbfgs, levenberg_marquardt, newton, root_scalar


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


# Each solver finds the cube root of a positive number, or the point where x = a cos x.
SOLVERS = {
    "newton": lambda a: newton(lambda x: x**3 - a, f64(2.0), tol=1e-12),
    "gauss_newton": lambda a: gauss_newton(lambda x: x**3 - a, f64(2.0), tol=1e-12),
    "levenberg_marquardt": lambda a: levenberg_marquardt(lambda x, a: x**3 - a, f64(2.0), a, tol=1e-12),
    "lbfgs": lambda a: lbfgs(lambda x: x**4 / 4 - a * x, f64(2.0), tol=1e-11),
    "fixed_point": lambda a: fixed_point(lambda x: x - (x**3 - a) / 12, f64(2.0), tol=1e-12),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_solutions_have_first_and_second_derivatives(name):
    solve, a = SOLVERS[name], f64(5.0)
    expected = [5 ** (1 / 3), 5 ** (-2 / 3) / 3, -2 / 9 * 5 ** (-5 / 3)]
    np.testing.assert_allclose(solve(a).item(), expected[0], rtol=1e-10)
    np.testing.assert_allclose(gc.grad(solve)(a).item(), expected[1], rtol=1e-9)
    np.testing.assert_allclose(gc.grad(gc.grad(solve))(a).item(), expected[2], rtol=1e-8)
    np.testing.assert_allclose(gc.jvp(solve, (a,), (f64(2.0),))[1].item(), 2 * expected[1], rtol=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_compiled_solvers_have_the_same_derivatives(name):
    solve = SOLVERS[name]
    value, slope = gc.compile(gc.value_and_grad(solve))(f64(5.0))
    np.testing.assert_allclose(value.item(), 5 ** (1 / 3), rtol=1e-10)
    np.testing.assert_allclose(slope.item(), 5 ** (-2 / 3) / 3, rtol=1e-9)
    np.testing.assert_allclose(gc.grad(gc.compile(solve))(f64(5.0)).item(), 5 ** (-2 / 3) / 3, rtol=1e-9)
    _, tangent = gc.compile(lambda a: gc.jvp(solve, (a,), (a,)))(f64(5.0))
    np.testing.assert_allclose(tangent.item(), 5 ** (1 / 3) / 3, rtol=1e-9)


def test_a_solver_runs_in_a_solver():
    def residuals(p):
        return root_scalar(lambda x, p: x**3 - p, f64([0.0, 0.0]), f64([9.0, 9.0]), p) - f64([2.0, 1.5])

    for solve in (levenberg_marquardt, newton):
        found = gc.compile(lambda solve=solve: solve(residuals, f64([1.0, 1.0]), tol=1e-10))()
        np.testing.assert_allclose(found.numpy(), [8.0, 1.5**3], rtol=1e-9)


def test_a_batch_of_systems_is_solved_by_vmap():
    def solve(a):
        return newton(lambda x: gc.stack([x[0] ** 2 + x[1] ** 2 - a, x[0] - x[1]]), f64([1.0, 0.5]), tol=1e-10)

    a = f64([2.0, 8.0, 200.0])
    for run in (gc.vmap(solve), gc.compile(gc.vmap(solve))):
        np.testing.assert_allclose(run(a).numpy(), np.sqrt(a.numpy() / 2)[:, None] * [1, 1], rtol=1e-9)
    slopes = gc.compile(gc.vmap(gc.grad(lambda a: solve(a).sum())))(a)
    np.testing.assert_allclose(slopes.numpy(), 1 / np.sqrt(2 * a.numpy()), rtol=1e-9)


def test_a_solution_is_nested_as_its_start():
    def system(x, scale):
        return {"a": x["a"] * scale - gc.stack([x["b"], 2 * x["b"]]), "b": x["b"] - 3}

    x = newton(system, {"a": f64([0.0, 0.0]), "b": f64(1.0)}, f64(2.0))
    np.testing.assert_allclose(x["a"].numpy(), [1.5, 3.0])
    assert x["b"].item() == 3


def test_a_search_without_a_result_is_an_error_or_a_report():
    def rootless(x):
        return x**2 + 1

    with pytest.raises(ConditionError, match="newton: no solution was found"):
        newton(rootless, f64(1.0))
    _, report = newton(rootless, f64(1.0), max_steps=5, full_output=True)
    assert not report.converged.item()
    assert report.steps.item() == 5
    assert report.error.item() >= 1
    compiled = gc.compile(lambda a: newton(lambda x: x**2 - a, f64(1.0)))
    with pytest.raises(ConditionError, match="newton: no solution was found"):
        compiled(f64(-1.0))
    np.testing.assert_allclose(compiled(f64(4.0)).item(), 2, rtol=1e-6)


def test_unsuitable_starts_are_errors():
    with pytest.raises(ArgumentError, match="newton: the start holds no tensor"):
        newton(lambda x: x, ())
    with pytest.raises(DTypeError, match="lbfgs: the start is of i64"):
        lbfgs(lambda x: x.sum(), gc.tensor([1]))
    with pytest.raises(DTypeError, match="newton: the start is of f64, f32"):
        newton(lambda x: x, (f64(1.0), gc.tensor(1.0)))
    with pytest.raises(ArgumentError, match="history=0"):
        lbfgs(lambda x: x.sum(), f64(1.0), history=0)
