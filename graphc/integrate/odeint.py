"""``odeint``: initial value problems, with gradients through the steps or by the adjoint equation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from graphc.autograd.function import Function, once_differentiable
from graphc.autograd.transforms import vjp
from graphc.base.dtypes import bool_, int64
from graphc.base.errors import ArgumentError
from graphc.base.records import NamedTuple, dataclass
from graphc.control.closed import closed
from graphc.control.scan import scan
from graphc.control.while_loop import while_loop
from graphc.integrate.steps import Control, Walk, attempt, begin, interpolant, rates_of
from graphc.integrate.system import Leaves, Rate, checked_state, equal_steps, flat_rate, rising, with_first
from graphc.integrate.tableaus import Tableau, tableau_of
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tape.tangents import has_tangents
from graphc.tensors.creation import full
from graphc.tensors.free_functions import assert_true, cat, stack
from graphc.tensors.structure import unflatten


class StepCounts(NamedTuple):
    """Work of an integration."""

    steps: Any
    """i64: attempted steps, of all intervals together."""
    rejected: Any
    """i64: attempts whose error was too large."""


@dataclass(frozen=True)
class Integration:
    """Method of an integration, and its settings."""

    tableau: Tableau
    adaptive: bool
    control: Control
    substeps: int


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    method: str = "dopri5",
    rtol: Any = 1e-5,
    atol: Any = 1e-8,
    first_step: Any = None,
    max_steps: int = 4096,
    adaptive: bool | None = None,
    substeps: int = 1,
    adjoint: bool = False,
    full_output: bool = False,
) -> Any:
    """Solve ``dy/dt = func(t, y, *args)`` from ``y(t[0]) = y0``, and return ``y`` at all times ``t``.

    Args:
        func: function of a scalar time, a state and ``args`` that returns the rate, nested and shaped as the state. It
            may use tensors from outside, such as parameters.
        y0: first state: a floating-point tensor, or nested tuples, lists and dictionaries of them.
        t: times [count], rising or falling strictly; count is at least 2.
        args: further arguments of ``func``.
        method: name in docs/solvers.md, such as ``rk4``, ``dopri5``, ``dop853`` or, for stiff problems, ``rodas5p``.
        rtol, atol: a step is accepted if the root mean square of ``error / (atol + rtol * |y|)`` is at most 1.
        first_step: size of the first attempt; by default chosen from the rates.
        max_steps: largest number of attempts from ``t[0]`` to ``t[-1]``.
        adaptive: choose steps by their errors; default for methods with an error estimate.
        substeps: number of equal steps from each time to the next one, if not ``adaptive``.
        adjoint: compute gradients by integrating the adjoint equation; by default they pass through the steps.
        full_output: also return ``StepCounts(steps, rejected)``.

    Returns:
        The state at each time: ``y0``'s nesting, with a first dimension of ``count``.

    Raises:
        ConditionError: the last time was not reached in ``max_steps``, or the times do not rise or fall strictly.
        ShapeError, DTypeError, ArgumentError: unsuitable arguments, or rates that do not fit the state.

    Example:
        >>> import graphc as gc
        >>> y = gc.integrate.odeint(lambda t, y: -y, gc.tensor(1.0), gc.tensor([0.0, 1.0, 2.0]))
        >>> [f"{x:.4f}" for x in y.tolist()]
        ['1.0000', '0.3679', '0.1353']
    """
    ys, form = checked_state("odeint", y0)
    plan = planned(method, adaptive, Control(rtol, atol, first_step, max_steps), substeps)
    rate = flat_rate("odeint", func, form, args)
    if adjoint:
        results, statistics = _by_adjoint(plan, rate, ys, t, args)
    else:
        times, _, forward = rising("odeint", t, ys[0], rate)
        results, statistics = integrated(plan, forward, ys, times)
    if plan.adaptive:
        check_reached("odeint", statistics, max_steps)
    elif plan.tableau.diagonal:
        assert_true(statistics[2], "odeint: the method did not solve a stage; take more substeps")
    solution = unflatten(form, results)
    return (solution, StepCounts(*statistics[:2])) if full_output else solution


def planned(method: str, adaptive: bool | None, control: Control, substeps: int) -> Integration:
    """Return the plan of these settings; raise ArgumentError for settings that contradict each other."""
    tableau = tableau_of(method)
    adapts = bool(tableau.error) if adaptive is None else adaptive
    if adapts and not tableau.error:
        raise ArgumentError(
            f"odeint: {method} estimates no error, so its steps are fixed", remedy='pass method="dopri5", or substeps=N'
        )
    if adapts and substeps != 1:
        raise ArgumentError("odeint: substeps are those of fixed steps", remedy="pass adaptive=False as well")
    if control.max_steps < 1 or substeps < 1:
        raise ArgumentError(f"odeint: max_steps={control.max_steps}, substeps={substeps}", remedy="pass 1 or more")
    return Integration(tableau, adapts, control, substeps)


def check_reached(name: str, statistics: Sequence[Any], max_steps: int) -> None:
    """Raise ConditionError, in compiled code too, unless the third entry says that the last time was reached."""
    assert_true(
        statistics[2],
        f"{name}: the last time was not reached in {max_steps} steps; raise max_steps or the tolerances, or choose a "
        "method for stiff problems",
    )


def integrated(plan: Integration, rate: Rate, ys: Leaves, times: Any) -> tuple[Leaves, tuple[Any, Any, Any]]:
    """Return the states at rising times [count, ...], and (steps, rejected, whether the last time was reached)."""
    if not plan.adaptive:
        return _fixed(plan, rate, ys, times)
    last = times[-1]
    walk = begin(plan.tableau, rate, times[0], last, ys, plan.control)
    inputs = [*ys, *walk.rate, times]
    control = replace(plan.control, differentiable=is_differentiated(inputs))
    bound = control.max_steps if is_recorded(inputs) else None

    def interval(walk: Walk, t: Any) -> tuple[Walk, Leaves]:
        walk = repeated(
            lambda w: (w.end < t) & (w.steps < control.max_steps),
            lambda w: attempt(plan.tableau, rate, last, w, control),
            walk,
            bound,
        )
        return walk, interpolant(plan.tableau, rate, walk)(t)

    walk, later = scan(interval, walk, times[1:])
    return with_first(ys, later), (walk.steps, walk.rejected, walk.end >= last)


def is_recorded(tensors: Sequence[Any]) -> bool:
    """Return whether a gradient may pass through any of the tensors: only then a loop needs a bound."""
    return is_grad_enabled() and any(x.requires_grad for x in tensors)


def is_differentiated(tensors: Sequence[Any]) -> bool:
    """Return whether a gradient or a tangent may pass through any of the tensors."""
    return is_recorded(tensors) or has_tangents(tensors)


def repeated(more: Callable[[Any], Any], step: Callable[[Any], Any], state: Any, bound: int | None) -> Any:
    """Run a ``while_loop``. With a bound it is differentiable, in two levels, so that the backward pass keeps about
    ``2 sqrt(bound)`` states: it repeats each chunk of steps."""
    if bound is None:
        return while_loop(more, step, state)
    chunks = math.isqrt(bound - 1) + 1
    return while_loop(more, lambda s: while_loop(more, step, s, max_steps=chunks), state, max_steps=chunks)


def _fixed(plan: Integration, rate: Rate, ys: Leaves, times: Any) -> tuple[Leaves, tuple[Any, Any, Any]]:
    """Take equal steps from each time to the next one."""

    control = replace(plan.control, differentiable=is_differentiated([*ys, *rate(times[0], ys), times]))

    def step(t: Any, h: Any, state: tuple[Leaves, Any]) -> tuple[Leaves, Any]:
        ys, solved = state
        _, after, met = rates_of(plan.tableau, rate, t, ys, rate(t, ys), h, control)
        return after, solved & met

    (_, solved), (later, _) = equal_steps(step, (ys, full((), True, dtype=bool_)), times, plan.substeps)
    steps = full((), (times.shape[0] - 1) * plan.substeps, dtype=int64)
    return with_first(ys, later), (steps, steps * 0, solved)


def _by_adjoint(plan: Integration, rate: Rate, ys: Leaves, t: Any, args: Any) -> tuple[Leaves, tuple[Any, Any, Any]]:
    """Integrate with gradients by the adjoint equation, also by the tensors that ``rate`` uses from outside."""
    times, sign, _ = rising("odeint", t, ys[0], rate)
    if any(y.dtype.is_complex for y in ys):
        raise ArgumentError("odeint: adjoint=True needs a real state", remedy="use view_as_real, or adjoint=False")
    pure, parameters = closed(rate, times[0] * sign, ys)

    def forward(s: Any, ys: Leaves, outside: Leaves) -> Leaves:
        return [sign * k for k in pure(sign * s, ys, outside)]

    results = _Adjoint.apply(plan, forward, len(ys), times, *ys, *parameters)
    return list(results[: len(ys)]), results[len(ys) :]


class _Adjoint(Function):
    """Integration whose backward pass integrates the adjoint equation: Chen et al., Neural ordinary differential
    equations, 2018, algorithm 1; the state at each of the times is the saved one."""

    @staticmethod
    def forward(ctx: Any, plan: Integration, rate: Any, count: int, times: Any, *tensors: Any) -> Any:
        """Return the states at all times, then the statistics."""
        ys, parameters = list(tensors[:count]), list(tensors[count:])
        results, statistics = integrated(plan, lambda s, ys: rate(s, ys, parameters), ys, times)
        ctx.plan, ctx.rate, ctx.count = plan, rate, count
        ctx.save_for_backward(times, *ys, *results, *parameters)
        ctx.mark_non_differentiable(*statistics)
        return (*results, *statistics)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        """Integrate from each time to the previous one, and add the gradient of the state there."""
        times, *saved = ctx.saved_tensors
        first, results, parameters = saved[: ctx.count], saved[ctx.count : 2 * ctx.count], saved[2 * ctx.count :]
        weights = list(grads[: ctx.count])
        needed = [k for k, needs in enumerate(ctx.needs_input_grad[4 + ctx.count :]) if needs]

        def interval(carry: Any, xs: Any) -> Any:
            adjoints, sums = carry
            start, end, ys, gs = xs
            slope = _product(gs, ctx.rate(end, ys, parameters))
            adjoints = [a + g for a, g in zip(adjoints, gs, strict=True)]
            after, reached = _backwards(ctx.plan, ctx.rate, (start, end), (ys, adjoints, sums), (parameters, needed))
            return after, (slope, reached)

        zeros = ([g[0] * 0 for g in weights], [parameters[k] * 0 for k in needed])
        xs = (times[:-1], times[1:], [y[1:] for y in results], [g[1:] for g in weights])
        (adjoints, sums), (slopes, reached) = scan(interval, zeros, xs, reverse=True)
        check_reached("odeint: adjoint", (None, None, reached.all()), ctx.plan.control.max_steps)
        at_first = _product(adjoints, ctx.rate(times[0], first, parameters))
        by_parameter: list[Any] = [None] * len(parameters)
        for k, total in zip(needed, sums, strict=True):
            by_parameter[k] = total
        adjoints = [a + g[0] for a, g in zip(adjoints, weights, strict=True)]
        return (None, None, None, cat([-at_first.reshape(1), slopes]), *adjoints, *by_parameter)


def _product(adjoints: Leaves, rates: Leaves) -> Any:
    return sum((a * k).sum() for a, k in zip(adjoints, rates, strict=True))


def _backwards(plan: Integration, rate: Any, times: Any, state: Any, outside: Any) -> tuple[Any, Any]:
    """Integrate state, adjoints and sums of parameter gradients from ``times[1]`` down to ``times[0]``.

    Return the last two, and whether the end was reached. The sums are integrals, whose errors do not feed back; the
    error of a step leaves them out: Kidger, Chen and Lyons, "Hey, that's not an ODE", 2021.
    """
    (start, end), (ys, adjoints, sums), (parameters, needed) = times, state, outside
    count = len(ys)

    def reversed_rate(s: Any, leaves: Leaves) -> Leaves:
        def of_needed(ys: Leaves, chosen: Leaves) -> Leaves:
            full = list(parameters)
            for k, value in zip(needed, chosen, strict=True):
                full[k] = value
            return rate(-s, ys, full)

        chosen = [parameters[k] for k in needed]
        if needed:
            rates, pull = vjp(of_needed, leaves[:count], chosen)
            by_state, by_parameter = pull(leaves[count : 2 * count])
        else:
            rates, pull = vjp(lambda ys: rate(-s, ys, parameters), leaves[:count])
            (by_state,), by_parameter = pull(leaves[count : 2 * count]), []
        return [*(-k for k in rates), *by_state, *by_parameter]

    control = replace(plan.control, controlled=2 * count)
    leaves = [*ys, *adjoints, *sums]
    results, statistics = integrated(replace(plan, control=control), reversed_rate, leaves, stack([-end, -start]))
    last = [x[1] for x in results]
    return (last[count : 2 * count], last[2 * count :]), statistics[2]
