"""Points of line searches: the strong Wolfe conditions, in eager mode and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.optimize.line_search import CURVATURE, SUFFICIENT, TRIALS, wolfe_point

F64 = gc.float64


def searched(f, start, direction):
    """Return what the search from ``start`` returns, and the function's values and slopes at both ends."""
    v, way = (gc.tensor([x], dtype=F64) for x in (start, direction))
    evaluate = gc.value_and_grad(lambda v: f(v[0]))
    y, g = evaluate(v)
    end = gc.compile(lambda v: wolfe_point(evaluate, v, y, g, way))(v)
    eager = wolfe_point(evaluate, v, y, g, way)
    np.testing.assert_allclose(end.size.item(), eager.size.item(), rtol=1e-12)
    return end, y.item(), (g * way).item()


# The functions of Moré and Thuente, Line search algorithms with guaranteed sufficient decrease, 1994, section 5, and
# one that is infinite beyond 1.
FUNCTIONS = {
    "rational": lambda a: -a / (a * a + 2),
    "power": lambda a: (a + 0.004) ** 5 - 2 * (a + 0.004) ** 4,
    "valley": lambda a: 0.001 * (a - 3).square() + 1 - (1 + (a - 3).square()).rsqrt(),
    "barrier": lambda a: -(1 - a).log() - 3 * a,
    "quartic": lambda a: (a - 700) ** 4,
}


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_point_satisfies_the_conditions_for_short_and_long_first_steps(name, scale):
    end, value, slope = searched(FUNCTIONS[name], 0.0, scale)
    assert slope < 0 < end.size.item()
    assert end.value.item() <= value + SUFFICIENT * end.size.item() * slope
    assert abs(end.slope.item()) <= -CURVATURE * slope


def test_a_direction_that_rises_ends_at_the_start():
    end, value, slope = searched(lambda a: (a + 1).square(), 0.0, 1.0)
    assert slope > 0
    assert (end.size.item(), end.value.item()) == (0, value)


def test_a_function_without_a_minimum_ends_with_its_lowest_point():
    end, value, _ = searched(lambda a: -a, 0.0, 1e-9)
    assert end.value.item() < value
    np.testing.assert_allclose(end.size.item(), 4.0 ** (TRIALS - 1))
