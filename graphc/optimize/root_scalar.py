"""Roots of functions of one number, between two points where their signs differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.autograd.transforms import jvp
from graphc.base.dtypes import int64
from graphc.base.errors import DTypeError
from graphc.base.records import NamedTuple
from graphc.control.while_loop import while_loop
from graphc.tape.tangents import constants
from graphc.tensors.creation import full, ones_like
from graphc.tensors.free_functions import assert_true, where


class _Bracket(NamedTuple):
    """Three points and their values: the root lies between the first and the second."""

    a: Any
    b: Any
    c: Any
    fa: Any
    fb: Any
    fc: Any
    fraction: Any
    """Position of the next point, from ``a`` to ``b``."""
    done: Any
    steps: Any


def root_scalar(f: Callable[..., Any], a: Any, b: Any, *args: Any, max_steps: int = 100) -> Any:
    """Return ``x`` between ``a`` and ``b`` with ``f(x, *args) = 0``, elementwise; exact to the precision of ``b - a``.

    Chandrupatla's method: inverse quadratic interpolation where it is safe, else bisection. Derivatives of up to second
    order, by tensors that ``f`` uses, are those of the root; ``a`` and ``b`` have none.

    Args:
        f: elementwise function of a tensor [...] that returns values of the same shape.
        a, b: floating-point tensors [...] of one shape and type, at which the values have different signs.
        args: further arguments of ``f``.
        max_steps: largest number of evaluations.

    Raises:
        ConditionError: the signs do not differ, or a root was not found in ``max_steps``.
        DTypeError: ``a`` and ``b`` are not of one floating-point type.

    Example:
        >>> import graphc as gc
        >>> gc.optimize.root_scalar(lambda x, y: x**2 - y, gc.zeros(2), gc.full((2,), 4.0), gc.tensor([2.0, 9.0]))
        tensor([1.4142, 3.0000])
    """
    if a.dtype is not b.dtype or not a.dtype.is_differentiable or a.dtype.is_complex:
        raise DTypeError(f"root_scalar: from {a.dtype.name} to {b.dtype.name}", remedy="pass floats of one type")
    with constants():
        x, differs, found = bracketed(lambda x: f(x, *args), a.detach(), b.detach(), max_steps)
    assert_true(differs.all(), "root_scalar: the function has the same sign at both ends")
    assert_true(found.all(), f"root_scalar: no root was found in {max_steps} steps")
    return corrected(lambda x: f(x, *args), x)


def corrected(f: Callable[[Any], Any], x: Any) -> Any:
    """Return the root ``x`` with derivatives of up to second order: two Newton steps with a constant slope."""
    x = x.detach()
    with constants():
        _, slope = jvp(f, (x,), (ones_like(x),))
        slope = slope.detach()
    for _ in range(2):
        x = x - f(x) / where(slope == 0, 1.0, slope).to(x.dtype)
    return x


def bracketed(f: Callable[[Any], Any], a: Any, b: Any, max_steps: int) -> tuple[Any, Any, Any]:
    """Return the root, whether the signs at both ends differ, and whether the root was found: Chandrupatla, A new
    hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function, 1997."""
    fa, fb = f(a), f(b)
    differs = fa.sign() * fb.sign() <= 0
    precision = float(np.finfo(a.dtype.numpy).eps)
    width = precision * (b - a).abs()

    def step(s: _Bracket) -> _Bracket:
        x = s.a + s.fraction * (s.b - s.a)
        fx = f(x)
        same = fx.sign() == s.fa.sign()
        b, fb = where(same, s.b, s.a), where(same, s.fb, s.fa)
        c, fc = where(same, s.a, s.b), where(same, s.fa, s.fb)
        least = 2 * precision * where(fx.abs() < fb.abs(), x, b).abs() + width
        limit = least / where(b == c, 1.0, (b - x).abs()).to(x.dtype)
        done = (limit > 0.5) | (fx == 0)
        fraction = _interpolated((x, b, c), (fx, fb, fc)).maximum(limit).minimum(1 - limit)
        new = (x, b, c, fx, fb, fc, fraction, done)
        return _Bracket._make([*(where(s.done, u, v) for u, v in zip(s[:8], new, strict=True)), s.steps + 1])

    start = (fa == 0) | (fb == 0) | differs.logical_not()
    first = _Bracket(a, b, a, fa, fb, fa, a * 0 + 0.5, start, full((), 0, dtype=int64))
    last = while_loop(lambda s: s.done.logical_not().any() & (s.steps < max_steps), step, first)
    return where(last.fa.abs() < last.fb.abs(), last.a, last.b), differs, last.done


def _interpolated(xs: tuple[Any, Any, Any], values: tuple[Any, Any, Any]) -> Any:
    """Return the position of the next point: by inverse quadratic interpolation where that is safe, else the middle."""
    (a, b, c), (fa, fb, fc) = xs, values
    xi, phi = (a - b) / _nonzero(c - b), (fa - fb) / _nonzero(fc - fb)
    safe = (phi * phi < xi) & ((1 - phi) * (1 - phi) < 1 - xi)
    first = fa / _nonzero(fb - fa) * fc / _nonzero(fb - fc)
    second = (c - a) / _nonzero(b - a) * fa / _nonzero(fc - fa) * fb / _nonzero(fc - fb)
    return where(safe, first + second, 0.5).to(a.dtype)


def _nonzero(x: Any) -> Any:
    return where(x == 0, 1.0, x).to(x.dtype)
