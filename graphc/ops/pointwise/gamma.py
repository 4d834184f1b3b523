"""Incomplete gamma functions, and gamma variates as functions of their concentration, by quadrature of fixed length.

With ``t = x exp(w)``, the integral of ``t**(a - 1) exp(-t)`` from 0 to x, and from x on, is ``x**a exp(-x)`` times the
integral of ``exp(a w - x (exp(w) - 1))`` over w < 0, and over w > 0. On the smaller side (w < 0 for x below a), the
integrand falls monotonically from 1. Gauss-Legendre quadrature over the interval where it exceeds the rounding unit
therefore needs the same number of nodes for all a and x. Up to x = 1, the power series in x replaces it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64, int64
from graphc.base.errors import DTypeError
from graphc.base.records import NamedTuple
from graphc.ir.op import ErrorSample, Sample
from graphc.ir.types import TensorType
from graphc.ops.define import EVERY, define
from graphc.ops.effects.state import stop_gradient
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.pointwise import special
from graphc.ops.pointwise.quadrature import column, gauss_legendre, row, sum_last
from graphc.ops.rules import elementwise
from graphc.ops.samples import array, floats, plain


class _IntegralAccuracy(NamedTuple):
    """Accuracy of the integrals."""

    negligible: float
    """Minus the logarithm of the neglected remainder, relative to the largest value of the integrand."""
    nodes: int
    terms: int
    """Terms of the series up to x = 1."""


_SINGLE, _DOUBLE = _IntegralAccuracy(20.0, 16, 12), _IntegralAccuracy(38.0, 40, 20)
"""Measured against mpmath for a from 1e-3 to 1e6: relative errors of 3e-8 and 1e-13."""
_NEWTON = 5
"""Newton steps towards the end of the interval, from an upper bound; any number of them gives a correct integral."""
_TINY = 1e-300
"""Below this, the first term of the series is exact."""
_STIRLING = 8
"""From this concentration on, Stirling's series gives the scale of the density."""


_FAR_BELOW = -0.5
"""Below this relative distance to the concentration, the distance has lost its last digits."""


class _Integrals(NamedTuple):
    total: Any
    """Integral of ``exp(a w - x (exp(w) - 1))``."""
    moment: Any
    """The same with a factor w."""
    below: Any
    """Whether the integral is over w < 0."""


def _integrals(a: Any, x: Any, order: _IntegralAccuracy) -> _Integrals:
    series = ew.le(x, 1)
    beyond = ew.where(series, 1.0, x)
    below = ew.le(beyond, a)
    side = ew.sub(1.0, ew.mul(ew.cast(below, dtype=float64), 2.0))
    total, moment = _by_quadrature(a, beyond, side, order)
    first, second = _by_series(a, ew.where(series, x, 1.0), order)
    return _Integrals(ew.where(series, first, total), ew.where(series, second, moment), ew.logical_or(series, below))


def _by_quadrature(a: Any, x: Any, side: Any, order: _IntegralAccuracy) -> tuple[Any, Any]:
    nodes, weights = gauss_legendre(order.nodes)
    end = stop_gradient(_end(a, x, side, order.negligible))
    w = ew.mul(column(ew.mul(side, end)), row(nodes))
    exponent = ew.sub(ew.mul(column(a), w), ew.mul(column(x), mathematics.expm1(w)))
    terms = ew.mul(ew.mul(mathematics.exp(exponent), row(weights)), column(end))
    return sum_last(terms), sum_last(ew.mul(terms, w))


def _end(a: Any, x: Any, side: Any, negligible: float) -> Any:
    """Find where the integrand has fallen to ``exp(-negligible)``, by Newton's method for a convex function from
    above."""
    wide = mathematics.sqrt(ew.div(2 * negligible, x))
    narrow = ew.mul(wide, math.sqrt(2))
    lower_end = ew.minimum(ew.div(ew.add(x, negligible), a), ew.where(ew.lt(narrow, 1.5), narrow, math.inf))
    end = ew.where(ew.lt(side, 0), lower_end, wide)
    for _ in range(_NEWTON):
        signed = ew.mul(side, end)
        grown = ew.mul(x, mathematics.expm1(signed))
        rest = ew.sub(ew.sub(grown, ew.mul(a, signed)), negligible)
        slope = ew.mul(side, ew.sub(ew.add(grown, x), a))
        end = ew.sub(end, ew.div(ew.maximum(rest, 0.0), slope))
    return end


def _by_series(a: Any, x: Any, order: _IntegralAccuracy) -> tuple[Any, Any]:
    """Return ``exp(x)`` times the sum of ``(-x)**k / k! / (a + k)``, and its derivative by a."""
    numbers = np.arange(order.terms)
    signs = (-1.0) ** numbers / np.array([math.factorial(k) for k in numbers.tolist()])
    # NOTE: the relative error of a power grows with k log(x), but the power is smaller accordingly.
    powers = mathematics.exp(ew.mul(column(mathematics.log(ew.maximum(x, _TINY))), row(numbers)))
    below = ew.add(column(a), row(numbers))
    terms = ew.div(ew.mul(powers, row(signs)), below)
    scale = mathematics.exp(x)
    return ew.mul(scale, sum_last(terms)), ew.neg(ew.mul(scale, sum_last(ew.div(terms, below))))


def _scale(a: Any, x: Any) -> Any:
    """Return ``x**a exp(-x) / gamma(a)``; for large a by the relative distance of x to a, and Stirling's series."""
    large = ew.maximum(a, float(_STIRLING))
    ratio = ew.div(ew.sub(x, large), large)
    far = ew.lt(ratio, _FAR_BELOW)
    nearby = mathematics.log1p(ew.where(far, 0.0, ratio))
    away = ew.mul(large, ew.sub(ew.where(far, mathematics.log(ew.div(x, large)), nearby), ratio))
    usual = ew.mul(mathematics.log(ew.mul(large, 1 / (2 * math.pi))), 0.5)
    near = ew.sub(ew.add(away, usual), special.stirling_rest(large))
    small = ew.sub(ew.sub(ew.mul(a, mathematics.log(x)), x), special.lgamma(a))
    return mathematics.exp(ew.where(ew.ge(a, float(_STIRLING)), near, small))


def _incomplete(a: Any, x: Any, upper: bool, order: _IntegralAccuracy) -> Any:
    """Return the fraction above or below x for finite arguments in the domain, and the limits elsewhere."""
    inside = ew.logical_and(ew.logical_and(ew.gt(a, 0), ew.lt(a, math.inf)), ew.gt(x, 0))
    inside = ew.logical_and(inside, ew.lt(x, math.inf))
    safe_a, safe_x = ew.where(inside, a, 1.0), ew.where(inside, x, 1.0)
    integrals = _integrals(safe_a, safe_x, order)
    tail = ew.mul(_scale(safe_a, safe_x), integrals.total)
    here = (
        ew.where(integrals.below, ew.sub(1.0, tail), tail)
        if upper
        else ew.where(integrals.below, tail, ew.sub(1.0, tail))
    )
    all_below = ew.logical_or(ew.eq(a, 0), ew.eq(x, math.inf))
    none_below = ew.logical_or(ew.eq(x, 0), ew.eq(a, math.inf))
    share = ew.where(none_below, 1.0 if upper else 0.0, 0.0 if upper else 1.0)
    outside = ew.logical_or(ew.lt(a, 0), ew.lt(x, 0))
    wrong = ew.logical_or(outside, ew.logical_and(all_below, none_below))
    is_limit = ew.logical_and(ew.logical_or(all_below, none_below), ew.logical_not(wrong))
    numbers = ew.logical_and(ew.eq(a, a), ew.eq(x, x))
    return ew.where(inside, here, ew.where(ew.logical_and(is_limit, numbers), share, math.nan))


def _decomposed(upper: bool) -> Any:
    def decompose(a: Any, x: Any) -> Any:
        if a.dtype is float64:
            return _incomplete(a, x, upper, _DOUBLE)
        wide = _incomplete(ew.cast(a, dtype=float64), ew.cast(x, dtype=float64), upper, _SINGLE)
        return ew.cast(wide, dtype=float32)

    return decompose


def _exact_scale(a: np.longdouble, x: np.longdouble) -> np.longdouble:
    """Compute ``_scale`` in extended precision, except for log gamma below Stirling's series."""
    if a < _STIRLING:
        return np.exp(a * np.log(x) - x - np.longdouble(math.lgamma(a)))
    ratio = (x - a) / a
    log = np.log(x / a) if ratio < _FAR_BELOW else np.log1p(ratio)
    rest = sum(b / (2 * k * (2 * k - 1)) / a ** (2 * k - 1) for k, b in enumerate(special.BERNOULLI, 1))
    return np.exp(a * (log - ratio) - rest) * np.sqrt(a / (2 * np.longdouble(math.pi)))


def _share_below(a: float, x: float) -> tuple[float, float]:
    """Return the fractions below and above x in extended precision: the series for small x, else a continued fraction
    (Lentz)."""
    if math.isnan(a) or math.isnan(x) or a < 0 or x < 0:
        return math.nan, math.nan
    everything, nothing = a == 0 or math.isinf(x), x == 0 or math.isinf(a)
    if everything or nothing:
        return (math.nan, math.nan) if everything and nothing else (1.0, 0.0) if everything else (0.0, 1.0)
    scale = _exact_scale(np.longdouble(a), np.longdouble(x))
    if x < a + 1:
        term = total = 1 / np.longdouble(a)
        k = a
        while term > total * 1e-20:
            k += 1
            term = term * x / k
            total = total + term
        return float(scale * total), float(1 - scale * total)
    b = np.longdouble(x) + 1 - a
    c, d = np.longdouble(1e300), 1 / b
    fraction, i, step = d, 0, np.longdouble(0)
    while abs(step - 1) > 1e-19 and i < 100_000:
        i += 1
        factor = -i * (i - np.longdouble(a))
        b = b + 2
        d = 1 / (factor * d + b)
        c = b + factor / c
        step = d * c
        fraction = fraction * step
    return float(1 - scale * fraction), float(scale * fraction)


def _reference(upper: bool) -> Any:
    shares = np.vectorize(lambda a, x: _share_below(float(a), float(x))[upper], otypes=[np.float64])

    def reference(a: np.ndarray, x: np.ndarray) -> np.ndarray:
        return shares(a, x).astype(a.dtype) if a.size and x.size else np.zeros(np.broadcast(a, x).shape, a.dtype)

    return reference


def _density(a: Any, x: Any) -> Any:
    """Return ``x**(a - 1) exp(-x) / gamma(a)``."""
    power = ew.mul(ew.sub(a, 1.0), mathematics.log(x))
    return mathematics.exp(ew.sub(ew.sub(power, x), special.lgamma(a)))


def _by_concentration(a: Any, x: Any) -> Any:
    """Return the derivative of the fraction below x by a."""
    return ew.neg(ew.mul(ew.mul(_density(a, x), x), concentration_slope(mathematics.log(x), a)))


def _samples() -> list[Sample]:
    grid = [0.0, 0.2, 1.0, 1.5, 7.0, 40.0, math.inf, math.nan, -1.0]
    pairs = [array(column, "float64") for column in zip(*[(a, x) for a in grid for x in grid], strict=True)]
    return [
        Sample((floats((2, 3), "float64", 0.3, 9), floats((2, 3), "float64", 0.2, 9, 1))),
        Sample((floats((4,), "float32", 0.3, 9), floats((3, 1), "float32", 0.2, 9, 1))),
        Sample((floats((), "float32", 1, 4), floats((), "float32", 1, 4, 2))),
        Sample((floats((0, 4), "float64", 1, 2), floats((4,), "float64", 1, 2))),
        plain(array([0.01, 0.1, 30.0, 300.0, 300.0], "float64"), array([1e-5, 3.0, 20.0, 290.0, 330.0], "float64")),
        plain(*pairs),
    ]


_INTEGER = (ErrorSample((TensorType(int64, (2,)),) * 2, "operand 0 is signed integer (i64)", {}, DTypeError),)

gammainc = define(
    "gammainc",
    "The regularized lower incomplete gamma function: the fraction of a gamma distribution of concentration a below x.",
    "a x",
    elementwise("gammainc", "f"),
    reference=_reference(False),
    vjp=(
        lambda g, y, a, x: ew.mul(g, _by_concentration(a, x)),
        lambda g, y, a, x: ew.mul(g, _density(a, x)),
    ),
    decompose=_decomposed(False),
    traits=special.ELEMENTWISE,
    samples=_samples,
    error_samples=_INTEGER,
    promotes=EVERY,
    to_float=True,
)
gammaincc = define(
    "gammaincc",
    "The regularized upper incomplete gamma function: the fraction of a gamma distribution of concentration a above x.",
    "a x",
    elementwise("gammaincc", "f"),
    reference=_reference(True),
    vjp=(
        lambda g, y, a, x: ew.neg(ew.mul(g, _by_concentration(a, x))),
        lambda g, y, a, x: ew.neg(ew.mul(g, _density(a, x))),
    ),
    decompose=_decomposed(True),
    traits=special.ELEMENTWISE,
    samples=_samples,
    error_samples=_INTEGER,
    promotes=EVERY,
    to_float=True,
)


def concentration_slope(y: Any, a: Any) -> Any:
    """Return the derivative of the logarithm y of a gamma variate by the concentration a at a fixed quantile: minus the
    derivative of the distribution function by a, over its derivative by y (Figurnov et al., Implicit Reparameterization
    Gradients, 2018)."""
    if a.dtype is not float64:
        wide = _slope(ew.cast(y, dtype=float64), ew.cast(a, dtype=float64), _SINGLE)
        return ew.cast(wide, dtype=a.dtype)
    return _slope(y, a, _DOUBLE)


def _slope(y: Any, a: Any, order: _IntegralAccuracy) -> Any:
    integrals = _integrals(a, mathematics.exp(y), order)
    inner = ew.sub(ew.mul(ew.sub(special.polygamma(a, n=0), y), integrals.total), integrals.moment)
    return ew.where(integrals.below, inner, ew.neg(inner))


log_gamma_variate = define(
    "log_gamma_variate",
    "y, the logarithm of a gamma variate of concentration a and scale 1, as a function of a.",
    "y a",
    elementwise("log_gamma_variate", "f"),
    reference=lambda y, a: np.broadcast_arrays(y, a)[0].copy(),
    vjp=(None, lambda g, result, y, a: ew.mul(g, concentration_slope(y, a))),
    decompose=lambda y, a: ew.where(ew.eq(a, a), y, y),
    traits=special.ELEMENTWISE,
    samples=lambda: [
        plain(floats((2, 3), "float64"), floats((3,), "float64", 0.5, 4, 1)),
        plain(floats((2, 3), "float32"), floats((2, 3), "float32", 0.5, 4, 1)),
        plain(floats((), "float32"), floats((0, 4), "float32", 0.5, 4, 1)),
    ],
    error_samples=_INTEGER,
    promotes=EVERY,
    to_float=True,
)
