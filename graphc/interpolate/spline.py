"""Functions through given values: piecewise linear, and cubic splines, whose systems are solved along the points."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.control.scan import scan
from graphc.tensors.free_functions import assert_true, cat, searchsorted

ENDS = ("not-a-knot", "natural", "clamped")


def _checked(name: str, x: Any, y: Any, least: int) -> None:
    if x.dtype is not y.dtype or not x.dtype.is_differentiable or x.dtype.is_complex:
        raise DTypeError(f"{name}: points of {x.dtype.name}, values of {y.dtype.name}", remedy="use one float type")
    if len(x.shape) != 1 or tuple(y.shape[:1]) != tuple(x.shape):
        raise ShapeError(
            f"{name}: points {list(x.shape)} and values {list(y.shape)}", remedy="pass [n] points and [n, ...] values"
        )
    if x.shape[0] < least:
        raise ShapeError(f"{name}: {x.shape[0]} points", remedy=f"pass {least} or more")
    assert_true((x[1:] > x[:-1]).all(), f"{name}: the points must rise strictly")


def _interval(points: Any, x: Any) -> Any:
    """Return the number of the interval that contains each x; those outside belong to the first or the last one."""
    return (searchsorted(points, x.detach(), right=True) - 1).clamp(0, points.shape[0] - 2)


def _wide(weights: Any, values: Any) -> Any:
    """Reshape weights [...] to multiply values [..., *rest]."""
    return weights.reshape(*weights.shape, *(1 for _ in range(len(values.shape) - len(weights.shape))))


def interp(x: Any, points: Any, values: Any) -> Any:
    """Return the piecewise linear function through (points, values) at ``x``; outside, the first or the last value.

    Args:
        x: positions, of any shape.
        points: [n], rising strictly; n is at least 2.
        values: [n, ...].

    Returns:
        Values of shape ``x.shape + values.shape[1:]``, differentiable by all three arguments.

    Raises:
        ConditionError: the points do not rise strictly.
        ShapeError, DTypeError: unsuitable points or values.

    Example:
        >>> import graphc as gc
        >>> gc.interpolate.interp(gc.tensor([0.5, 3.0]), gc.tensor([0.0, 1.0, 2.0]), gc.tensor([0.0, 10.0, 40.0]))
        tensor([ 5., 40.])
    """
    _checked("interp", points, values, 2)
    return _linear(x, points, values)


def _linear(x: Any, points: Any, values: Any) -> Any:
    i = _interval(points, x)
    start, end = values[i], values[i + 1]
    inside = x.maximum(points[0]).minimum(points[-1])
    return start + _wide((inside - points[i]) / (points[i + 1] - points[i]), start) * (end - start)


def interp1d(x: Any, y: Any, kind: str = "linear") -> Callable[[Any], Any]:
    """Return a function of positions between the points ``x``: ``interp`` or a ``CubicSpline`` through ``y``.

    Args:
        x, y: points [n] and values [n, ...], as ``interp`` and ``CubicSpline`` take them.
        kind: ``linear`` or ``cubic`` (with ends ``not-a-knot``).

    Raises:
        ConditionError: a position is outside of the points (when the function is called), or they do not rise strictly.
        ArgumentError, ShapeError, DTypeError: unsuitable arguments.

    Example:
        >>> import graphc as gc
        >>> f = gc.interpolate.interp1d(gc.tensor([0.0, 1.0, 2.0]), gc.tensor([0.0, 10.0, 40.0]))
        >>> f(gc.tensor([0.5, 1.5]))
        tensor([ 5., 25.])
    """
    if kind not in ("linear", "cubic"):
        raise ArgumentError(f"interp1d: there is no kind {kind!r}", remedy="pass linear or cubic")
    _checked("interp1d", x, y, 2 if kind == "linear" else 4)
    function = partial(_linear, points=x, values=y) if kind == "linear" else CubicSpline(x, y)

    def inside(positions: Any) -> Any:
        within = (positions >= x[0]) & (positions <= x[-1])
        assert_true(within.all(), "interp1d: a position is outside of the points; clamp it, or call interp")
        return function(positions)

    return inside


class CubicSpline:
    """The cubic spline through values at points: twice continuously differentiable; outside, its end pieces go on.

    Args:
        x: points [n], rising strictly; n is at least 4 for ``not-a-knot``, else 2.
        y: values [n, ...].
        bc_type: ``not-a-knot`` (the first two pieces are one polynomial, and so are the last two), ``natural`` (second
            derivatives 0 at the ends) or ``clamped`` (first derivatives 0 at the ends).

    Raises:
        ConditionError: the points do not rise strictly.
        ArgumentError, ShapeError, DTypeError: unsuitable arguments.

    Example:
        >>> import graphc as gc
        >>> x = gc.arange(5, dtype=gc.float32)
        >>> spline = gc.interpolate.CubicSpline(x, x**3)
        >>> spline(gc.tensor([0.5, 2.5])), spline(gc.tensor(2.5), 1)
        (tensor([ 0.1250, 15.6250]), tensor(18.7500))
    """

    def __init__(self, x: Any, y: Any, bc_type: str = "not-a-knot"):
        if bc_type not in ENDS:
            raise ArgumentError(
                f"CubicSpline: there is no bc_type {bc_type!r}", remedy=f"pass one of {', '.join(ENDS)}"
            )
        _checked("CubicSpline", x, y, 4 if bc_type == "not-a-knot" else 2)
        self.x, self.y = x, y
        self.slopes = _slopes(x, y, bc_type)
        """First derivatives at the points, [n, ...]."""

    def __call__(self, x: Any, nu: int = 0) -> Any:
        """Return the spline's derivative of order ``nu`` (0 to 3) at ``x``: ``x.shape + y.shape[1:]``."""
        if nu not in (0, 1, 2, 3):
            raise ArgumentError(f"CubicSpline: nu={nu}", remedy="pass 0, 1, 2 or 3")
        i = _interval(self.x, x)
        start, first, last = self.y[i], self.slopes[i], self.slopes[i + 1]
        h = _wide(self.x[i + 1] - self.x[i], start)
        t = _wide(x - self.x[i], start)
        slope = (self.y[i + 1] - start) / h
        cubic = (first + last - 2 * slope) / (h * h)
        square = (slope - first) / h - cubic * h
        if nu == 0:
            return start + t * (first + t * (square + t * cubic))
        if nu == 1:
            return first + t * (2 * square + 3 * t * cubic)
        return 2 * square + 6 * t * cubic if nu == 2 else 6 * cubic + 0 * t


def _slopes(x: Any, y: Any, bc_type: str) -> Any:
    """Return the slopes at the points, from the tridiagonal system that makes second derivatives continuous: de Boor,
    A practical guide to splines, chapter IV."""
    h = x[1:] - x[:-1]
    slope = (y[1:] - y[:-1]) / _wide(h, y)
    wide = _wide(h, y)
    inner = 3 * (wide[1:] * slope[:-1] + wide[:-1] * slope[1:])
    (diagonal0, upper0, right0), (diagonal1, lower1, right1) = _ends(h, slope, bc_type)
    zero = h[:1] * 0
    lower = cat([zero, h[1:], lower1.reshape(1)])
    diagonal = cat([diagonal0.reshape(1), 2 * (h[:-1] + h[1:]), diagonal1.reshape(1)])
    upper = cat([upper0.reshape(1), h[:-1], zero])
    right = cat([right0.reshape(1, *y.shape[1:]), inner, right1.reshape(1, *y.shape[1:])])
    return _tridiagonal(lower, diagonal, upper, right)


def _ends(h: Any, slope: Any, bc_type: str) -> Any:
    """Return (diagonal, other element, right side) of the first and of the last row."""
    one = h[0] * 0 + 1
    if bc_type == "clamped":
        return (one, one * 0, slope[0] * 0), (one, one * 0, slope[0] * 0)
    if bc_type == "natural":
        return (2 * one, one, 3 * slope[0]), (2 * one, one, 3 * slope[-1])

    def row(near: Any, far: Any, first: Any, second: Any) -> Any:
        both = near + far
        return far, both, ((near + 2 * both) * far * first + near * near * second) / both

    return row(h[0], h[1], slope[0], slope[1]), row(h[-1], h[-2], slope[-1], slope[-2])


def _tridiagonal(lower: Any, diagonal: Any, upper: Any, right: Any) -> Any:
    """Solve a tridiagonal system [n] for right sides [n, ...] by elimination without exchanges of rows."""

    def down(carry: Any, row: Any) -> Any:
        ratio, value = carry
        below, middle, above, b = row
        pivot = middle - below * ratio
        after = (above / pivot, (b - below * value) / pivot)
        return after, after

    def up(x: Any, row: Any) -> Any:
        ratio, value = row
        x = value - ratio * x
        return x, x

    start = (diagonal[0] * 0, right[0] * 0)
    _, rows = scan(down, start, (lower, diagonal, upper, right))
    return scan(up, right[0] * 0, rows, reverse=True)[1]
