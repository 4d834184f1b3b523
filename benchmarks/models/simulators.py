"""Simulators as one source for several libraries: a function of parameters, whose loops are scans.

Each takes the library's functions as ``lib`` (see ``Functions``) and returns one number. All numbers are f64.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from graphc.base.records import dataclass

Functions = SimpleNamespace
"""``sqrt sin cos exp log tanh stack roll`` of arrays, ``array`` of a numpy array, and ``scan`` of a library."""
Array = Any
Simulator = Callable[..., Array]

# NOTE: functions, because a call of compiled code compares global arrays with those of the trace.


def temperatures() -> np.ndarray:
    """Return the first state of ``heat``."""
    return np.random.default_rng(0).standard_normal((64, 64))


def measurements() -> np.ndarray:
    """Return the positions that ``kalman`` filters."""
    return np.cumsum(np.random.default_rng(0).standard_normal(500)) * 0.1


def masses(count: int) -> np.ndarray:
    """Return the first positions and speeds of ``oscillators``."""
    return np.random.default_rng(0).standard_normal((2, count))


def _runge_kutta(rate: Callable[[Any], Any], state: Array, step: float) -> Array:
    a = rate(state)
    b = rate(state + 0.5 * step * a)
    c = rate(state + 0.5 * step * b)
    d = rate(state + step * c)
    return state + step / 6 * (a + 2 * b + 2 * c + d)


def van_der_pol(lib: Functions, stiffness: Array) -> Array:
    """Sum of squares of 2,000 stacked states of a stiff oscillator, by a linearly implicit step."""

    def step(carry: Any, _: Any) -> Any:
        x, v = carry
        h = 0.002
        slope, friction = -2 * stiffness * x * v - 1, stiffness * (1 - x * x)
        v = v + h * (friction * v - x + h * slope * v) / (1 - h * friction - h * h * slope)
        x = x + h * v
        return (x, v), lib.stack([x, v])

    first = lib.array(np.array(2.0))
    return (lib.scan(step, (first, 0 * first), None, 2000)[1] ** 2).sum()


def kepler(lib: Functions, start: Array) -> Array:
    """Distance of a planet from a point after 2,000 leapfrog steps; ``start`` is [position, velocity]."""

    def step(carry: Any, _: Any) -> Any:
        x, y, u, v = carry
        u, v = _kick(lib, x, y, u, v)
        x, y = x + 0.005 * u, y + 0.005 * v
        u, v = _kick(lib, x, y, u, v)
        return (x, y, u, v), x

    (x, y, _, _), _ = lib.scan(step, (start[0], start[1], start[2], start[3]), None, 2000)
    return (x - 0.3) ** 2 + (y + 0.2) ** 2


def _kick(lib: Functions, x: Array, y: Array, u: Array, v: Array) -> tuple[Array, Array]:
    square = x * x + y * y
    pull = 0.0025 / (square * lib.sqrt(square))
    return u - pull * x, v - pull * y


def lorenz(lib: Functions, parameters: Array) -> Array:
    """Mean square of 1,000 steps of the Lorenz equations by the method of order 4."""

    def rate(s: Array) -> Array:
        x, y, z = s[0], s[1], s[2]
        return lib.stack([parameters[0] * (y - x), x * (parameters[1] - z) - y, x * y - parameters[2] * z])

    def step(carry: Any, _: Any) -> Any:
        carry = _runge_kutta(rate, carry, 0.002)
        return carry, carry

    return (lib.scan(step, lib.array(np.array([1.0, 1.0, 20.0])), None, 1000)[1] ** 2).mean()


def hodgkin_huxley(lib: Functions, conductances: Array) -> Array:
    """Mean voltage of a neuron over 2,000 Euler steps; ``conductances`` of sodium, potassium, leakage in mS/cm^2."""

    def step(carry: Any, _: Any) -> Any:
        v, m, h, n = carry
        a_m, b_m = 0.1 * (v + 40) / (1 - lib.exp(-(v + 40) / 10)), 4 * lib.exp(-(v + 65) / 18)
        a_h, b_h = 0.07 * lib.exp(-(v + 65) / 20), 1 / (1 + lib.exp(-(v + 35) / 10))
        a_n, b_n = 0.01 * (v + 55) / (1 - lib.exp(-(v + 55) / 10)), 0.125 * lib.exp(-(v + 65) / 80)
        current = 10 - conductances[0] * m * m * m * h * (v - 50) - conductances[1] * n * n * n * n * (v + 77)
        current = current - conductances[2] * (v + 54.387)
        m, h = m + 0.01 * (a_m * (1 - m) - b_m * m), h + 0.01 * (a_h * (1 - h) - b_h * h)
        n = n + 0.01 * (a_n * (1 - n) - b_n * n)
        v = v + 0.01 * current
        return (v, m, h, n), v

    first = tuple(lib.array(np.array(x)) for x in (-64.0, 0.05, 0.6, 0.32))
    return lib.scan(step, first, None, 2000)[1].mean()


def pendulum_control(lib: Functions, forces: Array) -> Array:
    """Cost of 100 forces on a cart with a pendulum that starts near its upright position."""

    def step(carry: Any, force: Any) -> Any:
        carry = _cart_pole(lib, carry, force)
        x, speed, angle, turning = carry
        return carry, x * x + 0.1 * speed * speed + 10 * angle * angle + 0.1 * turning * turning + 0.01 * force * force

    first = tuple(lib.array(np.array(x)) for x in (0.0, 0.0, 0.2, 0.0))
    return lib.scan(step, first, forces, None)[1].sum()


def _cart_pole(lib: Functions, state: Any, force: Array) -> Any:
    x, speed, angle, turning = state
    sine, cosine = lib.sin(angle), lib.cos(angle)
    push = (force + 0.05 * turning * turning * sine) / 1.1
    turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
    drive = push - 0.05 * turn * cosine / 1.1
    return x + 0.02 * speed, speed + 0.02 * drive, angle + 0.02 * turning, turning + 0.02 * turn


def epidemic(lib: Functions, rates: Array) -> Array:
    """Squared error of an SIR model over 500 steps of order 4; ``rates`` of infection and recovery per day."""

    def rate(s: Array) -> Array:
        infected, recovered = rates[0] * s[0] * s[1], rates[1] * s[1]
        return lib.stack([-infected, infected - recovered, recovered])

    def step(carry: Any, seen: Any) -> Any:
        carry = _runge_kutta(rate, carry, 0.2)
        return carry, (carry[1] - seen) ** 2

    seen = lib.array(np.exp(-(((np.arange(500) - 200) / 80) ** 2)) / 4)
    return lib.scan(step, lib.array(np.array([0.99, 0.01, 0.0])), seen, None)[1].sum()


def heat(lib: Functions, diffusivity: Array) -> Array:
    """Squared temperature after 100 explicit steps on a periodic grid of 64 x 64 points, each with its diffusivity."""

    def step(carry: Any, _: Any) -> Any:
        around = lib.roll(carry, 1, 0) + lib.roll(carry, -1, 0) + lib.roll(carry, 1, 1) + lib.roll(carry, -1, 1)
        return carry + diffusivity * (around - 4 * carry), None

    first = lib.array(temperatures())
    return (lib.scan(step, first, None, 100)[0] ** 2).sum()


def neural_ode(lib: Functions, hidden: Array, bias: Array, out: Array) -> Array:
    """Squared state of 200 steps of order 4 of a perceptron of 32 units on 2 numbers."""

    def step(carry: Any, _: Any) -> Any:
        carry = _runge_kutta(lambda s: lib.tanh(s @ hidden + bias) @ out, carry, 0.05)
        return carry, (carry * carry).sum()

    return lib.scan(step, lib.array(np.array([1.0, -0.5])), None, 200)[1].sum()


def policy_rollout(lib: Functions, hidden: Array, bias: Array, out: Array) -> Array:
    """Cost of 200 steps of a cart with a pendulum, pushed by a perceptron of 16 units."""

    def step(carry: Any, _: Any) -> Any:
        force = (lib.tanh(lib.stack(list(carry)) @ hidden + bias) * out).sum()
        carry = _cart_pole(lib, carry, force)
        return carry, carry[2] * carry[2] + 0.1 * carry[0] * carry[0]

    first = tuple(lib.array(np.array(x)) for x in (0.0, 0.0, 0.1, 0.0))
    return lib.scan(step, first, None, 200)[1].sum()


def planets(lib: Functions, places: Array, speeds: Array) -> Array:
    """Squared places of 8 bodies after 200 leapfrog steps; ``places`` and ``speeds`` are [8, 3]."""

    def force(x: Array) -> Array:
        between = x[None, :, :] - x[:, None, :]
        square = (between * between).sum(-1) + 0.01
        return (between / (square * lib.sqrt(square))[:, :, None]).sum(1)

    def step(carry: Any, _: Any) -> Any:
        x, v = carry
        v = v + 0.005 * force(x)
        x = x + 0.01 * v
        return (x, v + 0.005 * force(x)), None

    return (lib.scan(step, (places, speeds), None, 200)[0][0] ** 2).sum()


def molecules(lib: Functions, places: Array) -> Array:
    """Squared speeds of 64 atoms after 50 steps with Lennard-Jones forces; ``places`` are [64, 3]."""

    def force(x: Array) -> Array:
        between = x[:, None, :] - x[None, :, :]
        square = (between * between).sum(-1) + lib.array(np.eye(64) * 1e6)
        inverse = 1 / (square * square * square)
        return ((24 * inverse * (2 * inverse - 1) / square)[:, :, None] * between).sum(1)

    def step(carry: Any, _: Any) -> Any:
        x, v = carry
        v = v + 0.0005 * force(x)
        x = x + 0.001 * v
        return (x, v + 0.0005 * force(x)), None

    return (lib.scan(step, (places, 0 * places), None, 50)[0][1] ** 2).sum()


def kalman(lib: Functions, noise: Array) -> Array:
    """Negative log-likelihood of 500 measurements of a filter of 4 states; ``noise`` of the states, of measurements."""
    transition = np.eye(4) + 0.1 * np.eye(4, k=2)
    forward, spread = lib.array(transition), lib.array(np.eye(4))
    look = lib.array(np.array([1.0, 0.5, 0.0, 0.0]))

    def step(carry: Any, seen: Any) -> Any:
        mean, covariance = carry
        mean, covariance = forward @ mean, forward @ covariance @ lib.array(transition.T) + noise[0] * spread
        column = covariance @ look
        variance = (look * column).sum() + noise[1]
        error = seen - (look * mean).sum()
        gain = column / variance
        covariance = covariance - gain[:, None] * column[None, :]
        return (mean + gain * error, covariance), lib.log(variance) + error * error / variance

    seen = lib.array(measurements())
    return lib.scan(step, (lib.array(np.zeros(4)), spread), seen, None)[1].sum()


def oscillators(lib: Functions, springs: Array) -> Array:
    """Sum of squared positions of coupled masses after 500 steps, each position and speed a leaf of the state."""
    count = len(springs)

    def step(carry: Any, _: Any) -> Any:
        x, v = carry
        pulls = [springs[i] * (x[i - 1] - 2 * x[i] + x[(i + 1) % count]) - lib.sin(x[i]) for i in range(count)]
        v = [speed + 0.01 * pull for speed, pull in zip(v, pulls, strict=True)]
        return ([place + 0.01 * speed for place, speed in zip(x, v, strict=True)], v), None

    state = tuple([lib.array(np.array(n)) for n in row] for row in masses(count))
    places = lib.scan(step, state, None, 500)[0][0]
    return sum((x * x for x in places[1:]), places[0] * places[0])


@dataclass(frozen=True)
class Problem:
    """A simulator, and its parameters."""

    run: Simulator
    parameters: tuple[np.ndarray, ...]
    numbers: int
    """Numbers in the state of its loop."""


def _perceptron(inputs: int, units: int, outputs: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    shapes = (inputs, units), (units,), (units, outputs) if outputs > 1 else (units,)
    return tuple(0.5 * rng.standard_normal(shape) for shape in shapes)


def _lattice() -> np.ndarray:
    places = np.stack(np.meshgrid(*[np.arange(4) * 1.2] * 3), -1).reshape(64, 3)
    return places + 0.02 * np.random.default_rng(0).standard_normal((64, 3))


PROBLEMS = {
    "van der Pol": Problem(van_der_pol, (np.array(20.0),), 2),
    "kepler": Problem(kepler, (np.array([1.0, 0.0, 0.0, 0.9]),), 4),
    "lorenz": Problem(lorenz, (np.array([10.0, 28.0, 8 / 3]),), 3),
    "hodgkin-huxley": Problem(hodgkin_huxley, (np.array([120.0, 36.0, 0.3]),), 4),
    "pendulum": Problem(pendulum_control, (np.sin(np.arange(100) / 5),), 4),
    "epidemic": Problem(epidemic, (np.array([0.35, 0.1]),), 3),
    "neural ode": Problem(neural_ode, _perceptron(2, 32, 2), 2),
    "policy": Problem(policy_rollout, _perceptron(4, 16, 1), 4),
    "planets": Problem(planets, tuple(np.random.default_rng(2).standard_normal((2, 8, 3))), 48),
    "kalman": Problem(kalman, (np.array([0.1, 0.5]),), 20),
    "60 leaves": Problem(oscillators, (np.linspace(0.5, 2, 30),), 60),
    "200 leaves": Problem(oscillators, (np.linspace(0.5, 2, 100),), 200),
    "molecules": Problem(molecules, (_lattice(),), 384),
    "heat": Problem(heat, (np.random.default_rng(3).uniform(0.05, 0.2, (64, 64)),), 4096),
}
