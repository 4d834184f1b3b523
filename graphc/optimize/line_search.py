"""Search along a line for a point that satisfies the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_
from graphc.base.records import NamedTuple
from graphc.control.while_loop import while_loop
from graphc.optimize.solution import counted
from graphc.tensors.creation import full
from graphc.tensors.free_functions import where

SUFFICIENT, CURVATURE = 1e-4, 0.9
"""Shares of the first slope by which the function falls, and that the last slope's absolute value is at most: Nocedal
and Wright, section 3.1."""
GROWTH = 4.0
"""Factor on the step while the function still falls."""
MARGIN = 0.1
"""Least distance of a trial from the ends of its interval, as a share of the interval."""
TRIALS = 40
"""Largest number of evaluations in one search."""
ROUNDING = 8
"""Rise of the function that counts as rounding, in units of its last place."""


class Trial(NamedTuple):
    """A point on the line."""

    size: Any
    """Position, in directions from the start."""
    value: Any
    slope: Any
    """Derivative along the direction."""
    gradient: Any


class _Bracketing(NamedTuple):
    """Interval that contains suitable points: from ``low``, the best point so far, to ``high``, if it is bracketed."""

    size: Any
    """Position of the next trial."""
    low: Trial
    high: Trial
    bracketed: Any
    done: Any
    count: Any


def wolfe_point(evaluate: Callable[[Any], tuple[Any, Any]], v: Any, y: Any, g: Any, direction: Any) -> Trial:
    """Return a point ``v + size * direction`` that satisfies the strong Wolfe conditions.

    Brackets and zooms with cubic interpolation: Nocedal and Wright, Numerical optimization, algorithms 3.5 and 3.6. If
    no such point is found, the best one that falls sufficiently, or the start, of size 0.

    Args:
        evaluate: function of a point [n] that returns a value and its gradient [n]; values that are not finite are
            steps too long.
        v, y, g: start [n], its value and its gradient [n].
        direction: direction [n] in which the function falls.
    """
    first = Trial(full((), 0.0, dtype=v.dtype), y, (direction * g).sum(), g)
    slack = ROUNDING * float(np.finfo(v.dtype.numpy).eps) * y.abs()

    def step(s: _Bracketing) -> _Bracketing:
        value, gradient = evaluate(v + s.size * direction)
        trial = Trial(s.size, value, (gradient * direction).sum(), gradient)
        limit = (y + SUFFICIENT * s.size * first.slope).minimum(s.low.value) + slack
        rises = (value <= limit).logical_not()
        turned = trial.slope * where(s.bracketed, s.high.size - s.low.size, 1.0).to(v.dtype) >= 0
        low = _chosen(rises, s.low, trial)
        high = _chosen(rises, trial, _chosen(turned, s.low, s.high))
        bracketed = s.bracketed | rises | turned
        done = rises.logical_not() & (trial.slope.abs() <= -CURVATURE * first.slope)
        size = where(bracketed, _between(low, high), GROWTH * s.size)
        return _Bracketing(size, low, high, bracketed, done, s.count + 1)

    no = full((), False, dtype=bool_)
    start = _Bracketing(full((), 1.0, dtype=v.dtype), first, first, no, no, counted())
    return while_loop(lambda s: s.done.logical_not() & (s.count < TRIALS) & (first.slope < 0), step, start).low


def _chosen(condition: Any, a: Trial, b: Trial) -> Trial:
    return Trial(*(where(condition, x, y) for x, y in zip(a, b, strict=True)))


def _between(low: Trial, high: Trial) -> Any:
    """Return the minimum of the cubic polynomial with the values and slopes of two points, well between them; the
    middle if it has none: Nocedal and Wright, equation 3.59."""
    width = high.size - low.size
    d = low.slope + high.slope - 3 * (high.value - low.value) / width
    root = (d * d - low.slope * high.slope).sqrt() * width.sign()
    share = 1 - (high.slope + root - d) / (high.slope - low.slope + 2 * root)
    share = where(share.isfinite(), share, 0.5).to(width.dtype)
    return low.size + width * share.clamp(MARGIN, 1 - MARGIN)
