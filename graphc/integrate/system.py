"""Systems of differential equations: a rate function over the tensors of a nested state, in a rising time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.control.scan import scan
from graphc.control.while_loop import fori_loop
from graphc.tensors.creation import full
from graphc.tensors.free_functions import assert_true, cat, where
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

Leaves = list[Any]
"""Tensors of a state, in the order of ``flatten``."""
Rate = Callable[[Any, Leaves], Leaves]


def flat_rate(name: str, func: Callable[..., Any], form: Structure, args: Sequence[Any]) -> Rate:
    """Return ``func(t, y, *args)`` as a function of the tensors of ``y``; ``name`` opens its error messages."""

    def rate(t: Any, ys: Leaves) -> Leaves:
        rates, returned = flatten(func(t, unflatten(form, ys), *args))
        if returned != form:
            raise ArgumentError(
                f"{name}: func returns another nesting than the state's", remedy="return one rate for each tensor of y"
            )
        for k, y in zip(rates, ys, strict=True):
            if tuple(k.shape) != tuple(y.shape):
                raise ShapeError(f"{name}: func returns shape {list(k.shape)} for a state of {list(y.shape)}")
        return [k.to(y.dtype) for k, y in zip(rates, ys, strict=True)]

    return rate


def checked_state(name: str, y0: Any) -> tuple[Leaves, Structure]:
    """Flatten a first state; raise ArgumentError or DTypeError unless it consists of floating-point tensors."""
    leaves, form = flatten(y0)
    if not leaves:
        raise ArgumentError(f"{name}: the state holds no tensor", remedy="pass a tensor, or nested containers of them")
    for leaf in leaves:
        if not leaf.dtype.is_differentiable:
            raise DTypeError(f"{name}: the state is {leaf.dtype.name}", remedy="pass y0.double() or y0.float()")
    return leaves, form


def rising(name: str, t: Any, like: Any, rate: Rate) -> tuple[Any, Any, Rate]:
    """Return times that rise, their sign, and the rate by them.

    Args:
        name: function to name in messages.
        t: times [count], which rise or fall strictly; count is at least 2.
        like: tensor whose real type the times get.
        rate: rate by ``t``.

    Returns:
        ``sign * t``, ``sign`` (1 or -1, a scalar), and the rate by ``sign * t``.

    Raises:
        ShapeError: ``t`` is not of one dimension, or has fewer than two times.
        ConditionError: the times do not rise or fall strictly.
    """
    times = t if isinstance(t, Tensor) else front().constant(t)
    if len(times.shape) != 1 or times.shape[0] < 2:
        raise ShapeError(f"{name}: t has shape {list(times.shape)}", remedy="pass two times or more in one dimension")
    times = times.to(like.dtype.real)
    sign = where(times[-1] < times[0], -1.0, 1.0).to(times.dtype).detach()
    increasing = times * sign
    assert_true((increasing[1:] > increasing[:-1]).all(), f"{name}: the times must rise or fall strictly")

    def forward(s: Any, ys: Leaves) -> Leaves:
        return [_scale(sign, k) * k for k in rate(sign * s, ys)]

    return increasing, sign, forward


def _scale(h: Any, y: Any) -> Any:
    """Return a time in the real type of a state."""
    return h.to(y.dtype.real)


def equal_steps(step: Callable[[Any, Any, Any], Any], state: Any, times: Any, substeps: int) -> tuple[Any, Any]:
    """Apply ``state = step(t, h, state)`` ``substeps`` times from each time to the next one; return the last state, and
    the states at all times but the first."""

    def interval(state: Any, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        t, h = ends[0], (ends[1] - ends[0]) / substeps
        if substeps == 1:
            state = step(t, h, state)
        else:
            state = fori_loop(0, substeps, lambda i, state: step(t + i.to(h.dtype) * h, h, state), state)
        return state, state

    return scan(interval, state, (times[:-1], times[1:]))


def with_first(first: Leaves, later: Leaves) -> Leaves:
    """Put the first state before the stacked later ones."""
    return [cat([a.reshape(1, *a.shape), b]) for a, b in zip(first, later, strict=True)]


def advanced(ys: Leaves, h: Any, weights: Sequence[Any], rates: Sequence[Leaves]) -> Leaves:
    """Return ``y + h * sum(weights * rates)``; Python zeros among the weights cost nothing."""
    used = [(w, k) for w, k in zip(weights, rates, strict=False) if not (isinstance(w, float) and w == 0)]
    if not used:
        return ys
    return [y + _scale(h, y) * _total([(w, k[i]) for w, k in used]) for i, y in enumerate(ys)]


def weighted(h: Any, weights: Sequence[Any], rates: Sequence[Leaves]) -> Leaves:
    """Return ``h * sum(weights * rates)``."""
    used = [(w, k) for w, k in zip(weights, rates, strict=False) if w != 0]
    return [_scale(h, y) * _total([(w, k[i]) for w, k in used]) for i, y in enumerate(rates[0])]


def _total(terms: Sequence[tuple[Any, Any]]) -> Any:
    total: Any = None
    for weight, rate in terms:
        term = rate if isinstance(weight, float) and weight == 1 else _weight(weight, rate) * rate
        total = term if total is None else total + term
    return total


def _weight(weight: Any, rate: Any) -> Any:
    return _scale(weight, rate) if isinstance(weight, Tensor) else weight


def norm_of(errors: Leaves, scales: Leaves) -> Any:
    """Return the root mean square of ``errors / scales`` over all elements of all tensors."""
    squares = [((e.abs() / s) ** 2).reshape(-1) for e, s in zip(errors, scales, strict=True)]
    dtype = squares[0].dtype
    return cat([s.to(dtype) for s in squares]).mean().sqrt()


def selected(condition: Any, new: Leaves, old: Leaves) -> Leaves:
    """Return ``new`` where the scalar condition holds, else ``old``."""
    return [where(condition, a, b) for a, b in zip(new, old, strict=True)]


def scalar(value: float, like: Any) -> Any:
    """Return a scalar tensor of the type of ``like``."""
    return full((), value, dtype=like.dtype)
