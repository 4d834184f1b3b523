"""Integration up to an event: a sign change of a function of time and state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from graphc.base.dtypes import bool_
from graphc.base.errors import ArgumentError, ShapeError
from graphc.base.records import NamedTuple
from graphc.integrate.odeint import Integration, check_reached, is_differentiated, is_recorded, planned, repeated
from graphc.integrate.steps import Control, Walk, attempt, begin, interpolant
from graphc.integrate.system import Leaves, Rate, checked_state, flat_rate, rising
from graphc.optimize.root_scalar import bracketed, corrected
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import full
from graphc.tensors.free_functions import assert_true, where
from graphc.tensors.structure import unflatten


class EventPoint(NamedTuple):
    """End of an integration."""

    t: Any
    """Time of the event, or the last time if there was none."""
    y: Any
    """State at that time."""
    found: Any
    """bool: whether there was an event."""


DIRECTIONS = {"both": (True, True), "rising": (True, False), "falling": (False, True)}
"""Whether sign changes from minus to plus and from plus to minus count."""
ROOT_STEPS = 100
"""Largest number of evaluations of the event function within a step."""


def odeint_event(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    event: Callable[..., Any],
    *args: Any,
    direction: str = "both",
    method: str = "dopri5",
    rtol: Any = 1e-5,
    atol: Any = 1e-8,
    first_step: Any = None,
    max_steps: int = 4096,
) -> EventPoint:
    """Solve ``dy/dt = func(t, y, *args)`` from ``t[0]`` until the sign of ``event(t, y, *args)`` changes.

    The time is a root on the step's interpolant, found by Chandrupatla's method. An event within one step that changes
    its sign twice is missed. Derivatives pass to the time and the state of the event, through the steps.

    Args:
        func, y0, args, method, rtol, atol, first_step, max_steps: as in ``odeint``; the method estimates errors.
        t: first and last time [2]; the second may be less than the first.
        event: function of a scalar time, a state and ``args`` that returns one number.
        direction: which changes count, in the order of the integration: ``rising``, ``falling`` or ``both``.

    Returns:
        ``EventPoint(t, y, found)``; without an event, the state at ``t[1]``, and False.

    Raises:
        ConditionError: neither an event nor ``t[1]`` was reached in ``max_steps``.
        ShapeError, DTypeError, ArgumentError: unsuitable arguments.

    Example:
        >>> import graphc as gc
        >>> def fall(t, y):
        ...     return gc.stack([y[1], gc.tensor(-9.81)])
        >>> end = gc.integrate.odeint_event(fall, gc.tensor([10.0, 0.0]), gc.tensor([0.0, 9.0]), lambda t, y: y[0])
        >>> print(f"{end.t.item():.3f} {end.y[1].item():.3f}")
        1.428 -14.007
    """
    if direction not in DIRECTIONS:
        raise ArgumentError(f"odeint_event: no direction {direction!r}", remedy=f"pass one of {', '.join(DIRECTIONS)}")
    ys, form = checked_state("odeint_event", y0)
    plan = planned(method, True, Control(rtol, atol, first_step, max_steps), 1)
    times, sign, rate = rising("odeint_event", t, ys[0], flat_rate("odeint_event", func, form, args))
    if times.shape[0] != 2:
        raise ShapeError(f"odeint_event: t has {times.shape[0]} times", remedy="pass the first and the last one")

    def value(s: Any, ys: Leaves) -> Any:
        result = event(sign * s, unflatten(form, ys), *args)
        if result.numel() != 1:
            raise ShapeError(f"odeint_event: event returns shape {list(result.shape)}", remedy="return one number")
        return result.reshape(()).to(times.dtype)

    walk, found = _walked(plan, rate, ys, times, value, direction)
    check_reached("odeint_event", (None, None, found | (walk.end >= times[1])), max_steps)
    state = interpolant(plan.tableau, rate, walk)
    time = where(found, _time(walk, lambda s: value(s, state(s)), found), times[1])
    return EventPoint(sign * time, unflatten(form, state(time)), found)


def _walked(plan: Integration, rate: Rate, ys: Leaves, times: Any, value: Any, direction: str) -> tuple[Walk, Any]:
    """Take steps until the sign changes; return the state after the last one, and whether the sign has changed."""
    last = times[1]
    walk = begin(plan.tableau, rate, times[0], last, ys, plan.control)
    inputs = [*ys, *walk.rate, times]
    control = replace(plan.control, differentiable=is_differentiated(inputs))

    def step(state: tuple[Walk, Any, Any]) -> tuple[Walk, Any, Any]:
        walk, before, _ = state
        walk = attempt(plan.tableau, rate, last, walk, control)
        with no_grad():
            after = value(walk.end, walk.y1).detach()
        return walk, after, _changes(before, after, direction)

    walk, _, found = repeated(
        lambda s: (s[0].end < last) & (s[0].steps < control.max_steps) & s[2].logical_not(),
        step,
        (walk, value(times[0], ys).detach(), full((), False, dtype=bool_)),
        control.max_steps if is_recorded(inputs) else None,
    )
    return walk, found


def _time(walk: Walk, on_step: Any, found: Any) -> Any:
    """Return the root of a function on the last step, with derivatives."""
    with no_grad():
        root, _, met = bracketed(on_step, walk.start.detach(), walk.end.detach(), ROOT_STEPS)
    assert_true(met | found.logical_not(), f"odeint_event: no root was found in {ROOT_STEPS} steps")
    return corrected(on_step, root)


def _changes(before: Any, after: Any, direction: str) -> Any:
    """Return whether the value changed its sign in a direction that counts; a 0 at the begin is no change."""
    up, down = DIRECTIONS[direction]
    rises, falls = (before < 0) & (after >= 0), (before > 0) & (after <= 0)
    return rises | falls if up and down else rises if up else falls
