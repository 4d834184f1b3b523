"""Stiff problems with known solutions."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArgumentError, ConditionError
from graphc.integrate import odeint

ORDERS = {"implicit_euler": 1, "trapezoid": 2, "kvaerno3": 3, "kencarp4": 4, "kvaerno5": 5, "rodas5p": 5}
ADAPTIVE = ["kvaerno3", "kencarp4", "kvaerno5", "rodas5p"]


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


def van_der_pol(t, y, mu):
    return gc.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])


def robertson(t, y):
    first, second = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] * y[1]
    return gc.stack([-first, first - second, second])


@pytest.mark.parametrize("method", ORDERS)
def test_errors_of_fixed_steps_fall_with_the_order_of_the_method(method):
    t, errors = gc.linspace(0, 3, 4, dtype=gc.float64), []

    def solve(y0, substeps):
        options = {"method": method, "adaptive": False, "substeps": substeps, "rtol": 1e-9}
        return odeint(lambda t, y: 1.3 * y * t.cos(), y0, t, **options)

    compiled = gc.compile(solve)
    for substeps in (8, 16, 32):
        errors.append(np.abs(compiled(f64(1.0), substeps).numpy() - np.exp(1.3 * np.sin(t.numpy()))).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - ORDERS[method]) < 0.2)


# Values at t = 2000: Radau IIA of order 5 with tolerances of 1e-11.
VAN_DER_POL = [1.70616773, -8.92809701e-4]


@pytest.mark.parametrize("method", ADAPTIVE)
def test_van_der_pol_with_a_stiffness_of_a_thousand(method):
    @gc.compile
    def solve(y0, mu):
        options = {"method": method, "rtol": 1e-6, "atol": 1e-6, "full_output": True}
        return odeint(van_der_pol, y0, f64([0.0, 2000.0]), mu, **options)

    y, statistics = solve(f64([2.0, 0.0]), f64(1000.0))
    np.testing.assert_allclose(y[-1].numpy(), VAN_DER_POL, rtol=2e-4)
    assert statistics.steps < 2500


# Radau IIA of order 5 with tolerances of 1e-11 and 1e-15.
ROBERTSON = [
    [1.0, 0.0, 0.0],
    [0.7158270687192777, 9.185534764568056e-06, 0.28416374574595765],
    [0.004938274520999471, 1.9849940879622933e-08, 0.9950617056290603],
    [2.083340149379877e-08, 8.333360769049113e-14, 0.9999999791665143],
]


@pytest.mark.parametrize("method", ADAPTIVE)
def test_robertson_to_a_time_of_1e11(method):
    solve = gc.compile(lambda y0, t: odeint(robertson, y0, t, method=method, rtol=1e-6, atol=1e-11, full_output=True))
    y, statistics = solve(f64([1.0, 0.0, 0.0]), f64([0.0, 40.0, 4e5, 1e11]))
    np.testing.assert_allclose(y.numpy(), ROBERTSON, rtol=5e-4, atol=1e-11)
    np.testing.assert_allclose(y.sum(1).numpy(), 1, rtol=1e-12)
    assert statistics.steps < 2000


def test_an_explicit_method_needs_far_more_steps():
    def count(method):
        options = {"method": method, "rtol": 1e-4, "full_output": True, "max_steps": 20000}
        return odeint(van_der_pol, f64([2.0, 0.0]), f64([0.0, 1.0]), f64(300.0), **options)[1].steps

    steps = gc.compile(lambda: (count("dopri5"), count("kencarp4")))()
    assert steps[0] > 10 * steps[1]


@pytest.mark.parametrize("method", ADAPTIVE)
def test_gradients_through_the_steps_are_those_of_finite_differences(method):
    def loss(y0, mu, method=method, max_steps=1000):
        options = {"method": method, "rtol": 1e-8, "atol": 1e-8, "max_steps": max_steps}
        return odeint(van_der_pol, y0, f64([0.0, 0.5, 1.0]), mu, **options)[-1].sum()

    y0, mu, e = f64([2.0, 0.0]), f64(20.0), 1e-4
    value = gc.compile(lambda y0, mu: loss(y0, mu, "dopri5"))
    by_mu = (value(y0, mu + e) - value(y0, mu - e)).item() / (2 * e)
    by_y = [(value(y0 + e * d, mu) - value(y0 - e * d, mu)).item() / (2 * e) for d in gc.eye(2, dtype=gc.float64)]
    gradient = gc.compile(gc.grad(loss, argnums=(0, 1)))(y0, mu)
    np.testing.assert_allclose(gradient[0].numpy(), by_y, atol=2e-5)
    np.testing.assert_allclose(gradient[1].item(), by_mu, atol=2e-6)


@pytest.mark.parametrize("method", ["kvaerno5", "rodas5p"])
def test_the_adjoint_has_the_gradients_of_the_steps(method):
    def rate(t, y, a):
        return -a * (y - t.cos()) - t.sin()  # whose solution tends to cos(t) for every a

    def loss(y0, a, adjoint):
        t = f64([0.0, 0.02, 0.04])
        options = {"method": method, "rtol": 1e-9, "atol": 1e-9, "adjoint": adjoint, "max_steps": 200}
        return odeint(rate, y0, t, a, **options)[1:].square().sum()

    y0, a = f64([1.5, 0.5]), f64(30.0)
    steps, adjoint = [
        gc.compile(gc.grad(lambda y0, a, way=way: loss(y0, a, way), argnums=(0, 1)))(y0, a) for way in (False, True)
    ]
    for x, y in zip(steps, adjoint, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-5, atol=1e-9)


def test_rosenbrock_steps_have_second_derivatives_and_tangents():
    def last(a, method="rodas5p"):
        options = {"method": method, "rtol": 1e-10, "atol": 1e-10, "max_steps": 100}
        return odeint(lambda t, y: -a * y * y * (1 + t), f64([1.0]), f64([0.0, 1.0]), **options)[-1, 0]

    a = f64(2.0)  # y = 1 / (1 + 1.5 a)
    np.testing.assert_allclose(last(a).item(), 1 / 4, rtol=1e-9)
    np.testing.assert_allclose(gc.compile(gc.grad(last))(a).item(), -1.5 / 16, rtol=1e-8)
    np.testing.assert_allclose(gc.compile(gc.grad(gc.grad(last)))(a).item(), 2 * 1.5**2 / 64, rtol=1e-7)
    np.testing.assert_allclose(gc.jvp(last, (a,), (f64(1.0),))[1].item(), -1.5 / 16, rtol=1e-8)


@pytest.mark.parametrize("method", ["kvaerno5", "rodas5p"])
def test_entries_of_a_batch_take_steps_of_their_own(method):
    def solve(y0, mu):
        return odeint(van_der_pol, y0, f64([0.0, 1.0]), mu, method=method, rtol=1e-6, full_output=True)

    mu = f64([1.0, 50.0, 1000.0])
    y0 = f64([[2.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    y, statistics = gc.compile(gc.vmap(solve))(y0, mu)
    alone = [gc.compile(solve)(*pair) for pair in zip(y0, mu, strict=True)]
    assert statistics.steps.tolist() == [s.steps.item() for _, s in alone]
    assert len(set(statistics.steps.tolist())) == 3
    for row, (expected, _) in zip(y, alone, strict=True):
        np.testing.assert_allclose(row.numpy(), expected.numpy(), rtol=1e-11)


def test_a_rate_that_is_not_finite_in_a_fixed_step_is_an_error():
    with pytest.raises(ConditionError, match="did not solve a stage"):
        odeint(lambda t, y: y.sqrt(), f64(-1.0), f64([0.0, 1.0]), method="rodas5p", adaptive=False)


def test_a_nest_of_tensors_is_one_vector_for_newtons_method():
    def rate(t, y):
        return {"a": -1000 * (y["a"] - y["b"].sum(0)), "b": -y["b"]}

    y0 = {"a": f64([1.0, 2.0]), "b": gc.ones(2, 2, dtype=gc.float64)}
    y = gc.compile(lambda y0: odeint(rate, y0, f64([0.0, 1.0]), method="kvaerno3", rtol=1e-6))(y0)
    np.testing.assert_allclose(y["b"][1].numpy(), np.exp(-1) * np.ones((2, 2)), rtol=1e-5)
    np.testing.assert_allclose(y["a"][1].numpy(), 2 * np.exp(-1) / 0.999 * np.ones(2), rtol=1e-5)


def test_steps_without_a_solution_and_mixed_types_are_errors():
    with pytest.raises(ConditionError, match="did not solve a stage"):
        odeint(lambda t, y: 50 * y**2 + 50, f64(0.0), f64([0.0, 1.0]), method="implicit_euler")
    with pytest.raises(ArgumentError, match="one real type, got f64, f32"):
        odeint(lambda t, y: y, (f64(0.0), gc.tensor(1.0)), f64([0.0, 1.0]), method="kvaerno3")
