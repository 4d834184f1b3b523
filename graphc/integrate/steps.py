"""Steps, their error control, and their interpolants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.dtypes import bool_, int64
from graphc.base.records import NamedTuple, dataclass
from graphc.integrate.implicit import implicit_rates_of, rosenbrock_stages_of
from graphc.integrate.system import Leaves, Rate, advanced, norm_of, scalar, selected, weighted
from graphc.integrate.tableaus import Tableau
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import full
from graphc.tensors.free_functions import where


@dataclass(frozen=True)
class Control:
    """Settings of the step size."""

    rtol: Any
    atol: Any
    first_step: Any
    """Size of the first attempt; None: chosen from the rates."""
    max_steps: int
    """Attempts in one integration, rejected ones included."""
    controlled: int | None = None
    """Leaves whose errors count, from the first; None: all."""
    differentiable: bool = False
    """Whether derivatives pass through the steps."""


class Walk(NamedTuple):
    """State of an adaptive integration after an attempt."""

    start: Any
    """Time at which the last attempt began."""
    end: Any
    """Time that has been reached."""
    y0: Leaves
    y1: Leaves
    """States at ``start`` and at ``end``."""
    rate: Leaves
    """Rate at ``end``."""
    stages: list[Leaves]
    """Rates of the last attempt's stages."""
    size: Any
    """Size of the next attempt."""
    growth: Any
    """Limit of the next step's growth: 1 after a rejection."""
    error: Any
    """Error of the last accepted step, in tolerances."""
    steps: Any
    rejected: Any
    """i64: attempts, and those among them that were rejected."""


SAFETY, SHRINK, GROWTH = 0.9, 0.2, 10.0
"""Factor on the optimal step, and bounds on the change of its size: Hairer, Norsett and Wanner, section II.4."""
UNSOLVED = 1e30
"""Error, in tolerances, of a step whose stages could not be solved, or are not finite."""


def rates_of(
    tableau: Tableau, rate: Rate, t: Any, ys: Leaves, first: Leaves, h: Any, control: Control
) -> tuple[list[Leaves], Leaves, Any]:
    """Return the rates of all stages of a step from ``t``, the state at ``t + h``, and whether it could be computed."""
    if tableau.coupling:
        return rosenbrock_stages_of(tableau, rate, t, ys, first, h)
    if tableau.diagonal:
        tolerances = (control.rtol, control.atol, control.differentiable)
        return implicit_rates_of(tableau, rate, t, ys, first, h, tolerances)
    stages, state = _extended(tableau, rate, t, ys, h, [first], len(tableau.b))
    end = state if tableau.ends_with_rate else advanced(ys, h, tableau.b, stages)
    return stages, end, full((), True, dtype=bool_)


def _extended(
    tableau: Tableau, rate: Rate, t: Any, ys: Leaves, h: Any, stages: Sequence[Leaves], count: int
) -> tuple[list[Leaves], Leaves]:
    """Append the rates of explicit stages up to ``count``; return all, and the last one's state."""
    extended, state = list(stages), ys
    for c, row in zip(tableau.c[len(stages) : count], tableau.a[len(stages) : count], strict=True):
        state = advanced(ys, h, row, extended)
        extended.append(rate(t + c * h, state))
    return extended, state


def begin(tableau: Tableau, rate: Rate, t: Any, end: Any, ys: Leaves, control: Control) -> Walk:
    """Return the state before the first step."""
    first = rate(t, ys)
    with no_grad():
        size = _first_size(tableau, rate, t, end, ys, first, control).detach()
    count = full((), 0, dtype=int64)
    stages = [first] * len(tableau.b)
    one = scalar(1.0, t)
    return Walk(t, t, ys, ys, first, stages, size, one * GROWTH, one * 1e-4, count, count)


def _first_size(tableau: Tableau, rate: Rate, t: Any, end: Any, ys: Leaves, first: Leaves, control: Control) -> Any:
    """Return a step whose explicit Euler step changes the state little: Hairer, Norsett and Wanner, section II.4."""
    if control.first_step is not None:
        return scalar(1.0, t) * control.first_step
    scales = _scales(ys, ys, control)
    d0, d1 = _norm(ys, scales, control), _norm(first, scales, control)
    guess = where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / where(d1 > 0, d1, 1.0)).to(t.dtype)
    guess = guess.minimum(end - t)
    second = rate(t + guess, advanced(ys, guess, (1.0,), [first]))
    d2 = _norm([b - a for a, b in zip(first, second, strict=True)], scales, control).to(t.dtype) / guess
    largest = d1.to(t.dtype).maximum(d2)
    flat = (guess * 1e-3).maximum(scalar(1e-6, t))
    size = where(largest <= 1e-15, flat, (0.01 / where(largest > 0, largest, 1.0)) ** (1 / (tableau.order + 1)))
    return (100 * guess).minimum(size)


def _scales(ys: Leaves, others: Leaves, control: Control) -> Leaves:
    return [control.atol + control.rtol * a.abs().maximum(b.abs()) for a, b in zip(ys, others, strict=True)]


def _norm(errors: Leaves, scales: Leaves, control: Control) -> Any:
    return norm_of(errors[: control.controlled], scales[: control.controlled])


def attempt(tableau: Tableau, rate: Rate, last: Any, walk: Walk, control: Control) -> Walk:
    """Try one step, which ends at time ``last`` at the latest; accept it if its error is within the tolerances.

    Derivatives pass through the steps and their times; their sizes are constants. The size is that of a
    proportional-integral controller: Hairer, Norsett and Wanner, section IV.2.
    """
    with no_grad():
        rest = last - walk.end
        is_last = walk.size >= rest
        h = where(is_last, rest, walk.size).detach()
    stages, y1, solved = rates_of(tableau, rate, walk.end, walk.y1, walk.rate, h, control)
    after = stages[-1] if tableau.ends_with_rate else rate(walk.end + h, y1)
    with no_grad():
        error = _error(tableau, stages, h, _scales(walk.y1, y1, control), control).to(h.dtype).detach()
        error = where(solved, error, UNSOLVED)
        accepted = error <= 1
        factor, limit = _factor(tableau.order, error, walk, accepted)
        kept = where(accepted, error.maximum(scalar(1e-4, h)), walk.error)
    return Walk(
        walk.end,
        where(accepted, where(is_last, last.detach() + (walk.end - walk.end.detach()), walk.end + h), walk.end),
        walk.y1,
        selected(accepted, y1, walk.y1),
        selected(accepted, after, walk.rate),
        stages,
        h * factor,
        limit,
        kept,
        walk.steps + 1,
        walk.rejected + accepted.logical_not().to(int64),
    )


def _error(tableau: Tableau, stages: list[Leaves], h: Any, scales: Leaves, control: Control) -> Any:
    """Return the error of a step, in tolerances; a coarse estimate scales it: Hairer, Norsett and Wanner, II.10."""
    error = _norm(weighted(h, tableau.error, stages), scales, control)
    if not tableau.coarse:
        return error
    coarse = _norm(weighted(h, tableau.coarse, stages), scales, control)
    size = (error * error + 0.01 * coarse * coarse).sqrt()
    return error * error / where(size == 0, 1.0, size).to(size.dtype)


def _factor(order: int, error: Any, walk: Walk, accepted: Any) -> tuple[Any, Any]:
    """Return the change of the step's size, and the limit of the next change."""
    error = where(error < UNSOLVED, error, UNSOLVED).maximum(scalar(1e-10, error))
    grown = SAFETY * error ** (-0.85 / order) * walk.error ** (0.2 / order)
    shrunk = SAFETY * error ** (-1 / order)
    factor = where(accepted, grown.minimum(walk.growth), shrunk).maximum(scalar(SHRINK, error))
    return factor, where(accepted, GROWTH, 1.0).to(error.dtype)


def interpolant(tableau: Tableau, rate: Rate, walk: Walk) -> Callable[[Any], Leaves]:
    """Return the function from times within the last step to states. Stages that only it uses are computed here."""
    h = (walk.end - walk.start).detach()
    stages, _ = _extended(tableau, rate, walk.start, walk.y0, h, walk.stages, len(tableau.c))

    def state(t: Any) -> Leaves:
        theta = (t - walk.start) / h
        if tableau.dense:
            return advanced(walk.y0, h, _dense_weights(tableau.dense, theta), stages)
        return hermite(theta, h, walk.y0, walk.y1, stages[0], walk.rate)

    return state


def _dense_weights(rows: Sequence[Sequence[float]], theta: Any) -> list[Any]:
    weights: list[Any] = []
    for row in rows:
        total: Any = 0.0
        for coefficient in reversed(row):
            total = (total + coefficient) * theta if not isinstance(total, float) else theta * coefficient
        weights.append(total)
    return weights


def hermite(theta: Any, h: Any, y0: Leaves, y1: Leaves, f0: Leaves, f1: Leaves) -> Leaves:
    """Return the cubic polynomial with these values and rates at both ends of a step, at ``theta`` of it."""
    rest = 1 - theta
    w0, w1 = (1 + 2 * theta) * rest * rest, theta * theta * (3 - 2 * theta)
    d0, d1 = h * theta * rest * rest, -h * theta * theta * rest
    return [
        sum(w.to(a.dtype.real) * x for w, x in ((w0, a), (w1, b), (d0, f), (d1, g)))
        for a, b, f, g in zip(y0, y1, f0, f1, strict=True)
    ]
