"""Stages of diagonally implicit Runge-Kutta methods, by Newton's method, and of Rosenbrock methods."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from graphc.autograd.transforms import jvp
from graphc.base.dtypes import bool_, int64
from graphc.base.errors import ArgumentError
from graphc.control.scan import scan
from graphc.control.while_loop import while_loop
from graphc.func.jacobian import jacfwd
from graphc.integrate.system import Leaves, Rate, advanced, norm_of, scalar
from graphc.integrate.tableaus import Tableau
from graphc.linalg.systems import inv_ex
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import eye, full, ones_like, tensor, zeros
from graphc.tensors.free_functions import cat, where

ITERATIONS = 10
"""Largest number of Newton's corrections for a stage."""
PRECISION = 0.01
"""Correction, in tolerances, after which a stage counts as solved: Hairer and Wanner, section IV.8."""


def implicit_rates_of(
    tableau: Tableau, rate: Rate, t: Any, ys: Leaves, first: Leaves, h: Any, tolerances: tuple[Any, Any, bool]
) -> tuple[list[Leaves], Leaves, Any]:
    """Return the rates of all stages of a step from ``t``, the state at ``t + h``, and whether all stages were solved.

    ``tolerances`` are the relative and the absolute one, and whether derivatives pass through the step. These are those
    of the solution of the stage's equation, up to second order, by two more corrections with the exact Jacobian matrix.
    """
    flat, split = _flattening(ys)
    y, width, count = flat(ys), h * tableau.diagonal, len(tableau.c)
    with no_grad():
        scale = (tolerances[1] + tolerances[0] * y.abs()).detach()
        matrix = _inverse(lambda v: flat(rate(t, split(v))), y.detach(), width.detach())

    def stage(carry: Any, coefficients: Any) -> Any:
        rates, last, _, solved = carry
        time, row, new = t + coefficients[0] * h, coefficients[1], coefficients[2]
        base = y + h.to(y.dtype) * (row[:, None] * rates).sum(0)

        def rate_at(v: Any) -> Any:
            return flat(rate(time, split(v)))

        with no_grad():
            state, met = _newton(rate_at, base.detach(), width, matrix, (last.detach(), scale))
        if tolerances[2]:
            state = state.detach()
            with no_grad():
                exact = _inverse(rate_at, state, width.detach()).detach()
            for _ in range(2):
                state = state - exact @ (state - base - width * rate_at(state))
        k = (state - base) / width
        return (where(new[:, None], k, rates), k, state, solved & met), None

    rows = [[*row, *(count - len(row)) * (0.0,)] for row in tableau.a[1:]]
    begin = flat(first)
    rates = cat([begin.reshape(1, -1), zeros(count - 1, y.shape[0], dtype=y.dtype)])
    one = full((), True, dtype=bool_)
    xs = (tensor(tableau.c[1:], dtype=h.dtype), tensor(rows, dtype=y.dtype), eye(count, dtype=bool_)[1:])
    (rates, _, state, solved), _ = scan(stage, (rates, begin, y, one), xs)
    return [split(rates[i]) for i in range(count)], split(state), solved


def rosenbrock_stages_of(
    tableau: Tableau, rate: Rate, t: Any, ys: Leaves, first: Leaves, h: Any
) -> tuple[list[Leaves], Leaves, Any]:
    """Return all stages of a Rosenbrock step from ``t``, the state at ``t + h``, and whether its matrix is regular.

    One matrix serves all stages, without iterations: Hairer and Wanner, section IV.7, equation 7.25. Derivatives of any
    order are those of the step.
    """
    flat, split = _flattening(ys)
    y = flat(ys)
    _, by_time = jvp(lambda s: flat(rate(s, ys)), (t,), (ones_like(t),))
    matrix = _inverse(lambda v: flat(rate(t, split(v))), y, h * tableau.diagonal) * tableau.diagonal
    stages: list[Leaves] = []
    for c, row, coupling, weight in zip(tableau.c, tableau.a, tableau.coupling, tableau.by_time, strict=True):
        slope = flat(rate(t + c * h, split(advanced([y], h, row, stages)[0]))) if stages else flat(first)
        (right,) = advanced([slope], scalar(1.0, h), (*coupling, weight * h if weight else 0.0), [*stages, [by_time]])
        stages.append([matrix @ right])
    (end,) = advanced([y], h, tableau.b, stages)
    return [split(k) for (k,) in stages], split(end), matrix.isfinite().all()


def _flattening(ys: Leaves) -> tuple[Callable[[Leaves], Any], Callable[[Any], Leaves]]:
    """Return the functions from the tensors of a state to one vector, and back."""
    if len({y.dtype for y in ys}) > 1 or ys[0].dtype.is_complex:
        found = ", ".join(y.dtype.name for y in ys)
        raise ArgumentError(
            f"odeint: an implicit method needs a state of one real type, got {found}", remedy="cast the tensors"
        )
    if len(ys) == 1 and len(ys[0].shape) == 1:
        return lambda ys: ys[0], lambda v: [v]

    def flat(ys: Leaves) -> Any:
        return cat([y.reshape(-1) for y in ys])

    def split(v: Any) -> Leaves:
        leaves, start = [], 0
        for y in ys:
            leaves.append(v[start : start + prod(y.shape)].reshape(y.shape))
            start += prod(y.shape)
        return leaves

    return flat, split


def _inverse(rate: Callable[[Any], Any], v: Any, width: Any) -> Any:
    """Return the inverse of ``I - width J``, with the Jacobian matrix of ``rate`` at ``v``."""
    return inv_ex(eye(v.shape[0], dtype=v.dtype) - width.to(v.dtype) * jacfwd(rate)(v)).inverse


def _newton(rate: Callable[[Any], Any], base: Any, width: Any, matrix: Any, guess: tuple[Any, Any]) -> tuple[Any, Any]:
    """Solve ``v = base + width * rate(v)``; return ``v``, and whether the last correction was small enough."""
    slope, scale = guess

    def step(state: Any) -> Any:
        v, _, count = state
        change = matrix @ (v - base - width * rate(v))
        return v - change, norm_of([change], [scale]), count + 1

    def more(state: Any) -> Any:
        return (state[1] > PRECISION) & (state[1] < 1e10) & (state[2] < ITERATIONS)

    v, change, _ = while_loop(more, step, (base + width * slope, scalar(1.0, base), full((), 0, dtype=int64)))
    return v, change <= PRECISION
