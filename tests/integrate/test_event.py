"""Integration up to an event: known times, their gradients, and what happens without one."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArgumentError, ConditionError, ShapeError
from graphc.integrate import odeint_event

METHODS = ("dopri5", "tsit5", "bosh3", "kencarp4")


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


def fall(t, y, g):
    return gc.stack([y[1], -g])


def height(t, y, g):
    return y[0]


def turn(t, y):
    return gc.stack([y[1], -y[0]])


@pytest.mark.parametrize("method", METHODS)
def test_a_fall_ends_on_the_ground(method):
    def land(y0, g):
        return odeint_event(fall, y0, f64([0.0, 9.0]), height, g, method=method, rtol=1e-8)

    for run in (land, gc.compile(land)):
        end = run(f64([10.0, 0.0]), f64(9.81))
        assert end.found.item()
        np.testing.assert_allclose(end.t.item(), np.sqrt(20 / 9.81), rtol=1e-9)
        np.testing.assert_allclose(end.y.numpy(), [0.0, -np.sqrt(2 * 9.81 * 10)], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("direction, time", [("both", 0.5), ("falling", 0.5), ("rising", 1.5)])
def test_only_changes_in_the_direction_count(direction, time):
    cosine = f64([1.0, 0.0])
    end = odeint_event(turn, cosine, f64([0.0, 9.0]), lambda t, y: y[0], direction=direction, rtol=1e-9)
    np.testing.assert_allclose(end.t.item(), time * np.pi, rtol=1e-7)


def test_a_zero_at_the_begin_is_no_event_and_time_may_fall():
    sine = f64([0.0, 1.0])
    end = odeint_event(turn, sine, f64([0.0, -9.0]), lambda t, y: y[0], rtol=1e-9)
    np.testing.assert_allclose(end.t.item(), -np.pi, rtol=1e-7)


def test_without_an_event_the_last_state_is_returned():
    end = gc.compile(lambda y0: odeint_event(fall, y0, f64([0.0, 1.0]), height, f64(9.81)))(f64([10.0, 0.0]))
    assert not end.found.item()
    assert end.t.item() == 1
    np.testing.assert_allclose(end.y.numpy(), [10 - 9.81 / 2, -9.81], rtol=1e-6)


def test_time_and_state_have_the_gradients_of_the_solution():
    def landing(y0, g):
        return odeint_event(fall, y0, f64([0.0, 9.0]), height, g, rtol=1e-8)

    y0, g = f64([10.0, 0.0]), f64(9.81)
    for wrap in (lambda f: f, gc.compile):
        by_y, by_g = wrap(gc.grad(lambda y0, g: landing(y0, g).t, argnums=(0, 1)))(y0, g)
        np.testing.assert_allclose(by_y.numpy(), [1 / np.sqrt(2 * 9.81 * 10), 1 / 9.81], rtol=1e-7)
        np.testing.assert_allclose(by_g.item(), -0.5 * np.sqrt(20 / 9.81**3), rtol=1e-7)
        speed = wrap(gc.grad(lambda y0, g: landing(y0, g).y[1]))(y0, g)
        np.testing.assert_allclose(speed[0].item(), -9.81 / np.sqrt(2 * 9.81 * 10), rtol=1e-7)


def test_entries_of_a_batch_end_at_their_own_times():
    heights = f64([1.0, 10.0, 500.0])
    land = gc.vmap(lambda h: odeint_event(fall, gc.stack([h, h * 0]), f64([0.0, 9.0]), height, f64(9.81)))
    end = gc.compile(land)(heights)
    assert end.found.tolist() == [True, True, False]
    np.testing.assert_allclose(end.t.numpy(), [*np.sqrt(2 * heights[:2].numpy() / 9.81), 9.0], rtol=1e-7)


def test_errors_name_the_argument():
    y0, t = f64([1.0, 0.0]), f64([0.0, 1.0])
    with pytest.raises(ArgumentError, match="no direction 'up'"):
        odeint_event(turn, y0, t, lambda t, y: y[0], direction="up")
    with pytest.raises(ShapeError, match=r"event returns shape \[2\]"):
        odeint_event(turn, y0, t, lambda t, y: y)
    with pytest.raises(ShapeError, match="t has 3 times"):
        odeint_event(turn, y0, f64([0.0, 1.0, 2.0]), lambda t, y: y[0])
    with pytest.raises(ArgumentError, match="rk4 estimates no error"):
        odeint_event(turn, y0, t, lambda t, y: y[0], method="rk4")
    with pytest.raises(ConditionError, match="not reached in 3 steps"):
        odeint_event(turn, y0, f64([0.0, 100.0]), lambda t, y: y[0] + 5, max_steps=3)
