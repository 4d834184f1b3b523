"""Simulators beside JAX: values, values with gradients, and compile time: ``python -m benchmarks.simulators``.

Each case is one function of ``benchmarks.models.simulators``, the same source for all libraries, in f64 on one thread.
``torch`` and ``numpy`` run it eagerly; ``numba`` compiles plain loops (``benchmarks.models.simulators_loops``). numpy
and numba have no gradients. All contenders compute the same digits; differences from the first peer's are in the JSON.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import graphc as gc
from benchmarks.harness.results import Result
from benchmarks.harness.sweep import Sweep, limited_jax, limited_torch
from benchmarks.harness.timing import Call, Makers, first_call
from benchmarks.models.simulators import PROBLEMS, Problem
from benchmarks.models.simulators_loops import LOOPS

_NAMES = ("sqrt", "sin", "cos", "exp", "log", "tanh", "stack", "roll")
Case = tuple[Problem, bool]
"""A problem, and whether its gradient is computed too."""


def functions(library: Any, array: Callable[..., Any], scan: Callable[..., Any]) -> SimpleNamespace:
    """Return the functions of a library that simulators call."""
    return SimpleNamespace(array=array, scan=scan, **{name: getattr(library, name) for name in _NAMES})


def contender_of_graphc(case: Case) -> Call:
    """Return a call of a problem, compiled by graphc."""
    problem, gradient = case
    lib = functions(gc, gc.tensor, gc.scan)
    parameters = [gc.tensor(x) for x in problem.parameters]
    function = partial(problem.run, lib)
    call = gc.compile(gc.value_and_grad(function, argnums=tuple(range(len(parameters)))) if gradient else function)
    return partial(call, *parameters)


def _jax(case: Case) -> Call:
    jax = limited_jax()
    problem, gradient = case
    lib = functions(jax.numpy, jax.numpy.asarray, jax.lax.scan)
    parameters = [jax.numpy.asarray(x) for x in problem.parameters]
    function = partial(problem.run, lib)
    call = jax.jit(jax.value_and_grad(function, argnums=tuple(range(len(parameters)))) if gradient else function)
    return lambda: jax.block_until_ready(call(*parameters))


def _torch(case: Case) -> Call:
    torch = limited_torch()
    problem, gradient = case
    lib = functions(torch, torch.tensor, partial(_loop, torch.stack))
    parameters = [torch.tensor(x, requires_grad=gradient) for x in problem.parameters]

    def call() -> Any:
        value = problem.run(lib, *parameters)
        return (value, torch.autograd.grad(value, parameters)) if gradient else value

    return call


def _numpy(case: Case) -> Call:
    return partial(case[0].run, functions(np, np.asarray, partial(_loop, np.stack)), *case[0].parameters)


def _numba(name: str, case: Case) -> Call:
    numba = importlib.import_module("numba")
    loop, arrays = LOOPS[name]
    return partial(numba.njit(loop), *case[0].parameters, *arrays)


def _loop(stack: Callable[..., Any], step: Callable[..., Any], carry: Any, xs: Any, length: int | None) -> Any:
    outputs = []
    for i in range(len(xs) if length is None else length):
        carry, y = step(carry, None if xs is None else xs[i])
        outputs.append(y)
    return carry, None if outputs[0] is None else stack(outputs)


def _makers(case: Case, result: Result) -> Makers:
    problem, gradient = case
    result.facts["numbers"] = problem.numbers
    name = next(name for name, p in PROBLEMS.items() if p is problem)
    compiled = {"graphc": contender_of_graphc, "jax": _jax} | ({} if gradient else {"numba": partial(_numba, name)})
    eager = {"torch": _torch} | ({} if gradient else {"numpy": _numpy})
    makers = {name: first_call(result, name, partial(make, case)) for name, make in compiled.items()}
    return {**makers, **{name: partial(make, case) for name, make in eager.items()}}


def _summary(results: Sequence[Result]) -> list[str]:
    ratios = [(r.over("jax"), r) for r in results]
    small = [ratio for ratio, r in ratios if ratio is not None and r.facts["numbers"] < 1000]
    large = [ratio for ratio, r in ratios if ratio is not None and r.facts["numbers"] >= 1000]
    lines = []
    for what, found in ("fewer than 1,000", small), ("1,000 or more", large):
        if found:
            lines.append(f"jax / graphc, states of {what} numbers: least {min(found):.1f}, most {max(found):.1f}")
    worst = max((error for r in results for error in r.errors.values()), default=0.0)
    return [*lines, f"Largest difference of contenders: {worst:.1e}"]


SWEEP = Sweep(
    "benchmarks.simulators",
    __doc__,
    {f"{name}{', gradient' if g else ''}": (p, g) for name, p in PROBLEMS.items() for g in (False, True)},
    ("jax", "torch", "numba", "numpy"),
    _makers,
    ("numbers", "graphc compile s", "jax compile s", "numba compile s"),
    notes=_summary,
    seconds=0.2,
    page=Path(__file__).parent.parent / "docs" / "performance.md",
)

if __name__ == "__main__":
    sys.exit(SWEEP.main())
