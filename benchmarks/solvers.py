"""Adaptive solvers beside diffrax and SciPy: values, gradients, and compile time: ``python -m benchmarks.solvers``.

Each case is one system of equations in f64 on one thread, solved up to its last time by methods of the same order with
equal tolerances. ``jax`` is diffrax under ``jax.jit``; ``scipy`` calls a right-hand side that numba has compiled, where
numba is installed. SciPy has no gradients, and no method for some cases. The contenders choose their steps by rules of
their own, so they agree to about the tolerance.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import graphc as gc
from benchmarks.harness.results import Result
from benchmarks.harness.sweep import Sweep, limited_jax
from benchmarks.harness.timing import Call, Makers, find_library, first_call
from graphc.base.records import dataclass

Rate = Callable[[Any, Any], Sequence[Any]]


def lorenz(y: Any, p: Any) -> Sequence[Any]:
    return p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]


def orbit(y: Any, p: Any) -> Sequence[Any]:
    """Return the rate of Arenstorf's satellite; ``p`` is the share of the moon in the mass."""
    moon = p[0]
    earth_pull = (1 - moon) / ((y[0] + moon) ** 2 + y[1] ** 2) ** 1.5
    moon_pull = moon / ((y[0] - 1 + moon) ** 2 + y[1] ** 2) ** 1.5
    along = y[0] + 2 * y[3] - earth_pull * (y[0] + moon) - moon_pull * (y[0] - 1 + moon)
    return y[2], y[3], along, y[1] - 2 * y[2] - (earth_pull + moon_pull) * y[1]


def van_der_pol(y: Any, p: Any) -> Sequence[Any]:
    return y[1], p[0] * (1 - y[0] ** 2) * y[1] - y[0]


def robertson(y: Any, p: Any) -> Sequence[Any]:
    first, second = p[0] * y[0] - p[1] * y[1] * y[2], p[2] * y[1] * y[1]
    return -first, first - second, second


@dataclass(frozen=True)
class System:
    """Equations with their start, and the time up to which they are solved."""

    rate: Rate
    start: tuple[float, ...]
    parameters: tuple[float, ...]
    end: float
    rtol: float
    atol: float


@dataclass(frozen=True)
class Case:
    """A system, the name of the method in each library, and whether the gradient by the parameters is computed."""

    system: System
    graphc: str
    diffrax: str
    scipy: str = ""
    gradient: bool = False


def _graphc(case: Case) -> Call:
    system = case.system
    t = gc.tensor([0.0, system.end], dtype=gc.float64)
    options = {"method": case.graphc, "rtol": system.rtol, "atol": system.atol}

    def solve(y0: Any, p: Any) -> Any:
        return gc.integrate.odeint(lambda t, y, p: gc.stack(list(system.rate(y, p))), y0, t, p, **options)[-1]

    call = gc.compile(gc.value_and_grad(lambda y0, p: solve(y0, p).square().sum(), argnums=1))
    arguments = [gc.tensor(x, dtype=gc.float64) for x in (system.start, system.parameters)]
    return partial(call if case.gradient else gc.compile(solve), *arguments)


def _jax(case: Case) -> Call:
    jax, diffrax = limited_jax(), importlib.import_module("diffrax")
    system = case.system
    term = diffrax.ODETerm(lambda t, y, p: jax.numpy.stack(system.rate(y, p)))
    control = diffrax.PIDController(rtol=system.rtol, atol=system.atol)
    solver = getattr(diffrax, case.diffrax)()

    def solve(y0: Any, p: Any) -> Any:
        options = {"args": p, "stepsize_controller": control}
        return diffrax.diffeqsolve(term, solver, 0.0, system.end, None, y0, **options).ys[-1]

    gradient = jax.value_and_grad(lambda y0, p: (solve(y0, p) ** 2).sum(), argnums=1)
    call = jax.jit(gradient if case.gradient else solve)
    arguments = [jax.numpy.array(x) for x in (system.start, system.parameters)]
    return lambda: jax.block_until_ready(call(*arguments))


def _scipy(case: Case) -> Call:
    integrate, numba = importlib.import_module("scipy.integrate"), find_library("numba")
    system, p = case.system, np.array(case.system.parameters)
    compiled = numba.njit if numba else lambda function: function
    rate = compiled(system.rate)
    slope = compiled(lambda t, y, p: np.array(rate(y, p)))
    options = {"method": case.scipy, "rtol": system.rtol, "atol": system.atol, "args": (p,)}
    start, times = np.array(system.start), (0.0, system.end)
    return lambda: integrate.solve_ivp(slope, times, start, **options).y[:, -1]


def _makers(case: Case, result: Result) -> Makers:
    compiled = {"graphc": _graphc, "jax": _jax}
    makers = {name: first_call(result, name, partial(make, case)) for name, make in compiled.items()}
    return {**makers, "scipy": partial(_scipy, case)} if case.scipy else makers


_LORENZ = System(lorenz, (1.0, 1.0, 1.0), (10.0, 28.0, 8 / 3), 2.0, 1e-8, 1e-8)
_ORBIT = System(orbit, (0.994, 0.0, 0.0, -2.0015851063790825), (0.012277471,), 17.065216560157964, 1e-12, 1e-12)
_VAN_DER_POL = System(van_der_pol, (2.0, 0.0), (1000.0,), 2000.0, 1e-6, 1e-6)
_ROBERTSON = System(robertson, (1.0, 0.0, 0.0), (0.04, 1e4, 3e7), 1e4, 1e-6, 1e-10)
CASES = {
    "lorenz, dopri5": Case(_LORENZ, "dopri5", "Dopri5", "RK45"),
    "lorenz, dopri5, gradient": Case(_LORENZ, "dopri5", "Dopri5", gradient=True),
    "lorenz, tsit5": Case(_LORENZ, "tsit5", "Tsit5"),
    "lorenz, tsit5, gradient": Case(_LORENZ, "tsit5", "Tsit5", gradient=True),
    "orbit, dop853": Case(_ORBIT, "dop853", "Dopri8", "DOP853"),
    "orbit, dop853, gradient": Case(_ORBIT, "dop853", "Dopri8", gradient=True),
    "van der Pol, kvaerno5": Case(_VAN_DER_POL, "kvaerno5", "Kvaerno5", "Radau"),
    "van der Pol, rodas5p": Case(_VAN_DER_POL, "rodas5p", "Kvaerno5", "Radau"),
    "robertson, kvaerno5": Case(_ROBERTSON, "kvaerno5", "Kvaerno5", "Radau"),
    "robertson, rodas5p": Case(_ROBERTSON, "rodas5p", "Kvaerno5", "Radau"),
    "robertson, kvaerno5, gradient": Case(_ROBERTSON, "kvaerno5", "Kvaerno5", gradient=True),
    "robertson, rodas5p, gradient": Case(_ROBERTSON, "rodas5p", "Kvaerno5", gradient=True),
}


def _summary(results: Sequence[Result]) -> list[str]:
    worst = max((error for r in results for error in r.errors.values()), default=0.0)
    return [f"Largest difference of contenders: {worst:.1e}"]


SWEEP = Sweep(
    "benchmarks.solvers",
    __doc__,
    CASES,
    ("jax", "scipy"),
    _makers,
    ("graphc compile s", "jax compile s"),
    notes=_summary,
    seconds=0.2,
    page=Path(__file__).parent.parent / "docs" / "performance.md",
)

if __name__ == "__main__":
    sys.exit(SWEEP.main())
