"""Bit-exact functions: every step is one IEEE 754 rounding, so that all executors give the same bits.

The numpy functions of eager mode and the polynomials of kernels are each accurate to about one unit in the last place,
but round differently. The functions behind random numbers are therefore written here once, in additions, products, one
quotient and bit operations, for arrays and for scalars of kernels alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float32, float64, int32, int64
from graphc.base.errors import DTypeError
from graphc.base.records import dataclass
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.op import ErrorSample, Sample
from graphc.ir.types import TensorType
from graphc.ops.define import define
from graphc.ops.pointwise.elementwise import ELEMENTWISE, lowered, mul
from graphc.ops.rules import elementwise
from graphc.ops.samples import FLOATS, array, floats, plain

Number = Any
"""An array or a scalar of a kernel; both have operators."""


@dataclass(frozen=True)
class _FloatLayout:
    """Layout of a float type, and the number of terms of each series."""

    integer: DType
    mantissa: int
    bias: int
    ln_2: tuple[float, float]
    """ln 2 in two summands; the first one is short enough for an exact product with an exponent."""
    log_terms: int
    sine_terms: int
    cosine_terms: int
    exp_terms: int
    exp_range: tuple[float, float]
    """Range of x outside of which e^x is 0 or infinite."""

    @property
    def two_thirds(self) -> int:
        """Bits of 2/3, rounded down."""
        return ((self.bias - 1) << self.mantissa) + (1 << self.mantissa) // 3


_F32 = _FloatLayout(int32, 23, 127, (0.693359375, math.log(2.0) - 0.693359375), 5, 4, 5, 8, (-104.0, 89.0))
_LONG_LN_2 = float.fromhex("0x1.62e42fefap-1")
_F64 = _FloatLayout(
    int64, 52, 1023, (_LONG_LN_2, float.fromhex("0x1.cf79abc9e3b3ap-40")), 12, 8, 9, 14, (-746.0, 710.0)
)


class _Arrays:
    """Operations on arrays."""

    def __init__(self, dtype: DType):
        self.dtype = dtype
        self.format = _F32 if dtype is float32 else _F64

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b).astype(self.dtype.numpy)

    def floor(self, x: Any) -> Any:
        return np.floor(x)

    def is_equal(self, x: Any, value: float) -> Any:
        return np.equal(x, value)

    def bits(self, x: Any) -> Any:
        return np.asarray(x).view(self.format.integer.numpy)

    def number(self, bits: Any) -> Any:
        return np.asarray(bits).view(self.dtype.numpy)

    def shifted(self, bits: Any, count: int) -> Any:
        """Shift left, or right with the sign for a negative count."""
        return np.left_shift(bits, count) if count > 0 else np.right_shift(bits, -count)

    def converted(self, x: Any, dtype: DType) -> Any:
        return np.asarray(x).astype(dtype.numpy)


class _Scalars(_Arrays):
    """Operations in a kernel."""

    def __init__(self, nest: NestBuilder, dtype: DType):
        super().__init__(dtype)
        self.nest = nest

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        return self.nest.select(condition, a, b)

    def floor(self, x: Any) -> Any:
        return self.nest.op("floor", x)

    def is_equal(self, x: Any, value: float) -> Any:
        return x.eq(value)

    def bits(self, x: Any) -> Any:
        return self.nest.op("bitcast", x, dtype=self.format.integer)

    def number(self, bits: Any) -> Any:
        return self.nest.op("bitcast", bits, dtype=self.dtype)

    def shifted(self, bits: Any, count: int) -> Any:
        amount = self.nest.const(abs(count), self.format.integer)
        return self.nest.op("shl" if count > 0 else "shr", bits, amount)

    def converted(self, x: Any, dtype: DType) -> Any:
        return x.cast(dtype)


Rule = Callable[[_Arrays, Number], Number]


def _series(x: Number, coefficients: Sequence[float]) -> Number:
    """Evaluate ``sum coefficients[k] * x^k`` by Horner's rule, the highest power last."""
    total = x * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        total = total * x + coefficient
    return total


def _log(a: _Arrays, x: Number) -> Number:
    """Return ``k ln 2 + 2 atanh(s)`` with ``x = 2^k (1 + f)`` and ``s = f / (2 + f)``."""
    format = a.format
    bits = a.bits(x)
    exponent = a.shifted(bits - format.two_thirds, -format.mantissa)
    f = a.number(bits - a.shifted(exponent, format.mantissa)) - 1.0
    k = a.converted(exponent, a.dtype)
    s = f / (f + 2.0)
    square = s * s
    tail = s * (square * _series(square, [2.0 / (2 * i + 1) for i in range(1, format.log_terms + 1)]))
    return k * format.ln_2[0] + (k * format.ln_2[1] + (s + s + tail))


def _exp(a: _Arrays, x: Number) -> Number:
    """Return ``2^n e^r`` with ``x = n ln 2 + r``; the power of two is applied in two factors."""
    format = a.format
    low, high = format.exp_range
    x = a.select(x < low, low, a.select(x > high, high, x))
    n = a.floor(x * (1.0 / math.log(2.0)) + 0.5)
    r = (x - n * format.ln_2[0]) - n * format.ln_2[1]
    power = _series(r, [1.0 / math.factorial(k) for k in range(format.exp_terms)])
    exponent = a.converted(n, format.integer)
    half = a.shifted(exponent, -1)
    for summand in (half, exponent - half):
        power = power * a.number(a.shifted(summand + format.bias, format.mantissa))
    return power


def _cosine_of_turns(a: _Arrays, x: Number, quarters: int) -> Number:
    """Return the cosine of ``2 pi x`` for x from 0 to 1, or the sine with ``quarters`` = 3."""
    format = a.format
    turns = x * 4.0
    n = a.floor(turns + 0.5)
    angle = (turns - n) * (math.pi / 2)
    square = angle * angle
    signs = [(-1.0) ** k for k in range(16)]
    sine = [signs[k] / math.factorial(2 * k + 1) for k in range(format.sine_terms + 1)]
    cosine = [signs[k] / math.factorial(2 * k) for k in range(format.cosine_terms + 1)]
    values = (_series(square, cosine), angle * _series(square, sine))
    n = n + float(quarters)
    n = a.select(n > 3.5, n - 4.0, n)
    value = a.select(a.is_equal(n, 1.0) | a.is_equal(n, 3.0), values[1], values[0])
    return a.select((n > 0.5) & (n < 2.5), -value, value)


def _exact(name: str, doc: str, cost: int, rule: Rule, samples: Callable[[str], list[Sample]], vjp: Any = None) -> Any:
    def reference(x: np.ndarray) -> np.ndarray:
        return np.asarray(rule(_Arrays(float32 if x.dtype == np.float32 else float64), x), x.dtype)

    def lower(nest: NestBuilder, x: Scalar) -> Scalar:
        return rule(_Scalars(nest, x.dtype), x)

    return define(
        name,
        doc,
        "x",
        elementwise(name, "f"),
        reference=reference,
        vjp=vjp,
        lower=lowered(lower),
        traits=ELEMENTWISE,
        cost=cost,
        samples=lambda: [s for dtype in FLOATS for s in samples(dtype)],
        error_samples=(ErrorSample((TensorType(int64, (2,)),), "operand 0 is signed integer (i64)", {}, DTypeError),),
    )


def _samples(low: float, high: float, *ends: float) -> Callable[[str], list[Sample]]:
    return lambda dtype: [
        plain(floats((3, 5, 7), dtype, low, high, 1)),
        plain(floats((), dtype, low, high)),
        plain(floats((0, 4), dtype, low, high)),
        plain(array(ends, dtype)),
    ]


exact_log = _exact(
    "exact_log",
    "The natural logarithm of a positive normal number, with the same bits in all executors.",
    35,
    _log,
    _samples(0.02, 40, 2.0**-24, 1e-20, 1.0, 0.5, 1 - 2.0**-24, 36.7),
)
exact_exp = _exact(
    "exact_exp",
    "e to the power of a finite number, with the same bits in all executors.",
    30,
    _exp,
    lambda dtype: [
        Sample((floats((2, 3), dtype, -2, 2),)),
        *_samples(-9, 9, -104.0, -103.0, -87.5, 88.7, 90.0, 0.0, -0.0, 1e-30)(dtype),
    ],
    (lambda g, y, x: mul(g, y),),
)
exact_cosine = _exact(
    "exact_cosine",
    "The cosine of 2 pi x for x from 0 to 1, with the same bits in all executors.",
    40,
    lambda a, x: _cosine_of_turns(a, x, 0),
    _samples(0, 1, 0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1 - 2.0**-24),
)
exact_sine = _exact(
    "exact_sine",
    "The sine of 2 pi x for x from 0 to 1, with the same bits in all executors.",
    40,
    lambda a, x: _cosine_of_turns(a, x, 3),
    _samples(0, 1, 0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1 - 2.0**-24),
)
