"""Systems of equations: Newton's method, and fixed points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.control.while_loop import while_loop
from graphc.func.jacobian import jacfwd
from graphc.optimize.solution import (
    SolverReport,
    Vector,
    counted,
    largest,
    linear_solution,
    reported,
    vector_of,
    with_derivatives,
)
from graphc.tape.tangents import constants
from graphc.tensors.creation import full
from graphc.tensors.free_functions import where

HALVINGS = 20
"""Largest number of halvings of a step that does not make the residual smaller."""


def newton(
    f: Callable[..., Any],
    x0: Any,
    *args: Any,
    tol: float = 1e-6,
    max_steps: int = 50,
    full_output: bool = False,
) -> Any:
    """Return ``x`` with ``f(x, *args) = 0``, by Newton's method from ``x0``.

    The Jacobian matrix is computed in forward mode. A step is halved until the Euclidean norm of the residual falls.
    Derivatives of any order, by ``args`` and by tensors that ``f`` uses, are those of the solution; ``x0`` has none.

    Args:
        f: function that returns as many numbers as ``x`` has.
        x0: start: a real floating-point tensor, or nested containers of tensors of one type.
        args: further arguments of ``f``.
        tol: largest absolute value of ``f`` at the solution.
        max_steps: largest number of steps.
        full_output: return (x, ``SolverReport(steps, error, converged)``), without an error if it did not converge.

    Returns:
        The solution, nested as ``x0``.

    Raises:
        ConditionError: no solution was found.
        DTypeError, ArgumentError: an unsuitable start.

    Example:
        >>> import graphc as gc
        >>> gc.optimize.newton(lambda x, a: x**2 - a, gc.ones(2), gc.tensor([4.0, 9.0]))
        tensor([2., 3.])
    """
    space = Vector("newton", x0)

    def equation(v: Any) -> Any:
        return vector_of(f(space.nested(v), *args))

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        v, residual, count = state
        change = linear_solution(jacfwd(equation)(v), residual)
        v, residual = _damped(equation, v, residual, change)
        return v, residual, count + 1

    with constants():
        start = space.start.detach()
        v, residual, count = while_loop(
            lambda s: (largest(s[1]) > tol) & (s[2] < max_steps), step, (start, equation(start), counted())
        )
    report = SolverReport(count, largest(residual), largest(residual) <= tol)
    return reported("newton", space.nested(with_derivatives(equation, v)), report, full_output)


def _damped(equation: Callable[[Any], Any], v: Any, residual: Any, change: Any) -> tuple[Any, Any]:
    """Subtract the change, halved until the norm of the residual falls. Return the new point and its residual, or
    the old ones if it never does."""

    def halve(state: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        factor = state[0] * 0.5
        point = v - factor * change
        return factor, point, equation(point), state[3] + 1

    def more(state: tuple[Any, Any, Any, Any]) -> Any:
        smaller = state[2].square().sum() < residual.square().sum()
        return smaller.logical_not() & (state[3] < HALVINGS)

    first = v - change
    one = full((), 1.0, dtype=v.dtype)
    _, point, after, _ = while_loop(more, halve, (one, first, equation(first), counted()))
    better = after.square().sum() < residual.square().sum()
    return where(better, point, v), where(better, after, residual)


def fixed_point(
    f: Callable[..., Any],
    x0: Any,
    *args: Any,
    tol: float = 1e-6,
    max_steps: int = 1000,
    full_output: bool = False,
) -> Any:
    """Return ``x`` with ``f(x, *args) = x``, by repeated application from ``x0``.

    Arguments, derivatives and errors are those of ``newton``; ``tol`` bounds the absolute values of ``f(x) - x``, and
    ``f`` returns the nest, shapes and types of ``x``.

    Example:
        >>> import graphc as gc
        >>> gc.optimize.fixed_point(lambda x: x.cos(), gc.tensor(1.0))
        tensor(0.7391)
    """
    space = Vector("fixed_point", x0)

    def applied(v: Any) -> Any:
        return vector_of(f(space.nested(v), *args))

    with constants():
        start = space.start.detach()
        v, error, count = while_loop(
            lambda s: (s[1] > tol) & (s[2] < max_steps),
            lambda s: _next(applied(s[0]), s),
            (start, full((), float("inf"), dtype=start.dtype), counted()),
        )
    solution = space.nested(with_derivatives(lambda v: v - applied(v), v))
    return reported("fixed_point", solution, SolverReport(count, error, error <= tol), full_output)


def _next(after: Any, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    return after, largest(after - state[0]), state[2] + 1
