"""The problems of ``benchmarks.models.simulators`` as plain loops over numbers, which numba compiles.

Each takes the parameters as arrays and returns the value. Functions inside of functions are those that numba inlines.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, exp, log, sin, sqrt, tanh
from typing import Any

import numpy as np

from benchmarks.models.simulators import masses, measurements, temperatures

Array = Any


def van_der_pol(stiffness: Array) -> float:
    x, v, total = 2.0, 0.0, 0.0
    mu, h = stiffness[()], 0.002
    for _ in range(2000):
        slope, friction = -2 * mu * x * v - 1, mu * (1 - x * x)
        v = v + h * (friction * v - x + h * slope * v) / (1 - h * friction - h * h * slope)
        x = x + h * v
        total += x * x + v * v
    return total


def kepler(start: Array) -> float:
    x, y, u, v = start[0], start[1], start[2], start[3]
    for _ in range(2000):
        square = x * x + y * y
        pull = 0.0025 / (square * sqrt(square))
        u, v = u - pull * x, v - pull * y
        x, y = x + 0.005 * u, y + 0.005 * v
        square = x * x + y * y
        pull = 0.0025 / (square * sqrt(square))
        u, v = u - pull * x, v - pull * y
    return (x - 0.3) ** 2 + (y + 0.2) ** 2


def lorenz(parameters: Array) -> float:
    p, q, r = parameters[0], parameters[1], parameters[2]

    def rate(x, y, z):
        return p * (y - x), x * (q - z) - y, x * y - r * z

    x, y, z, h, total = 1.0, 1.0, 20.0, 0.002, 0.0
    for _ in range(1000):
        a = rate(x, y, z)
        b = rate(x + 0.5 * h * a[0], y + 0.5 * h * a[1], z + 0.5 * h * a[2])
        c = rate(x + 0.5 * h * b[0], y + 0.5 * h * b[1], z + 0.5 * h * b[2])
        d = rate(x + h * c[0], y + h * c[1], z + h * c[2])
        x += h / 6 * (a[0] + 2 * b[0] + 2 * c[0] + d[0])
        y += h / 6 * (a[1] + 2 * b[1] + 2 * c[1] + d[1])
        z += h / 6 * (a[2] + 2 * b[2] + 2 * c[2] + d[2])
        total += x * x + y * y + z * z
    return total / 3000


def hodgkin_huxley(conductances: Array) -> float:
    v, m, h, n, total = -64.0, 0.05, 0.6, 0.32, 0.0
    for _ in range(2000):
        a_m, b_m = 0.1 * (v + 40) / (1 - exp(-(v + 40) / 10)), 4 * exp(-(v + 65) / 18)
        a_h, b_h = 0.07 * exp(-(v + 65) / 20), 1 / (1 + exp(-(v + 35) / 10))
        a_n, b_n = 0.01 * (v + 55) / (1 - exp(-(v + 55) / 10)), 0.125 * exp(-(v + 65) / 80)
        current = 10 - conductances[0] * m * m * m * h * (v - 50) - conductances[1] * n * n * n * n * (v + 77)
        current = current - conductances[2] * (v + 54.387)
        m, h = m + 0.01 * (a_m * (1 - m) - b_m * m), h + 0.01 * (a_h * (1 - h) - b_h * h)
        n = n + 0.01 * (a_n * (1 - n) - b_n * n)
        v = v + 0.01 * current
        total += v
    return total / 2000


def pendulum_control(forces: Array) -> float:
    x, speed, angle, turning, total = 0.0, 0.0, 0.2, 0.0, 0.0
    for force in forces:
        sine, cosine = sin(angle), cos(angle)
        push = (force + 0.05 * turning * turning * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        drive = push - 0.05 * turn * cosine / 1.1
        x, speed, angle, turning = x + 0.02 * speed, speed + 0.02 * drive, angle + 0.02 * turning, turning + 0.02 * turn
        total += x * x + 0.1 * speed * speed + 10 * angle * angle + 0.1 * turning * turning + 0.01 * force * force
    return total


def epidemic(rates: Array) -> float:
    infection, recovery = rates[0], rates[1]

    def rate(s, i):
        infected, recovered = infection * s * i, recovery * i
        return -infected, infected - recovered

    s, i, h, total = 0.99, 0.01, 0.2, 0.0
    for day in range(500):
        a = rate(s, i)
        b = rate(s + 0.5 * h * a[0], i + 0.5 * h * a[1])
        c = rate(s + 0.5 * h * b[0], i + 0.5 * h * b[1])
        d = rate(s + h * c[0], i + h * c[1])
        s += h / 6 * (a[0] + 2 * b[0] + 2 * c[0] + d[0])
        i += h / 6 * (a[1] + 2 * b[1] + 2 * c[1] + d[1])
        total += (i - exp(-(((day - 200) / 80) ** 2)) / 4) ** 2
    return total


def heat(diffusivity: Array, first: Array) -> float:
    field, after = first.copy(), np.empty_like(first)
    rows, columns = first.shape
    for _ in range(100):
        for i in range(rows):
            up, down = (i - 1) % rows, (i + 1) % rows
            for j in range(columns):
                around = field[up, j] + field[down, j] + field[i, (j - 1) % columns] + field[i, (j + 1) % columns]
                after[i, j] = field[i, j] + diffusivity[i, j] * (around - 4 * field[i, j])
        field, after = after, field
    total = 0.0
    for i in range(rows):
        for j in range(columns):
            total += field[i, j] * field[i, j]
    return total


def neural_ode(hidden: Array, bias: Array, out: Array) -> float:
    def rate(x, y):
        a, b = 0.0, 0.0
        for k in range(bias.shape[0]):
            unit = tanh(x * hidden[0, k] + y * hidden[1, k] + bias[k])
            a, b = a + unit * out[k, 0], b + unit * out[k, 1]
        return a, b

    x, y, h, total = 1.0, -0.5, 0.05, 0.0
    for _ in range(200):
        a = rate(x, y)
        b = rate(x + 0.5 * h * a[0], y + 0.5 * h * a[1])
        c = rate(x + 0.5 * h * b[0], y + 0.5 * h * b[1])
        d = rate(x + h * c[0], y + h * c[1])
        x += h / 6 * (a[0] + 2 * b[0] + 2 * c[0] + d[0])
        y += h / 6 * (a[1] + 2 * b[1] + 2 * c[1] + d[1])
        total += x * x + y * y
    return total


def policy_rollout(hidden: Array, bias: Array, out: Array) -> float:
    x, speed, angle, turning, total = 0.0, 0.0, 0.1, 0.0, 0.0
    for _ in range(200):
        force = 0.0
        for k in range(bias.shape[0]):
            inner = x * hidden[0, k] + speed * hidden[1, k] + angle * hidden[2, k] + turning * hidden[3, k]
            force += tanh(inner + bias[k]) * out[k]
        sine, cosine = sin(angle), cos(angle)
        push = (force + 0.05 * turning * turning * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        drive = push - 0.05 * turn * cosine / 1.1
        x, speed, angle, turning = x + 0.02 * speed, speed + 0.02 * drive, angle + 0.02 * turning, turning + 0.02 * turn
        total += angle * angle + 0.1 * x * x
    return total


def planets(places: Array, speeds: Array) -> float:
    def add_force(x, v, h):
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                a, b, c = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                square = a * a + b * b + c * c + 0.01
                pull = h / (square * sqrt(square))
                v[i, 0] += pull * a
                v[i, 1] += pull * b
                v[i, 2] += pull * c

    x, v = places.copy(), speeds.copy()
    for _ in range(200):
        add_force(x, v, 0.005)
        x += 0.01 * v
        add_force(x, v, 0.005)
    return (x * x).sum()


def molecules(places: Array) -> float:
    def add_force(x, v, h):
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                if i != j:
                    a, b, c = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1], x[i, 2] - x[j, 2]
                    square = a * a + b * b + c * c
                    inverse = 1 / (square * square * square)
                    push = h * 24 * inverse * (2 * inverse - 1) / square
                    v[i, 0] += push * a
                    v[i, 1] += push * b
                    v[i, 2] += push * c

    x, v = places.copy(), np.zeros_like(places)
    for _ in range(50):
        add_force(x, v, 0.0005)
        x += 0.001 * v
        add_force(x, v, 0.0005)
    return (v * v).sum()


def kalman(noise: Array, seen: Array) -> float:
    mean, spread, half, column = np.zeros(4), np.eye(4), np.zeros((4, 4)), np.zeros(4)
    total = 0.0
    for value in seen:
        mean[0] += 0.1 * mean[2]
        mean[1] += 0.1 * mean[3]
        for j in range(4):
            for i in range(4):
                half[i, j] = spread[i, j] + (0.1 * spread[i + 2, j] if i < 2 else 0.0)
        for i in range(4):
            for j in range(4):
                spread[i, j] = half[i, j] + (0.1 * half[i, j + 2] if j < 2 else 0.0) + (noise[0] if i == j else 0.0)
        for i in range(4):
            column[i] = spread[i, 0] + 0.5 * spread[i, 1]
        variance = column[0] + 0.5 * column[1] + noise[1]
        error = value - (mean[0] + 0.5 * mean[1])
        for i in range(4):
            for j in range(4):
                spread[i, j] -= column[i] / variance * column[j]
            mean[i] += column[i] / variance * error
        total += log(variance) + error * error / variance
    return total


def oscillators(springs: Array, first: Array) -> float:
    x, v = first[0].copy(), first[1].copy()
    count = x.shape[0]
    for _ in range(500):
        for i in range(count):
            pull = springs[i] * (x[(i - 1) % count] - 2 * x[i] + x[(i + 1) % count]) - sin(x[i])
            v[i] += 0.01 * pull
        for i in range(count):
            x[i] += 0.01 * v[i]
    return (x * x).sum()


LOOPS: dict[str, tuple[Callable[..., float], tuple[np.ndarray, ...]]] = {
    "van der Pol": (van_der_pol, ()),
    "kepler": (kepler, ()),
    "lorenz": (lorenz, ()),
    "hodgkin-huxley": (hodgkin_huxley, ()),
    "pendulum": (pendulum_control, ()),
    "epidemic": (epidemic, ()),
    "neural ode": (neural_ode, ()),
    "policy": (policy_rollout, ()),
    "planets": (planets, ()),
    "kalman": (kalman, (measurements(),)),
    "60 leaves": (oscillators, (masses(30),)),
    "200 leaves": (oscillators, (masses(100),)),
    "molecules": (molecules, ()),
    "heat": (heat, (temperatures(),)),
}
"""The loop of each problem, and the arrays that it takes after the parameters."""
