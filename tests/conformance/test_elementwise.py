"""Functions of each element against PyTorch: operators, methods, broadcasting, promotion, special values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.compare import Case, cases, check, normal, positive, spread, truth, whole

UNARY = "abs neg exp expm1 sin cos tanh erf sigmoid relu square sinh cosh exp2 erfc asinh deg2rad rad2deg sinc sgn atan"
UNARY += " negative absolute positive nan_to_num logcumsumexp0"
OF_POSITIVE = "log log1p log2 log10 sqrt rsqrt reciprocal logit atanh tan asin acos erfinv lgamma digamma"
FLAT = "floor ceil round trunc fix sign frac signbit isnan isinf isfinite isposinf isneginf"
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5])
X, Y = normal(3, 4), normal(3, 4, seed=1)
BINARY = "add sub mul div maximum minimum fmax fmin hypot logaddexp logaddexp2 atan2 true_divide subtract multiply"
COMPARED = "eq ne lt le gt ge greater less greater_equal less_equal not_equal floor_divide remainder fmod logical_and"
COMPARED += " logical_or logical_xor isclose copysign"


def _function(name):
    return lambda t, *x: getattr(t, name)(*x)


def _method(name):
    return lambda t, x, *rest: getattr(x, name)(*rest)


@pytest.mark.parametrize("name", [n for n in UNARY.split() if not n.endswith("0")])
@pytest.mark.parametrize("x", [X, normal(0, 3), normal(), normal(2, 1, 5)], ids=["matrix", "empty", "scalar", "cube"])
def test_smooth(name, x):
    check(Case(name, _function(name), (x,)))
    check(Case(name, _method(name), (x,), order=0))


@pytest.mark.parametrize("name", OF_POSITIVE.split())
@pytest.mark.parametrize("x", [positive(3, 4), positive(0, 3), positive()], ids=["matrix", "empty", "scalar"])
def test_of_positive_numbers(name, x):
    check(Case(name, _function(name), (x,)))


@pytest.mark.parametrize("name", FLAT.split())
@pytest.mark.parametrize("x", [spread(3, 4), normal(0, 2), SPECIAL], ids=["matrix", "empty", "special"])
def test_piecewise_constant(name, x):
    check(Case(name, _function(name), (x,), order=1 if name not in ("signbit",) else 0))


@pytest.mark.parametrize("name", UNARY.split()[:-1] + OF_POSITIVE.split())
def test_special_values(name):
    x = SPECIAL if name not in ("tan", "sin", "cos") else SPECIAL[3:]
    check(Case(name, _function(name), (x,), order=0))


@pytest.mark.parametrize("name", BINARY.split())
@pytest.mark.parametrize(
    "y", [Y, normal(4), normal(3, 1), normal(), normal(2, 1, 1)], ids=["same", "row", "column", "scalar", "more"]
)
def test_of_two(name, y):
    check(Case(name, _function(name), (X, y)))
    check(Case(name, _method(name), (y, X), order=0))


@pytest.mark.parametrize("name", BINARY.split()[:-3] + COMPARED.split())
def test_two_special_values(name):
    x, y = (g.ravel() for g in np.meshgrid(SPECIAL, SPECIAL))
    if name in ("floor_divide", "remainder", "fmod"):
        kept = np.isfinite(x) & np.isfinite(y) & (y != 0) & (np.sign(x) * np.sign(y) != 0)
        x, y = x[kept], y[kept]
    check(Case(name, _function(name), (x, y), order=0))


@pytest.mark.parametrize("name", "add sub mul maximum minimum eq lt floor_divide remainder fmod bitwise_and".split())
@pytest.mark.parametrize("kinds", ["int64 int64", "int32 int64", "uint8 int64", "int8 int32", "bool int64"])
def test_integers(name, kinds):
    a, b = kinds.split()
    if name == "sub" and a == "bool":
        a = "uint8"  # PyTorch does not subtract booleans.
    x, y = whole(9, 3, 4, low=1).astype(a), whole(7, 4, low=1, seed=1).astype(b)
    check(Case(name, _function(name), (x, y), order=0))


@pytest.mark.parametrize(
    "case",
    cases(
        ("scalar right", lambda t, x: (x + 2, x - 2.5, x * 3, x / 4, x**2, x**0.5, x % 3), (positive(3, 4),)),
        ("scalar left", lambda t, x: (2 + x, 2.5 - x, 3 * x, 4 / x, 2**x, 2.0**x), (positive(3, 4),)),
        ("scalar and integers", lambda t, x: (x + 2, x - 2.5, x * True, x / 4, x**2, 7 // x, 7 % x), (whole(9, 4, low=1),)),
        ("comparison operators", lambda t, x, y: (x == y, x != y, x < y, x <= 0, x > 0.5, x >= y), (X, Y)),
        ("bit operators", lambda t, x, y: (x & y, x | y, x ^ y, ~x, x << 2, x >> 1), (whole(99, 5), whole(99, 5, seed=1))),
        ("boolean operators", lambda t, x, y: (x & y, x | y, x ^ y, ~x), (truth(5), truth(5, seed=1))),
        ("shift functions", lambda t, x: (t.bitwise_left_shift(x, 3), x.bitwise_right_shift(1)), (whole(99, 5),)),
        ("bitwise functions", lambda t, x, y: (t.bitwise_or(x, y), t.bitwise_xor(x, y), t.bitwise_not(x)), (whole(9, 5), whole(9, 5, seed=1))),
        ("unary operators", lambda t, x: (-x, +x, abs(x)), (X,)),
        ("pow of tensors", lambda t, x, y: (x**y, t.pow(x, y), x.pow(3), t.pow(2.0, y)), (positive(3, 4), Y)),
        ("pow of integers", lambda t, x: (x**2, x.pow(3)), (whole(5, 4, low=-4),)),
        ("pow with odd exponents", lambda t, x: (x**3, x**-1, x**-2), (X,)),
        ("alpha", lambda t, x, y: (t.add(x, y, alpha=2), t.sub(x, y, alpha=0.5), x.sub(y, alpha=3), t.rsub(x, y)), (X, Y)),
        ("rounding modes", lambda t, x, y: (t.div(x, y, rounding_mode="floor"), t.div(x, y, rounding_mode="trunc")), (X, Y), 1e-9, 0),
        ("rounding modes of integers", lambda t, x, y: (t.div(x, y, rounding_mode="floor"), x.div(y, rounding_mode="trunc"), x / y), (whole(9, 6, low=-9), whole(5, 6, low=1))),
        ("round decimals", lambda t, x: t.round(x, decimals=2), (X,), 1e-9, 0),
        ("clamp", lambda t, x: (t.clamp(x, -0.5, 0.5), x.clamp(min=0.1), x.clamp(max=0.1), t.clip(x, -1, 1)), (X,)),
        ("clamp by tensors", lambda t, x, y: (t.clamp(x, y), x.clamp(max=y), t.clamp_min(x, 0.2), t.clamp_max(x, 0.2)), (X, Y)),
        ("clamp integers", lambda t, x: (x.clamp(2, 5), x.clamp(min=3)), (whole(9, 6),)),
        ("lerp", lambda t, x, y, w: (t.lerp(x, y, 0.3), t.lerp(x, y, w)), (X, Y, positive(3, 4))),
        ("addcmul", lambda t, x, y, z: (t.addcmul(x, y, z, value=0.5), x.addcmul(y, z)), (X, Y, normal(4))),
        ("addcdiv", lambda t, x, y, z: (t.addcdiv(x, y, z, value=0.5), x.addcdiv(y, z)), (X, Y, positive(4))),
        ("where", lambda t, c, x, y: (t.where(c, x, y), t.where(c, x, 0.0), x.where(c, y)), (truth(3, 4), X, normal(4))),
        ("xlogy", lambda t, x, y: (t.xlogy(x, y), t.xlogy(x, 2.0)), (np.array([0.0, 0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0, 0.5])), 1e-9, 0),
        ("heaviside", lambda t, x, y: t.heaviside(x, y), (np.array([-1.0, 0.0, 2.0]), normal(3)), 1e-9, 0),
        ("float_power", lambda t, x: (t.float_power(x, 2), x.float_power(0.5)), (positive(4),)),
        ("float_power of integers", lambda t, x: t.float_power(x, 2), (whole(5, 4),)),
        ("logit eps", lambda t, x: t.logit(x, eps=0.3), (positive(4, 4),)),
        ("nan_to_num", lambda t, x: (t.nan_to_num(x), t.nan_to_num(x, nan=1.0, posinf=2.0, neginf=-3.0)), (SPECIAL,), 1e-9, 1),
        ("isclose", lambda t, x: (t.isclose(x, x + 1e-9), t.isclose(x, x + 1), t.isclose(x, x, equal_nan=True)), (SPECIAL,), 1e-9, 0),
        ("erfinv", lambda t, x: (t.erfinv(x), (x * 1).erfinv_()), (np.array([-1.0, -0.999, -0.5, -1e-9, 0.0, 1e-30, 0.3, 0.99, 1.0, 1.5]),), 1e-9, 0),
        ("gamma functions", lambda t, x: (t.lgamma(x), t.digamma(x), x.polygamma(1), t.polygamma(2, x), x.mvlgamma(2), (x * 1).lgamma_(), (x * 1).digamma_()), (positive(3, 4) * 12 + 0.6,), 1e-8, 1),
        ("gamma functions below zero", lambda t, x: (t.lgamma(x), t.digamma(x), x.polygamma(1)), (-positive(3, 4) * 5 - 0.01,), 1e-8, 0),
        ("gamma functions of large numbers", lambda t, x: (t.lgamma(x), t.digamma(x)), (np.array([20.0, 170.0, 1e5, 1e10, 1e-5]),), 1e-9, 0),
        ("acosh", lambda t, x: t.acosh(x), (positive(4) + 1.5,)),
        ("isin", lambda t, x, y: (t.isin(x, y), t.isin(x, y, invert=True)), (whole(9, 3, 4), whole(9, 4, seed=2))),
        ("fmod of negatives", lambda t, x, y: (t.fmod(x, y), t.remainder(x, y), t.fmod(x, 0.7)), (spread(3, 4), spread(4) + 0.11), 1e-8, 1),
        ("max of two", lambda t, x, y: (t.max(x, y), t.min(x, y), x.max(y)), (X, Y)),
        ("conversions", lambda t, x: (x.long(), x.int(), x.double(), x.float(), x.bool(), x.to(t.float32), x.type(t.int32)), (X,), 1e-9, 0),
        ("conversion keeps the graph", lambda t, x: (x.float() * 2).double(), (X,), 1e-6),
        ("type_as", lambda t, x, y: (x.type_as(y), x.to(y)), (X, whole(5, 2))),
        ("logical_not", lambda t, x: (t.logical_not(x), x.logical_not()), (np.array([0.0, 1.0, -2.0]),), 1e-9, 0),
    ),
)  # fmt: skip
def test_expressions(case):
    check(case)


IN_PLACE = "abs_ neg_ exp_ sin_ cos_ tanh_ erf_ sigmoid_ relu_ square_ expm1_ negative_ sinh_ cosh_ exp2_ erfc_ atan_"
IN_PLACE += " floor_ ceil_ round_ trunc_ sign_ fix_ frac_ nan_to_num_"


@pytest.mark.parametrize("name", IN_PLACE.split())
def test_in_place(name):
    check(Case(name, lambda t, x: getattr(x * 1.0, name)(), (X,)))


@pytest.mark.parametrize("name", "log_ log1p_ sqrt_ rsqrt_ reciprocal_ log2_ log10_ logit_ asin_ acos_".split())
def test_in_place_of_positive_numbers(name):
    check(Case(name, lambda t, x: getattr(x * 1.0, name)(), (positive(3, 4),)))


@pytest.mark.parametrize("name", "add_ sub_ mul_ div_ pow_ fmod_ remainder_ eq_ lt_ ge_ hypot_ xlogy_ atan2_".split())
def test_in_place_of_two(name):
    order = 0 if name in ("eq_", "lt_", "ge_", "fmod_", "remainder_") else 2
    check(Case(name, lambda t, x, y: getattr(x * 1.0, name)(y), (positive(3, 4), positive(4, seed=1)), order=order))


@pytest.mark.parametrize(
    "case",
    cases(
        ("operators", lambda t, x, y: _operators(x * 1.0, y), (positive(3, 4), positive(4, seed=1))),
        ("clamp_", lambda t, x: ((x * 1).clamp_(-0.5, 0.5), (x * 1).clamp_min_(0.1), (x * 1).clamp_max_(0.1)), (X,)),
        ("addcmul_", lambda t, x, y: ((x * 1).addcmul_(x, y, value=2), (x * 1).addcdiv_(x, y)), (X, positive(4))),
        ("lerp_", lambda t, x, y: (x * 1).lerp_(y, 0.25), (X, Y)),
        ("fill_", lambda t, x: ((x * 1).fill_(3.0), (x * 1).zero_()), (X,), 1e-9, 0),
        ("copy_", lambda t, x, y: (x * 1).copy_(y), (X, normal(4))),
        ("masked_fill_", lambda t, x, m: (x * 1).masked_fill_(m, -1.0), (X, truth(3, 4))),
        ("a view of a result", lambda t, x: _through_view(x * 1.0), (X,)),
        ("integers", lambda t, x: (x.clone().add_(2), x.clone().mul_(3), x.clone().bitwise_and_(6)), (whole(9, 4),)),
    ),
)
def test_in_place_expressions(case):
    check(case)


def _operators(x, y):
    x += y
    x *= 2
    x -= y * 0.5
    x /= y
    x **= 2
    return x


def _through_view(x):
    x[1].mul_(3)
    x[:, 2] += x[:, 0]
    x.t()[0].zero_()
    return x * x
