"""Initial value problems with known solutions, and their gradients, in eager mode and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.errors import ArgumentError, ConditionError, DTypeError, GradientError, ShapeError
from graphc.integrate import odeint

EXPLICIT = ("euler", "midpoint", "heun", "rk4", "bosh3", "dopri5", "tsit5", "dop853")
ORDERS = {"euler": 1, "midpoint": 2, "heun": 2, "rk4": 4, "bosh3": 3, "dopri5": 5, "tsit5": 5, "dop853": 8}


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


def linspace(start, stop, count):
    return gc.linspace(start, stop, count, dtype=gc.float64)


def swing(t, y, a):
    """Return the rate of ``y' = a y cos t``, solved by ``exp(a sin t)``."""
    return a * y * t.cos()


def pendulum(t, y, a):
    return gc.stack([y[1], -a * y[0].sin() + 0.1 * t.cos()])


@pytest.mark.parametrize("method", EXPLICIT)
def test_errors_of_fixed_steps_fall_with_the_order_of_the_method(method):
    t, a, errors = linspace(0, 3, 4), f64(1.3), []
    solve = gc.compile(lambda y0, n: odeint(swing, y0, t, a, method=method, adaptive=False, substeps=n))
    for substeps in (1, 2, 4) if method == "dop853" else (8, 16, 32):
        y = solve(f64(1.0), substeps).numpy()
        errors.append(np.abs(y - np.exp(1.3 * np.sin(t.numpy()))).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - ORDERS[method]) < 0.3)


@pytest.mark.parametrize("method", ["heun", "bosh3", "dopri5", "tsit5", "dop853"])
def test_adaptive_steps_keep_to_the_tolerance_between_steps_too(method):
    t, a = linspace(0, 3, 50), f64(1.3)
    rtol = 1e-4 if method == "heun" else 1e-7

    def solve(y0):
        return odeint(swing, y0, t, a, method=method, rtol=rtol, atol=rtol, full_output=True)

    y, statistics = solve(f64(1.0))
    assert np.abs(y.numpy() - np.exp(1.3 * np.sin(t.numpy()))).max() < 20 * rtol
    compiled, counts = gc.compile(solve)(f64(1.0))
    np.testing.assert_allclose(compiled.numpy(), y.numpy(), rtol=1e-12)
    assert [c.item() for c in counts] == [c.item() for c in statistics]
    assert statistics.rejected < statistics.steps < 600


def test_a_smaller_tolerance_takes_more_steps_and_errs_less():
    t, errors, counts = linspace(0, 10, 2), [], []
    for rtol in (1e-4, 1e-7, 1e-10):
        y, statistics = odeint(swing, f64(1.0), t, f64(1.0), rtol=rtol, atol=rtol, full_output=True)
        errors.append(abs(y[-1].item() - np.exp(np.sin(10))))
        counts.append(statistics.steps.item())
    assert errors[0] > errors[1] > errors[2]
    assert counts[0] < counts[1] < counts[2]


def arenstorf(t, y):
    """Return the rate of a satellite, [position, velocity], that the moon and the earth attract, which turn around."""
    moon = 0.012277471
    here, speed = y[:2], y[2:]
    turned = gc.stack([speed[1], -speed[0]])
    pull = 0.0
    for mass, x in ((1 - moon, -moon), (moon, 1 - moon)):
        way = here - f64([x, 0.0])
        pull = pull + mass * way / way.square().sum() ** 1.5
    return gc.cat([speed, here + 2 * turned - pull])


@pytest.mark.parametrize("method, steps", [("dop853", 400), ("dopri5", 3000)])
def test_an_orbit_closes_after_its_period(method, steps):
    # Hairer, Norsett and Wanner, section II.0: start and period.
    start, period = f64([0.994, 0.0, 0.0, -2.00158510637908252240537862224]), 17.0652165601579625588917206249

    def solve(y0):
        return odeint(arenstorf, y0, f64([0.0, period]), method=method, rtol=1e-12, atol=1e-12, full_output=True)

    y, statistics = gc.compile(solve)(start)
    np.testing.assert_allclose(y[1].numpy(), start.numpy(), atol=2e-6)
    assert statistics.steps < steps


def test_an_orbit_of_known_places_to_twelve_digits():
    # Kepler's problem with eccentricity 0.6: the eccentric anomaly E solves t = E - 0.6 sin E.
    anomaly = np.linspace(0, 4 * np.pi, 41)
    t = f64(anomaly - 0.6 * np.sin(anomaly))

    def kepler(t, y):
        return gc.cat([y[2:], -y[:2] / y[:2].square().sum() ** 1.5])

    solve = gc.compile(lambda y0: odeint(kepler, y0, t, method="dop853", rtol=1e-13, atol=1e-13))
    places = np.stack([np.cos(anomaly) - 0.6, 0.8 * np.sin(anomaly)], 1)
    np.testing.assert_allclose(solve(f64([0.4, 0.0, 0.0, 2.0]))[:, :2].numpy(), places, atol=2e-11)


@pytest.mark.parametrize("options", [{}, {"method": "rk4", "substeps": 40}, {"method": "bosh3", "rtol": 1e-7}])
def test_times_may_fall(options):
    t = linspace(3, 0, 5)
    y = odeint(swing, f64(np.exp(1.3 * np.sin(3.0))), t, f64(1.3), **options)
    np.testing.assert_allclose(y.numpy(), np.exp(1.3 * np.sin(t.numpy())), rtol=2e-5)


def test_a_state_may_be_a_nest_of_real_and_complex_tensors():
    def rate(t, y):
        return {"turn": 1j * y["turn"], "pair": [y["pair"][1], -y["pair"][0]]}

    y0 = {"turn": gc.tensor([1.0, 2.0], dtype=gc.complex128), "pair": [f64(0.0), f64(1.0)]}
    y = odeint(rate, y0, linspace(0, 2, 3), rtol=1e-9)
    np.testing.assert_allclose(y["turn"].numpy(), np.exp(1j * np.arange(3))[:, None] * [1, 2], rtol=1e-7)
    np.testing.assert_allclose(y["pair"][0].numpy(), np.sin(np.arange(3)), atol=1e-7)


def test_results_have_the_type_of_the_state():
    y = odeint(lambda t, y: -y, gc.ones(3), linspace(0, 1, 2))
    assert y.dtype is gc.float32
    np.testing.assert_allclose(y[1].numpy(), np.exp(-1), rtol=1e-4)


# ---- gradients


def loss(y0, a, t, options):
    weights = f64([[1.0, 2.0], [0.5, -1.0], [2.0, 1.0], [1.0, 1.0]])
    return (odeint(pendulum, y0, t, a, **options) * weights).sum()


POINT = (f64([1.0, 0.2]), f64(1.3), linspace(0, 3, 4))


def finite_differences(options):
    """Return the gradient of ``loss`` by each of its arguments."""
    gradients, value = [], gc.compile(lambda *args: loss(*args, options))
    for i, x in enumerate(POINT):
        gradient = np.zeros(x.numel())
        for k in range(x.numel()):
            ends = []
            for step in (1e-5, -1e-5):
                moved = x.numpy().reshape(-1).copy()
                moved[k] += step
                args = [f64(moved.reshape(tuple(x.shape))) if j == i else v for j, v in enumerate(POINT)]
                ends.append(value(*args).item())
            gradient[k] = (ends[0] - ends[1]) / 2e-5
        gradients.append(gradient.reshape(tuple(x.shape)))
    return gradients


@pytest.fixture(scope="module")
def reference():
    return finite_differences({"rtol": 1e-11, "atol": 1e-11})


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("method", ["dopri5", "tsit5", "dop853"])
def test_gradients_by_state_parameter_and_times_are_those_of_finite_differences(method, compiled, adjoint, reference):
    options = {"method": method, "rtol": 1e-9, "atol": 1e-9, "adjoint": adjoint}
    gradient = gc.grad(lambda y0, a, t: loss(y0, a, t, options), argnums=(0, 1, 2))
    for actual, expected in zip((gc.compile(gradient) if compiled else gradient)(*POINT), reference, strict=True):
        np.testing.assert_allclose(actual.numpy(), expected, atol=1e-7)


@pytest.mark.parametrize("method", ["euler", "rk4", "bosh3"])
def test_gradients_of_fixed_steps_are_those_of_the_steps(method):
    options = {"method": method, "adaptive": False, "substeps": 3}
    gradient = gc.compile(gc.grad(lambda y0, a, t: loss(y0, a, t, options), argnums=(0, 1, 2)))
    for actual, expected in zip(gradient(*POINT), finite_differences(options), strict=True):
        np.testing.assert_allclose(actual.numpy(), expected, atol=1e-8)


class Flow(nn.Module):
    def __init__(self, adjoint):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)).double()
        self.adjoint = adjoint

    def forward(self, y0):
        y = odeint(lambda t, y: self.net(y) * t.cos(), y0, linspace(0, 1, 2), adjoint=self.adjoint, rtol=1e-7)
        return y.square().mean()


def test_parameters_of_modules_get_the_same_gradient_in_all_ways():
    gc.manual_seed(0)
    y0, state, expected = gc.randn(3, 2, dtype=gc.float64), Flow(False).state_dict(), None
    for adjoint in (False, True):
        model = Flow(adjoint)
        model.load_state_dict(state)
        for run in (model, gc.compile(model)):
            model.zero_grad()
            run(y0).backward()
            gradient = np.concatenate([p.grad.numpy().reshape(-1) for p in model.parameters()])
            expected = gradient if expected is None else expected
            np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-7)
    assert np.abs(expected).max() > 0.01


def test_tangents_pass_through_the_steps():
    def last(y):
        return odeint(lambda t, y: y * y, y, linspace(0, 2, 2), rtol=1e-9)[-1]

    for run in (last, gc.compile(last)):
        _, tangent = gc.jvp(run, (f64(0.1),), (f64(1.0),))
        np.testing.assert_allclose(tangent.item(), 1 / 0.8**2, rtol=1e-7)


def test_the_adjoint_has_no_second_derivative():
    def last(y):
        return odeint(lambda t, y: y * y, y, linspace(0, 2, 2), adjoint=True)[-1]

    with pytest.raises(GradientError, match="twice"):
        gc.grad(gc.grad(last))(f64(0.1))


# ---- batches


def decay(y, a):
    return odeint(lambda t, y, a: -a * y * y, y, f64([0.0, 2.0, 3.0]), a, rtol=1e-8, full_output=True)


def test_entries_of_a_batch_take_steps_of_their_own():
    y0, a = f64([0.1, 0.2, 30.0]), f64([1.0, 2.0, 5.0])
    alone = [decay(y, b) for y, b in zip(y0, a, strict=True)]
    y, statistics = gc.compile(gc.vmap(decay))(y0, a)
    assert statistics.steps.tolist() == [s.steps.item() for _, s in alone]
    assert len(set(statistics.steps.tolist())) == 3
    for row, (expected, _) in zip(y, alone, strict=True):
        np.testing.assert_allclose(row.numpy(), expected.numpy(), rtol=1e-13)


def test_entries_of_a_batch_have_gradients_of_their_own():
    y0, a = f64([0.1, 0.2, 30.0]), f64([1.0, 2.0, 5.0])
    slope = gc.grad(lambda y, a: decay(y, a)[0][-1])
    for actual, y, b in zip(gc.compile(gc.vmap(slope))(y0, a), y0, a, strict=True):
        np.testing.assert_allclose(actual.item(), slope(y, b).item(), rtol=1e-10)


# ---- errors


def test_a_solution_that_explodes_ends_with_a_clear_error():
    def solve(y0):
        return odeint(lambda t, y: y * y, y0, linspace(0, 2, 2), max_steps=200)

    compiled = gc.compile(solve)
    for run in (solve, compiled):
        with pytest.raises(ConditionError, match="not reached in 200 steps"):
            run(f64(1.0))
    np.testing.assert_allclose(compiled(f64(0.1))[-1].item(), 0.125, rtol=1e-5)


def test_errors_name_the_argument():
    t, y0 = linspace(0, 1, 3), f64([1.0, 2.0])
    with pytest.raises(ArgumentError, match="no method 'rk5'"):
        odeint(swing, y0, t, f64(1.0), method="rk5")
    with pytest.raises(ArgumentError, match="rk4 estimates no error"):
        odeint(swing, y0, t, f64(1.0), method="rk4", adaptive=True)
    with pytest.raises(ArgumentError, match="substeps are those of fixed steps"):
        odeint(swing, y0, t, f64(1.0), substeps=3)
    with pytest.raises(ArgumentError, match="max_steps=0"):
        odeint(swing, y0, t, f64(1.0), max_steps=0)
    with pytest.raises(DTypeError, match="the state is i64"):
        odeint(swing, gc.tensor([1, 2]), t, f64(1.0))
    with pytest.raises(ArgumentError, match="holds no tensor"):
        odeint(swing, (), t, f64(1.0))
    with pytest.raises(ShapeError, match=r"func returns shape \[\] for a state of \[2\]"):
        odeint(lambda t, y: y.sum(), y0, t)
    with pytest.raises(ArgumentError, match="another nesting"):
        odeint(lambda t, y: (y, y), y0, t)
    with pytest.raises(ShapeError, match=r"t has shape \[1\]"):
        odeint(swing, y0, t[:1], f64(1.0))
    with pytest.raises(ConditionError, match="rise or fall strictly"):
        odeint(swing, y0, f64([0.0, 2.0, 1.0]), f64(1.0))
    with pytest.raises(ArgumentError, match="needs a real state"):
        odeint(lambda t, y: 1j * y, gc.tensor([1j]), t, adjoint=True)
