"""Line search for the strong Wolfe conditions (Nocedal and Wright, Numerical Optimization, section 3.5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

_DECREASE = 1e-4
"""Fraction of the decrease predicted by the slope at 0 that a point must reach."""
_CURVATURE = 0.9
"""Fraction of the slope at 0 that may remain."""


class Point(NamedTuple):
    """A point on the line."""

    t: float
    value: float
    grad: np.ndarray
    slope: float


Evaluate = Callable[[float], Point]


def cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """Return the minimum, between ``low`` and ``high``, of the cubic through values and slopes at two points."""
    if a.t > b.t:
        a, b = b, a
    width = b.t - a.t
    first = a.slope + b.slope + 3.0 * (a.value - b.value) / width if width else math.nan
    square = first * first - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    root = math.sqrt(square)
    scale = b.slope - a.slope + 2.0 * root
    if not scale:
        return (low + high) / 2.0
    return min(max(b.t - width * (b.slope + root - first) / scale, low), high)


def strong_wolfe(
    evaluate: Evaluate, start: Point, t: float, size: float, limit: int, tolerance: float
) -> tuple[Point, int]:
    """Return (a point, number of evaluations): a point that satisfies the conditions, or the best after ``limit``
    trials.

    ``start`` is the point at 0, ``t`` the first trial, ``size`` the largest element of the direction. The search ends
    when it would move no parameter by more than ``tolerance``.
    """
    search = _Search(evaluate, start, size, limit, tolerance)
    bracket = search.bracket(t)
    if len(bracket) > 1:
        bracket = [search.zoom(bracket)]
    return bracket[0], search.count


class _Search:
    def __init__(self, evaluate: Evaluate, start: Point, size: float, limit: int, tolerance: float):
        self._evaluate = evaluate
        self.start = start
        self.size = size
        self.limit = limit
        self.tolerance = tolerance
        self.count = 0

    def _at(self, t: float) -> Point:
        self.count += 1
        return self._evaluate(t)

    def _too_high(self, point: Point) -> bool:
        return point.value > self.start.value + _DECREASE * point.t * self.start.slope

    def _flat(self, point: Point) -> bool:
        return abs(point.slope) <= -_CURVATURE * self.start.slope

    def bracket(self, t: float) -> list[Point]:
        """Return one point that satisfies the conditions, or two with such a point between them."""
        before, point = self.start, self._at(t)
        while self.count <= self.limit:
            if self._too_high(point) or (self.count > 2 and point.value >= before.value):
                return [before, point]
            if self._flat(point):
                return [point]
            if point.slope >= 0:
                return [before, point]
            nearest = point.t + 0.01 * (point.t - before.t)
            before, point = point, self._at(cubic_minimum(before, point, nearest, point.t * 10))
        return [self.start, point]

    def zoom(self, bracket: list[Point]) -> Point:
        """Return the first trial between two points that satisfies the conditions, or the lower end after the last
        trial."""
        stalled = False
        low = _lower(bracket)
        while self.count <= self.limit and abs(bracket[1].t - bracket[0].t) * self.size >= self.tolerance:
            t, stalled = _trial(bracket, stalled)
            point, best = self._at(t), bracket[low]
            if self._too_high(point) or point.value >= best.value:
                bracket[1 - low] = point
                low = _lower(bracket)
                continue
            if self._flat(point):
                return point
            if point.slope * (bracket[1 - low].t - best.t) >= 0:
                bracket[1 - low] = best
            bracket[low] = point
        return bracket[low]


def _lower(bracket: list[Point]) -> int:
    return 0 if bracket[0].value <= bracket[1].value else 1


def _trial(bracket: list[Point], stalled: bool) -> tuple[float, bool]:
    """Return the next trial; one near an end is moved inside if the last one was near an end too."""
    low, high = sorted(point.t for point in bracket)
    t = cubic_minimum(bracket[0], bracket[1], low, high)
    margin = 0.1 * (high - low)
    if min(high - t, t - low) >= margin:
        return t, False
    if stalled or t >= high or t <= low:
        return (high - margin if abs(t - high) < abs(t - low) else low + margin), False
    return t, True
