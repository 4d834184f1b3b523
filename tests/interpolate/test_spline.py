"""Piecewise linear functions and cubic splines: known values, conditions at the ends, and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArgumentError, ConditionError, DTypeError, ShapeError
from graphc.interpolate import CubicSpline, interp, interp1d


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


POINTS = f64([0.0, 0.3, 1.0, 1.4, 2.5, 3.0])
VALUES = POINTS.sin()


def test_linear_interpolation_is_that_of_numpy():
    x = gc.linspace(-1, 4, 41, dtype=gc.float64).reshape(1, 41)
    for run in (interp, gc.compile(interp)):
        expected = np.interp(x.numpy(), POINTS.numpy(), VALUES.numpy())
        np.testing.assert_allclose(run(x, POINTS, VALUES).numpy(), expected, rtol=1e-14)


def test_values_may_have_more_dimensions():
    both = gc.stack([VALUES, POINTS.cos()], 1)
    x = f64([0.1, 2.0])
    assert tuple(interp(x, POINTS, both).shape) == (2, 2)
    np.testing.assert_allclose(interp(x, POINTS, both)[:, 0].numpy(), interp(x, POINTS, VALUES).numpy())
    for kind in ("natural", "not-a-knot"):
        two, one = CubicSpline(POINTS, both, kind)(x), CubicSpline(POINTS, VALUES, kind)(x)
        np.testing.assert_allclose(two[:, 0].numpy(), one.numpy(), rtol=1e-14)


def test_a_cubic_polynomial_is_its_own_spline():
    def cubic(x):
        return 2 * x**3 - x**2 + 4 * x - 1

    x = gc.linspace(-0.5, 3.5, 20, dtype=gc.float64)
    spline = CubicSpline(POINTS, cubic(POINTS))
    expected = [cubic(x), 6 * x**2 - 2 * x + 4, 12 * x - 2, 12 + 0 * x]
    for nu in range(4):
        np.testing.assert_allclose(spline(x, nu).numpy(), expected[nu].numpy(), rtol=1e-9, atol=1e-9)


# Values of SciPy 1.17 at -0.2, 0.2, 1.9 and 3.1.
KNOWN = {
    "not-a-knot": [-0.2019736371478442, 0.1990424110627396, 0.9382753642437228, 0.0357051840771006],
    "natural": [-0.19877468575606008, 0.19877468575606025, 0.9415058411382154, 0.04410972296804838],
    "clamped": [0.2763888965244209, 0.16035163056224938, 0.9963629383162305, 0.1758152310912255],
}


@pytest.mark.parametrize("kind", KNOWN)
def test_values_are_those_of_scipy(kind):
    compiled = gc.compile(lambda x: CubicSpline(POINTS, VALUES, kind)(x))
    np.testing.assert_allclose(compiled(f64([-0.2, 0.2, 1.9, 3.1])).numpy(), KNOWN[kind], rtol=1e-12)


@pytest.mark.parametrize("kind, nu", [("natural", 2), ("clamped", 1)])
def test_a_derivative_is_zero_at_the_ends(kind, nu):
    spline = CubicSpline(POINTS, VALUES, kind)
    np.testing.assert_allclose(spline(POINTS[[0, -1]], nu).numpy(), 0, atol=1e-12)


@pytest.mark.parametrize("kind", ["not-a-knot", "natural", "clamped"])
def test_pieces_meet_with_two_derivatives_and_pass_through_the_values(kind):
    spline = CubicSpline(POINTS, VALUES, kind)
    np.testing.assert_allclose(spline(POINTS).numpy(), VALUES.numpy(), rtol=1e-12, atol=1e-14)
    for nu in range(3):
        left, right = spline(POINTS[1:-1] - 1e-9, nu), spline(POINTS[1:-1] + 1e-9, nu)
        np.testing.assert_allclose(left.numpy(), right.numpy(), atol=1e-7)


def test_the_third_derivative_has_no_jump_at_the_second_point_and_the_last_but_one():
    spline = CubicSpline(POINTS, VALUES)
    for knot in (POINTS[1], POINTS[-2]):
        np.testing.assert_allclose(spline(knot - 1e-6, 3).item(), spline(knot + 1e-6, 3).item(), rtol=1e-9)


def test_errors_fall_with_the_fourth_power_of_the_distance():
    errors = []
    for count in (10, 20, 40):
        points = gc.linspace(0, 3, count + 1, dtype=gc.float64)
        x = gc.linspace(0, 3, 333, dtype=gc.float64)
        errors.append((CubicSpline(points, points.sin())(x) - x.sin()).abs().max().item())
    assert np.all(np.log2(np.array(errors[:-1]) / errors[1:]) > 3.6)


def test_gradients_pass_to_positions_points_and_values():
    x = f64([0.2, 1.1, 2.9])

    def loss(x, points, values):
        return (CubicSpline(points, values, "natural")(x) * interp(x, points, values)).sum()

    arguments = (x, POINTS, VALUES)
    gradients = gc.compile(gc.grad(loss, argnums=(0, 1, 2)))(*arguments)
    value = gc.compile(loss)
    for i, gradient in enumerate(gradients):
        for k in range(arguments[i].numel()):
            ends = []
            for step in (1e-6, -1e-6):
                moved = arguments[i].numpy().copy()
                moved[k] += step
                ends.append(value(*(f64(moved) if j == i else a for j, a in enumerate(arguments))).item())
            np.testing.assert_allclose(gradient[k].item(), (ends[0] - ends[1]) / 2e-6, atol=1e-7)


def test_errors_name_the_argument():
    with pytest.raises(ConditionError, match="must rise strictly"):
        interp(f64(0.5), f64([0.0, 1.0, 1.0]), f64([0.0, 1.0, 2.0]))
    with pytest.raises(ShapeError, match=r"points \[3\] and values \[2\]"):
        interp(f64(0.5), f64([0.0, 1.0, 2.0]), f64([0.0, 1.0]))
    with pytest.raises(ShapeError, match="3 points"):
        CubicSpline(f64([0.0, 1.0, 2.0]), f64([0.0, 1.0, 2.0]))
    with pytest.raises(DTypeError, match="points of f32, values of f64"):
        interp(f64(0.5), gc.tensor([0.0, 1.0]), f64([0.0, 1.0]))
    with pytest.raises(ArgumentError, match="no bc_type 'periodic'"):
        CubicSpline(POINTS, VALUES, "periodic")
    with pytest.raises(ArgumentError, match="nu=4"):
        CubicSpline(POINTS, VALUES)(f64(0.5), 4)


def test_a_function_of_positions_refuses_those_outside():
    x = f64([0.0, 0.2, 1.9, 3.0])
    for kind, expected in (("linear", interp(x, POINTS, VALUES)), ("cubic", CubicSpline(POINTS, VALUES)(x))):
        function = interp1d(POINTS, VALUES, kind)
        compiled = gc.compile(lambda x, kind=kind: interp1d(POINTS, VALUES, kind)(x))
        for run in (function, compiled, gc.vmap(function)):
            np.testing.assert_allclose(run(x).numpy(), expected.numpy(), rtol=1e-12)
        for run in (function, compiled):
            with pytest.raises(ConditionError, match="outside of the points"):
                run(f64([0.0, 3.1, 1.0, 1.0]))
        slope = gc.compile(gc.grad(lambda y, kind=kind: interp1d(POINTS, y, kind)(f64(0.3))))(VALUES)
        np.testing.assert_allclose(slope.numpy(), [0, 1, 0, 0, 0, 0], atol=1e-12)
    with pytest.raises(ArgumentError, match="no kind 'quadratic'"):
        interp1d(POINTS, VALUES, "quadratic")
    for kind, count in (("linear", 1), ("cubic", 3)):
        with pytest.raises(ShapeError, match=f"interp1d: {count} points"):
            interp1d(POINTS[:count], VALUES[:count], kind)
    with pytest.raises(ConditionError, match="interp1d: the points must rise strictly"):
        interp1d(POINTS.flip(0), VALUES)
