"""The line search: what it finds satisfies the strong Wolfe conditions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphc.optim.line_search import Point, cubic_minimum, strong_wolfe

FUNCTIONS = {
    "parabola": (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3)),
    "far": (lambda t: (t - 300) ** 2, lambda t: 2 * (t - 300)),
    "near": (lambda t: (t - 0.01) ** 2, lambda t: 2 * (t - 0.01)),
    "waves": (
        lambda t: -t / (t * t + 2) + 0.1 * math.cos(5 * t),
        lambda t: (t * t - 2) / (t * t + 2) ** 2 - 0.5 * math.sin(5 * t),
    ),
    "steep": (lambda t: math.exp(t) - 5 * t, lambda t: math.exp(t) - 5),
}


def point(name: str, t: float) -> Point:
    value, slope = FUNCTIONS[name]
    return Point(t, value(t), np.array([slope(t)]), slope(t))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("t", [0.1, 1.0, 10.0])
def test_conditions_hold(name: str, t: float):
    start = point(name, 0.0)
    found, count = strong_wolfe(lambda t: point(name, t), start, t, 1.0, 25, 1e-9)
    assert found == point(name, found.t)
    assert found.value <= start.value + 1e-4 * found.t * start.slope
    assert abs(found.slope) <= 0.9 * abs(start.slope)
    assert 1 <= count <= 26


def test_trials_run_out():
    found, count = strong_wolfe(lambda t: point("far", t), point("far", 0.0), 0.001, 1.0, 2, 1e-9)
    assert count == 3 and found.value < point("far", 0.0).value


def test_the_cubic_of_a_parabola_has_its_minimum():
    a, b = point("parabola", 0.0), point("parabola", 5.0)
    assert cubic_minimum(a, b, 0.0, 5.0) == cubic_minimum(b, a, 0.0, 5.0) == pytest.approx(3.0)
    assert cubic_minimum(a, b, 0.0, 2.0) == 2.0
    assert cubic_minimum(a, a, 0.0, 2.0) == 1.0
    falling = Point(0.0, 0.0, np.zeros(1), -1.0), Point(1.0, -1.0, np.zeros(1), -1.0)
    assert 0.0 <= cubic_minimum(*falling, 0.0, 4.0) <= 4.0
