"""Special functions composed of others: the inverse error function, log gamma and its derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64, int64
from graphc.base.errors import AttributeValueError, DTypeError
from graphc.ir.kernel.scalar import SCALAR_OPS
from graphc.ir.op import Attr, ErrorSample, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.define import EVERY, define
from graphc.ops.pointwise import elementary
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.rules import elementwise
from graphc.ops.samples import FLOATS, SPECIAL, array, floats, plain, unary

ELEMENTWISE = Trait.PURE | Trait.ELEMENTWISE
_INTEGER = (ErrorSample((TensorType(int64, (2,)),), "operand 0 is signed integer (i64)", {}, DTypeError),)


def _through_f64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute the decomposition ``function`` in f64, also for f32."""

    def decompose(x: Any, **attrs: Any) -> Any:
        if x.dtype is float64:
            return function(x, **attrs)
        return ew.cast(function(ew.cast(x, dtype=float64), **attrs), dtype=float32)

    return decompose


def _sum(terms: list[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = ew.add(total, term)
    return total


# ---- the inverse of erf

_SLOPE = 2 / math.sqrt(math.pi)
_SHAPE = 0.147
"""Constant of Winitzki's approximation of erf (2008), used as the initial guess."""
_STEPS = 2


def _erfinv(x: Any) -> Any:
    """Apply Halley's method twice to a guess within 0.2 %; near 1 to the complement, which is exact there."""
    size = ew.abs(x)
    inside = ew.where(ew.lt(size, 1), size, 0)
    complement = ew.sub(1, inside)
    logarithm = mathematics.log(ew.mul(complement, ew.add(1, inside)))
    half = ew.add(ew.mul(logarithm, 0.5), 2 / (math.pi * _SHAPE))
    square = ew.mul(logarithm, -1 / _SHAPE)
    y = mathematics.sqrt(ew.div(square, ew.add(mathematics.sqrt(ew.add(ew.mul(half, half), square)), half)))
    for _ in range(_STEPS):
        slope = ew.mul(mathematics.exp(ew.neg(ew.mul(y, y))), _SLOPE)
        below, above = ew.sub(mathematics.erf(y), inside), ew.sub(complement, elementary.erfc(y))
        step = ew.div(ew.where(ew.lt(inside, 0.5), below, above), slope)
        y = ew.sub(y, ew.div(step, ew.add(ew.mul(y, step), 1)))
    result = ew.where(ew.eq(x, 0), x, ew.where(ew.lt(x, 0), ew.neg(y), y))
    beyond = ew.where(ew.eq(size, 1), ew.mul(x, math.inf), math.nan)
    return ew.where(ew.lt(size, 1), result, beyond)


def _erfinv_reference(x: np.ndarray) -> np.ndarray:
    """Apply bisection, then Newton's method; near 1 to the complement."""
    wide = x.astype(np.float64)
    target = np.where(np.abs(wide) < 1, np.abs(wide), 0)
    low, high = np.zeros_like(target), np.full_like(target, 6.0)

    def excess(y: np.ndarray) -> np.ndarray:
        towards_one = (1 - target) - SCALAR_OPS["erfc"].reference(y)
        return np.where(target < 0.5, SCALAR_OPS["erf"].reference(y) - target, towards_one)

    for _ in range(40):
        middle = (low + high) / 2
        below = excess(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    y = (low + high) / 2
    for _ in range(2):
        y = y - excess(y) / (_SLOPE * np.exp(-y * y))
    result = np.copysign(y, wide)
    return np.where(np.abs(wide) < 1, result, np.where(np.abs(wide) == 1, wide * np.inf, np.nan)).astype(x.dtype)


erfinv = define(
    "erfinv",
    "The number whose error function is x; infinite at -1 and 1, NaN beyond.",
    "x",
    elementwise("erfinv", "f"),
    reference=_erfinv_reference,
    vjp=(lambda g, y, x: ew.mul(g, ew.mul(mathematics.exp(ew.mul(y, y)), 1 / _SLOPE)),),
    decompose=_through_f64(_erfinv),
    traits=ELEMENTWISE | Trait.RECOMPUTED,
    samples=unary(-0.95, 0.95),
    error_samples=_INTEGER,
    promotes=EVERY,
    to_float=True,
)


# ---- log gamma and its derivatives: large numbers by series, small ones shifted up by recurrence

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""Bernoulli numbers B2, B4, ..."""
_MOVED = 8
"""Shift of numbers below this value."""


def _from_the_pole(x: Any) -> Any:
    """Return ``pi (x - round(x))``, which keeps all digits near a pole. Its sine and cotangent equal those of pi x, up
    to the sign of the sine."""
    return ew.mul(ew.sub(x, mathematics.round(x)), math.pi)


def stirling_rest(z: Any) -> Any:
    """Return log gamma of z minus Stirling's formula ``(z - 1/2) log z - z + log(2 pi) / 2``, for z from 8 on."""
    inverse = ew.reciprocal(z)
    square = ew.mul(inverse, inverse)
    series: Any = BERNOULLI[-1] / (2 * len(BERNOULLI) * (2 * len(BERNOULLI) - 1))
    for k in range(len(BERNOULLI) - 1, 0, -1):
        series = ew.add(ew.mul(square, series), BERNOULLI[k - 1] / (2 * k * (2 * k - 1)))
    return ew.mul(inverse, series)


def _lgamma(x: Any) -> Any:
    negative = ew.lt(x, 0)
    up = ew.where(negative, ew.sub(1, x), x)
    small = ew.lt(up, _MOVED)
    z = ew.where(small, ew.add(up, _MOVED), up)
    product = up
    for k in range(1, _MOVED):
        product = ew.mul(product, ew.add(up, k))
    rest = stirling_rest(z)
    log = mathematics.log(z)
    stirling = ew.sub(ew.mul(ew.sub(z, 0.5), ew.sub(log, 1)), 0.5 - 0.5 * math.log(2 * math.pi))
    total = ew.add(stirling, rest)
    total = ew.where(small, ew.sub(total, mathematics.log(ew.where(small, product, 1))), total)
    total = ew.where(ew.eq(up, math.inf), math.inf, total)
    sine = ew.abs(mathematics.sin(_from_the_pole(x)))
    pole = ew.eq(x, mathematics.floor(x))
    mirrored = ew.sub(ew.sub(math.log(math.pi), mathematics.log(ew.where(pole, 1, sine))), total)
    zero = ew.logical_or(ew.eq(x, 1), ew.eq(x, 2))
    return ew.where(negative, ew.where(pole, math.inf, mirrored), ew.where(zero, 0, total))


_LARGEST_LGAMMA = 2.5e305
"""Argument just below the overflow of the result in f64."""


def _lgamma_of(value: float) -> float:
    if value <= 0 and value == math.floor(value):
        return math.inf
    return math.lgamma(value) if abs(value) < _LARGEST_LGAMMA else math.inf if value > 0 else -math.inf


_LGAMMA = np.vectorize(lambda v: _lgamma_of(float(v)) if math.isfinite(v) else abs(v), otypes=[np.float64])

lgamma = define(
    "lgamma",
    "The logarithm of the absolute value of the gamma function.",
    "x",
    elementwise("lgamma", "f"),
    reference=lambda x: _LGAMMA(x).astype(x.dtype),
    vjp=(lambda g, y, x: ew.mul(g, polygamma(x, n=0)),),
    decompose=_through_f64(_lgamma),
    traits=ELEMENTWISE,
    samples=lambda: [
        *unary(0.2, 9)(),
        Sample((floats((3, 4), "float64", -3.9, -3.1),)),
        plain(array([0.5, 1, 2, 3.5, 8, 30, 170, -0.5, -4, -7.25, -1e-20, 1e-20, -1e-300, -1 - 1e-15], "float64")),
    ],
    error_samples=_INTEGER,
    promotes=EVERY,
    to_float=True,
)


def _polygamma(x: Any, n: int) -> Any:
    mirror = ew.lt(x, 0)
    up = ew.where(mirror, ew.sub(1, x), x)
    small = ew.lt(up, _MOVED)
    z = ew.where(small, ew.add(up, _MOVED), up)
    first = ew.neg(mathematics.log(z)) if n == 0 else ew.mul(_power(z, -n), float(math.factorial(n - 1)))
    terms = [first, ew.mul(_power(z, -n - 1), 0.5 * math.factorial(n))]
    for k, number in enumerate(BERNOULLI, 1):
        factor = number * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        terms.append(ew.mul(_power(z, -2 * k - n), factor))
    moved = ew.where(small, up, 1)
    poles = _sum(
        [_power(ew.add(moved, k) if k else moved, -n - 1) for k in range(_MOVED)]
    )  # No addition for k = 0: -0 keeps its sign.
    terms.append(ew.where(small, ew.mul(poles, float(math.factorial(n))), 0))
    total = ew.mul(_sum(terms), 1.0 if n % 2 else -1.0)
    angle = _from_the_pole(x)
    sine = ew.where(ew.eq(x, mathematics.floor(x)), math.nan, mathematics.sin(angle))
    cotangent = ew.div(mathematics.cos(angle), sine)
    highest, *others = _cotangent(n)
    across = highest
    for coefficient in others:
        across = ew.add(ew.mul(cotangent, across), coefficient)
    mirrored = ew.sub(ew.mul(total, (-1.0) ** n), ew.mul(across, math.pi ** (n + 1)))
    result = ew.where(mirror, mirrored, total)
    if n == 0:
        return result
    pole = ew.logical_and(ew.le(x, 0), ew.eq(x, mathematics.floor(x)))
    return ew.where(pole, math.inf if n % 2 else -math.inf, result)


def _cotangent(n: int) -> list[float]:
    """Return the n-th derivative of the cotangent as a polynomial in it, the highest power first."""
    polynomial = np.poly1d([1.0, 0.0])
    for _ in range(n):
        polynomial = -np.poly1d([1.0, 0.0, 1.0]) * polynomial.deriv()
    return polynomial.coeffs.tolist()


def _power(x: Any, exponent: int) -> Any:
    """Return the power with a negative exponent, by squaring."""
    result, square, remaining = None, ew.reciprocal(x), -exponent
    while remaining:
        if remaining & 1:
            result = square if result is None else ew.mul(result, square)
        remaining >>= 1
        square = ew.mul(square, square) if remaining else square
    return result


def _polygamma_reference(x: np.ndarray, n: int) -> np.ndarray:
    """Apply the recurrence up to 40 and the series there, in extended precision."""
    wide = x.astype(np.longdouble)
    mirror = wide < 0
    up = np.where(mirror, 1 - wide, wide)
    sign = 1 if n % 2 else -1
    total = np.zeros_like(up)
    for k in range(40):
        total += math.factorial(n) / np.where(up < 40, up + k if k else up, np.inf) ** (n + 1)
    z = np.where(up < 40, up + 40, up)
    total += -np.log(z) if n == 0 else math.factorial(n - 1) / z**n
    total += math.factorial(n) / (2 * z ** (n + 1))
    for k, number in enumerate(BERNOULLI, 1):
        total += number * math.factorial(2 * k + n - 1) / math.factorial(2 * k) / z ** (2 * k + n)
    total = sign * total
    angle = np.longdouble(np.pi) * (wide - np.rint(wide))
    is_integer = wide == np.floor(wide)
    cotangent = np.where(is_integer, np.nan, np.cos(angle) / np.sin(angle))
    mirrored = (-1) ** n * total - np.longdouble(np.pi) ** (n + 1) * np.polyval(_cotangent(n), cotangent)
    result = np.where(mirror, mirrored, total)
    if n:
        result = np.where(is_integer & (wide <= 0), sign * np.inf, result)
    return result.astype(x.dtype)


def _infer_polygamma(x: TensorType, n: int) -> TensorType:
    if n < 0:
        raise AttributeValueError(f"polygamma: the order is {n}, it must not be negative")
    return elementwise("polygamma", "f")(x)


polygamma = define(
    "polygamma",
    "The derivative of order n + 1 of log gamma. n = 0 is digamma, NaN at negative integers. The others are infinite "
    "there: minus infinity for even n, as in PyTorch, although they approach both signs.",
    "x",
    _infer_polygamma,
    attrs=[Attr("n", "int", "the order")],
    reference=_polygamma_reference,
    vjp=(lambda g, y, x, n: ew.mul(g, polygamma(x, n=n + 1)),),
    decompose=_through_f64(_polygamma),
    traits=ELEMENTWISE,
    samples=lambda: [
        Sample((floats((2, 3), "float64", 0.3, 9),), {"n": 0}),
        Sample((floats((3, 4), "float64", -3.8, -3.2),), {"n": 0}),
        Sample((floats((5,), "float32", 0.5, 9, 1),), {"n": 1}),
        Sample((floats((4,), "float64", -2.7, -2.3),), {"n": 1}),
        Sample((floats((), "float64", 1, 4, 2),), {"n": 3}),
        Sample((floats((0, 4), "float32"),), {"n": 0}),
        plain(array([-1e-20, 1e-20, -1e-300, -3 + 1e-14, -2 - 1e-14], "float64"), n=0),
        *(plain(array([0.0, -0.0, -1, -4, 3, -1e-20, 2e-20], "float64"), n=n) for n in (1, 2, 3)),
        *(plain(array([0.5, 1, 7.9, 8, 30, -0.5, -7.25, *SPECIAL[:4]], dtype), n=0) for dtype in FLOATS),
    ],
    error_samples=(
        ErrorSample((TensorType(int64, (2,)),), "operand 0 is signed integer (i64)", {"n": 0}, DTypeError),
        ErrorSample((TensorType(float32, (2,)),), "the order is -1", {"n": -1}, AttributeValueError),
    ),
    promotes=EVERY,
    to_float=True,
)
