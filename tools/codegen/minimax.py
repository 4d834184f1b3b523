"""Derive the polynomial coefficients of graphc/codegen/schedule/expansion by Remez exchange in multiple precision.

``python -m tools.codegen.minimax`` prints every fit with its error and whether the code holds these very numbers;
``python -m tools.codegen.minimax NAME..`` prints those named. Needs mpmath.

A fit minimises ``max |weight(x) * (function(x) - sum c_k x^k)|`` over an interval. Coefficients are rounded to their
storage type one after the other and the rest is fitted again, so that rounding costs little.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from graphc.codegen.schedule.expansion import angle, erfc, exp_log, periodic, pow

mp.mp.dps = 60
Real = Any
"""A number of mpmath."""
GRID = 1000
ROUNDS = 12


@dataclass(frozen=True)
class Fit:
    """One approximation problem."""

    function: Callable[[Real], Real]
    low: float
    high: float
    degree: int
    weight: Callable[[Real], Real] = lambda x: 1
    """Weight of an absolute error of the polynomial at x."""
    bits: int = 32
    """Storage type of the coefficients: 32 or 64."""


def rounded(value: Real, bits: int) -> Real:
    """Return the nearest f32 or f64."""
    if bits == 64:
        return mp.mpf(float(value))
    high = np.float32(float(value))
    return mp.mpf(float(high))


def _grid(fit: Fit) -> list[Real]:
    """Return the Chebyshev points of the interval: dense at both ends, never on them."""
    middle, half = (mp.mpf(fit.low) + fit.high) / 2, (mp.mpf(fit.high) - fit.low) / 2
    return [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * GRID)) for i in range(GRID)]


def _extrema(error: Sequence[Real], count: int) -> list[int]:
    """Return indices of ``count`` alternating extrema: the least ones are dropped, an end alone or two neighbours
    together."""
    runs: list[list[int]] = []
    for i, value in enumerate(error):
        if runs and (error[runs[-1][0]] > 0) == (value > 0):
            runs[-1].append(i)
        else:
            runs.append([i])
    best = [max(run, key=lambda i: abs(error[i])) for run in runs]
    while len(best) > count:
        size = [abs(error[i]) for i in best]
        least = min(range(len(best)), key=size.__getitem__)
        if len(best) == count + 1 or least in (0, len(best) - 1):
            best.pop(0 if size[0] < size[-1] else -1)
        else:
            first = least - 1 if size[least - 1] < size[least + 1] else least
            del best[first : first + 2]
    return best


def _polynomial(coefficients: Iterable[Any], x: Any) -> Any:
    """Return the value at x of the polynomial with these coefficients, lowest power first."""
    total = mp.mpf(0)
    for coefficient in reversed([*coefficients]):
        total = total * x + coefficient
    return total


def remez(fit: Fit, fixed: Sequence[Real]) -> tuple[list[Real], Real]:
    """Find the best coefficients when the first ones are ``fixed``; return all of them and the largest weighted error.

    Subtracting the fixed terms and dividing by ``x^len(fixed)`` leaves a Haar system again.
    """
    grid = _grid(fit)
    fixed_count, count = len(fixed), fit.degree + 2 - len(fixed)
    weights = [abs(fit.weight(x) * x**fixed_count) for x in grid]
    values = [(fit.function(x) - _polynomial(fixed, x)) / x**fixed_count for x in grid]
    at = [int(GRID * (k + 0.5) / count) for k in range(count)]  # Chebyshev points, as the grid is
    free: list[Real] = []
    error: list[Real] = []
    for _ in range(ROUNDS):
        if count > 1:
            matrix = mp.matrix(
                [[*(grid[i] ** p for p in range(count - 1)), (-1) ** k / weights[i]] for k, i in enumerate(at)]
            )
            solution = mp.lu_solve(matrix, mp.matrix([values[i] for i in at]))
            free = [solution[k] for k in range(count - 1)]
        error = [w * (v - _polynomial(free, x)) for x, w, v in zip(grid, weights, values, strict=True)]
        extrema = _extrema(error, count)
        if len(extrema) < count or extrema == at:
            break
        at = extrema
    return [*fixed, *free], max(abs(e) for e in error)


def solve(fit: Fit) -> tuple[list[float], float]:
    """Return the rounded coefficients, lowest power first, and the largest weighted error with them.

    In f64 only the first three are rounded one after the other: rounding the others costs less than evaluating them.
    """
    fixed: list[Real] = []
    for power in range(fit.degree + 1 if fit.bits == 32 else min(3, fit.degree + 1)):
        fixed.append(rounded(remez(fit, fixed)[0][power], fit.bits))
    best, _ = remez(fit, fixed)
    coefficients = [rounded(c, fit.bits) for c in best]
    _, error = remez(fit, coefficients)
    return [float(c) for c in coefficients], float(error)


def hexadecimal(value: float) -> str:
    """Return a float as source code holds it: hexadecimal without trailing zeros."""
    digits, exponent = value.hex().split("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}"


# ---- the fits

_LN_2 = mp.log(2)
_HALF = float(_LN_2 / 2 * mp.mpf("1.001"))
_ANGLE_F32, _ANGLE_F64 = 0.955**2, float((mp.pi / 4 * mp.mpf("1.04")) ** 2)


def _exp_rest(x: Real) -> Real:
    return (mp.expm1(x) - x) / x**2


def _log1p_rest(x: Real) -> Real:
    return (mp.log1p(x) - x) / x**2


def _log1p_weight(x: Real) -> Real:
    return x**2 / mp.log1p(x)


def _erf_exponent(a: Real) -> Real:
    return -mp.log(mp.erfc(a)) / a - 1


def _erf_weight(a: Real) -> Real:
    """Return the effect of an error in the exponent on erf: ``d(1 - e^-y) = e^-y dy``."""
    return a * mp.erfc(a) / mp.erf(a)


def _erfc_scaled(centre: float) -> Callable[[Real], Real]:
    """Return (a + k) e^(a a) erfc(a) in t = (a - k) / (a + k)."""

    def function(t: Real) -> Real:
        a = centre * (1 + t) / (1 - t)
        return (a + centre) * mp.exp(a * a) * mp.erfc(a)

    return function


def _erfc_fit(constants: erfc.Constants, degree: int, bits: int) -> Fit:
    k, high = constants.centre, constants.high
    function = _erfc_scaled(k)
    return Fit(function, -1.0, (high - k) / (high + k), degree, lambda t: 1 / function(t), bits)


def _sin_rest(square: Real) -> Real:
    r = mp.sqrt(square)
    return (mp.sin(r) - r) / r**3


def _sin_weight(square: Real) -> Real:
    return mp.sqrt(square) ** 3 / mp.sin(mp.sqrt(square))


def _cos_rest(square: Real) -> Real:
    return (mp.cos(mp.sqrt(square)) - 1) / square


def _cos_weight(square: Real) -> Real:
    return square / mp.cos(mp.sqrt(square))


def _atan_rest(square: Real) -> Real:
    q = mp.sqrt(square)
    return (mp.atan(q) / q - 1) / square


def _atan_weight(square: Real) -> Real:
    q = mp.sqrt(square)
    return square * q / mp.atan(q)


def _atanh_rest(square: Real) -> Real:
    s = mp.sqrt(square)
    return (mp.atanh(s) / s - 1 - square / 3) / square**2


FITS = {
    "exp_f32": Fit(_exp_rest, -_HALF, _HALF, 4, lambda x: x**2),
    "exp_f64": Fit(_exp_rest, -_HALF, _HALF, 9, lambda x: x**2, 64),
    "expm1_f32": Fit(_exp_rest, -_HALF, _HALF, 4, lambda x: x**2 / mp.expm1(x)),
    "expm1_f64": Fit(_exp_rest, -_HALF, _HALF, 10, lambda x: x**2 / mp.expm1(x), 64),
    "log1p_f32": Fit(_log1p_rest, -1 / 3, 1 / 3, 8, _log1p_weight),
    "log1p_f64": Fit(_log1p_rest, -1 / 3, 1 / 3, 19, _log1p_weight, 64),
    "erf_f32": Fit(_erf_exponent, 1e-30, 3.92, 8, _erf_weight),
    "erf_f64": Fit(_erf_exponent, 1e-30, 5.95, 23, _erf_weight, 64),
    "erfc_f32": _erfc_fit(erfc.CONSTANTS_F32, 10, 32),
    "erfc_f64": _erfc_fit(erfc.CONSTANTS_F64, 26, 64),
    "sin_f32": Fit(_sin_rest, 1e-30, _ANGLE_F32, 2, _sin_weight),
    "sin_f64": Fit(_sin_rest, 1e-30, _ANGLE_F64, 5, _sin_weight, 64),
    "cos_f32": Fit(_cos_rest, 1e-30, _ANGLE_F32, 3, _cos_weight),
    "cos_f64": Fit(_cos_rest, 1e-30, _ANGLE_F64, 6, _cos_weight, 64),
    "atan_f32": Fit(_atan_rest, 1e-12, 1.0, 8, _atan_weight),
    "atan_f64": Fit(_atan_rest, 1e-12, 1.0, 19, _atan_weight, 64),
    "pow_log2_f32": Fit(lambda x: mp.log1p(x) / x / _LN_2, -1 / 3, 1 / 3, 11, lambda x: x / mp.log1p(x), 64),
    "pow_exp2_f32": Fit(lambda x: mp.mpf(2) ** x, -0.5, 0.5, 6, bits=64),
    "pow_atanh_f64": Fit(_atanh_rest, 1e-12, 0.0401, 7, lambda t: t**2, 64),
    "pow_exp2_f64": Fit(lambda x: (mp.mpf(2) ** x - 1) / x, -0.5, 0.5, 10, lambda x: x, 64),
}
_F32, _F64 = exp_log.CONSTANTS_F32, exp_log.CONSTANTS_F64
STORED = {
    "exp_f32": _F32.exp[2:],
    "exp_f64": _F64.exp[2:],
    "expm1_f32": _F32.expm1,
    "expm1_f64": _F64.expm1,
    "log1p_f32": _F32.log1p,
    "log1p_f64": _F64.log1p,
    "erf_f32": _F32.erf,
    "erf_f64": _F64.erf,
    "erfc_f32": erfc.CONSTANTS_F32.scaled,
    "erfc_f64": erfc.CONSTANTS_F64.scaled,
    "sin_f32": periodic.SIN_F32,
    "sin_f64": periodic.SIN_F64,
    "cos_f32": periodic.COS_F32,
    "cos_f64": periodic.COS_F64,
    "atan_f32": angle.ATAN_F32,
    "atan_f64": angle.ATAN_F64,
    "pow_log2_f32": pow.LOG2,
    "pow_exp2_f32": pow.EXP2_F32,
    "pow_atanh_f64": pow.ATANH,
    "pow_exp2_f64": pow.EXP2_F64[1:],
}
"""Coefficients in the code, by name of the fit."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print fits; 1 when the code holds other numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(FITS)}")
    chosen = parser.parse_args(arguments).names or list(FITS)
    same = True
    for name in chosen:
        coefficients, error = solve(FITS[name])
        stored = tuple(coefficients) == STORED[name]
        same &= stored
        print(f"{name}: error 2^{float(mp.log(error, 2)):.1f}, {'as stored' if stored else 'differs from the code'}")
        print("   ", " ".join(hexadecimal(c) for c in coefficients))
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
