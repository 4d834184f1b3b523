"""Minima: least squares by Gauss-Newton and Levenberg-Marquardt, smooth functions by L-BFGS and BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.autograd.transforms import grad, value_and_grad
from graphc.base.errors import ArgumentError
from graphc.control.while_loop import while_loop
from graphc.func.jacobian import jacfwd
from graphc.optimize.line_search import wolfe_point
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
from graphc.tensors.creation import eye, full, zeros
from graphc.tensors.free_functions import cat, where

DAMPING = 1e-3
"""First damping of Levenberg-Marquardt, as a share of the diagonal of ``J^T J``."""
ROUNDING = 1e-15
"""Relative rise of a sum of squares that counts as rounding."""
LEAST_CURVATURE = 1e-10
"""Product of a move and the change of the gradient, as a share of the square of the change, above which the pair
improves the estimate of the Hessian matrix; L-BFGS-B has the same rule with the machine's precision."""


def gauss_newton(
    residuals: Callable[..., Any],
    x0: Any,
    *args: Any,
    tol: float = 1e-6,
    max_steps: int = 50,
    full_output: bool = False,
) -> Any:
    """Return ``x`` that minimizes the sum of squares of ``residuals(x, *args)``, by Gauss-Newton steps from ``x0``.

    Each step solves the linear least-squares problem of the Jacobian matrix, which needs full column rank. Use
    ``levenberg_marquardt`` for starts far from the solution. Arguments, derivatives and errors are those of
    ``newton``; ``tol`` bounds the absolute values of the gradient ``J^T r``.

    Example:
        >>> import graphc as gc
        >>> x, y = gc.tensor([0.0, 1.0, 2.0]), gc.tensor([1.0, 2.0, 4.0])
        >>> gc.optimize.gauss_newton(lambda p: p[0] * (p[1] * x).exp() - y, gc.tensor([1.0, 0.5]))
        tensor([1.0000, 0.6931])
    """
    return _least_squares("gauss_newton", residuals, x0, args, (tol, max_steps, full_output), damped=False)


def levenberg_marquardt(
    residuals: Callable[..., Any],
    x0: Any,
    *args: Any,
    tol: float = 1e-6,
    max_steps: int = 100,
    full_output: bool = False,
) -> Any:
    """Return ``x`` that minimizes the sum of squares of ``residuals(x, *args)``, by damped steps from ``x0``.

    Marquardt's scaling by the diagonal of ``J^T J``; the damping falls threefold after a step that lowers the sum, and
    doubles, then quadruples and so on, after one that does not: Nielsen, Damping parameter in Marquardt's method, 1999.
    Arguments, derivatives and errors are those of ``gauss_newton``.

    Example:
        >>> import graphc as gc
        >>> rosenbrock = lambda x: gc.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])
        >>> gc.optimize.levenberg_marquardt(rosenbrock, gc.tensor([-1.2, 1.0]))
        tensor([1.0000, 1.0000])
    """
    return _least_squares("levenberg_marquardt", residuals, x0, args, (tol, max_steps, full_output), damped=True)


def _least_squares(name: str, residuals: Any, x0: Any, args: Any, settings: tuple[Any, ...], damped: bool) -> Any:
    tol, max_steps, full_output = settings
    space = Vector(name, x0)

    def residual(v: Any) -> Any:
        return vector_of(residuals(space.nested(v), *args))

    def slope(v: Any) -> Any:
        return grad(lambda v: 0.5 * residual(v).square().sum())(v)

    def step(state: Any) -> Any:
        v, _, r, matrix, damping, rise, count = state
        normal = matrix.mT @ matrix
        weights = normal.diagonal()
        if damped:
            normal = normal + (damping * where(weights > 0, weights, 1.0).to(v.dtype)).diag()
        point = v - linear_solution(normal, matrix.mT @ r)
        after = residual(point)
        limit = (1 + ROUNDING) * r.square().sum()
        better = (after.square().sum() <= limit) if damped else after.square().sum() >= 0
        v, r = where(better, point, v), where(better, after, r)
        matrix = jacfwd(residual)(v)
        damping = where(better, damping / 3, damping * rise)
        return v, matrix.mT @ r, r, matrix, damping, where(better, 2.0, rise * 2).to(v.dtype), count + 1

    with constants():
        v, r, matrix = space.start.detach(), residual(space.start.detach()), jacfwd(residual)(space.start.detach())
        numbers = [full((), x, dtype=v.dtype) for x in (DAMPING, 2.0)]
        start = (v, matrix.mT @ r, r, matrix, *numbers, counted())
        v, gradient, *_, count = while_loop(lambda s: (largest(s[1]) > tol) & (s[-1] < max_steps), step, start)
    report = SolverReport(count, largest(gradient), largest(gradient) <= tol)
    return reported(name, space.nested(with_derivatives(slope, v)), report, full_output)


def lbfgs(
    f: Callable[..., Any],
    x0: Any,
    *args: Any,
    tol: float = 1e-5,
    max_steps: int = 500,
    history: int = 10,
    full_output: bool = False,
) -> Any:
    """Return ``x`` that minimizes ``f(x, *args)``, by the L-BFGS method from ``x0``.

    Two-loop recursion over the last ``history`` steps, whose lengths satisfy the strong Wolfe conditions: Nocedal and
    Wright, Numerical optimization, chapters 3 and 7. Derivatives are those of the minimum; they need its Hessian
    matrix, so few unknowns. Arguments and errors are those of ``newton``; ``tol`` bounds the absolute values of the
    gradient.

    Example:
        >>> import graphc as gc
        >>> gc.optimize.lbfgs(lambda x: ((x - 3) ** 2).sum(), gc.zeros(2))
        tensor([3., 3.])
    """
    if history < 1:
        raise ArgumentError(f"lbfgs: history={history}", remedy="pass 1 or more")
    space = Vector("lbfgs", x0)
    rows = zeros(history, space.start.shape[0], dtype=space.start.dtype)
    return _quasi_newton("lbfgs", f, space, args, (rows, rows), (tol, max_steps, full_output))


def bfgs(
    f: Callable[..., Any],
    x0: Any,
    *args: Any,
    tol: float = 1e-5,
    max_steps: int = 500,
    full_output: bool = False,
) -> Any:
    """Return ``x`` that minimizes ``f(x, *args)``, by the BFGS method from ``x0``.

    It keeps the estimate of the inverse Hessian matrix, so suits up to some hundreds of unknowns: Nocedal and Wright,
    Numerical optimization, chapter 6. Arguments, derivatives and errors are those of ``lbfgs``.

    Example:
        >>> import graphc as gc
        >>> rosenbrock = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        >>> gc.optimize.bfgs(rosenbrock, gc.tensor([-1.2, 1.0]))
        tensor([1., 1.])
    """
    space = Vector("bfgs", x0)
    matrix = zeros(space.start.shape[0], space.start.shape[0], dtype=space.start.dtype)
    return _quasi_newton("bfgs", f, space, args, (matrix,), (tol, max_steps, full_output))


def _quasi_newton(name: str, f: Any, space: Vector, args: Any, memory: Any, settings: tuple[Any, ...]) -> Any:
    """Minimize with an estimate of the inverse Hessian matrix: pairs of moves and changes of the gradient, or the
    matrix itself. It is 0 before the first step."""
    tol, max_steps, full_output = settings
    direction_of, updated = (_direction, _with_pair) if len(memory) > 1 else (_dense_direction, _dense_update)

    def value(v: Any) -> Any:
        return f(space.nested(v), *args).reshape(())

    def step(state: Any) -> Any:
        v, y, g, memory, count, _ = state
        direction = direction_of(g, memory)
        end = wolfe_point(value_and_grad(value), v, y, g, direction)
        move = end.size * direction
        return v + move, end.value, end.gradient, updated(memory, move, end.gradient - g), count + 1, end.size > 0

    with constants():
        v = space.start.detach()
        y, g = value_and_grad(value)(v)
        going = largest(g) >= 0
        v, _, g, _, count, _ = while_loop(
            lambda s: (largest(s[2]) > tol) & (s[4] < max_steps) & s[5], step, (v, y, g, memory, counted(), going)
        )
    report = SolverReport(count, largest(g), largest(g) <= tol)
    return reported(name, space.nested(with_derivatives(grad(value), v)), report, full_output)


def _first_scale(g: Any) -> Any:
    """Return the factor on minus the gradient of a first step of at most length 1."""
    return 1 / g.abs().sum().maximum(full((), 1.0, dtype=g.dtype))


def _direction(g: Any, pairs: tuple[Any, Any]) -> Any:
    """Return minus the inverse Hessian's estimate times the gradient; the newest pair is the last row."""
    moves, changes = pairs
    count = moves.shape[0]
    curvature = (moves * changes).sum(1)
    rho = where(curvature > 0, 1 / where(curvature > 0, curvature, 1.0), 0.0).to(g.dtype)
    q, factors = g, []
    for i in reversed(range(count)):
        factor = rho[i] * (moves[i] * q).sum()
        q = q - factor * changes[i]
        factors.append(factor)
    squares = where(rho[-1] > 0, changes[-1].square().sum(), 1.0).to(g.dtype)
    q = q * where(rho[-1] > 0, curvature[-1] / squares, _first_scale(g)).to(g.dtype)
    for i in range(count):
        q = q + (factors[count - 1 - i] - rho[i] * (changes[i] * q).sum()) * moves[i]
    return -q


def _with_pair(pairs: tuple[Any, Any], move: Any, change: Any) -> tuple[Any, Any]:
    """Append a pair in place of the oldest one, unless its curvature is not positive."""
    good = _curves(move, change)
    return tuple(  # type: ignore[return-value]
        where(good, cat([rows[1:], row.reshape(1, -1)]), rows) for rows, row in zip(pairs, (move, change), strict=True)
    )


def _curves(move: Any, change: Any) -> Any:
    """Return whether the function curves upwards along a move that changes the gradient so."""
    return (move * change).sum() > LEAST_CURVATURE * change.square().sum()


def _dense_direction(g: Any, memory: tuple[Any]) -> Any:
    (matrix,) = memory
    return -where(matrix[0, 0] > 0, matrix @ g, _first_scale(g) * g)


def _dense_update(memory: tuple[Any], move: Any, change: Any) -> tuple[Any]:
    """Return the matrix after a step, if its curvature is positive: Nocedal and Wright, equation 6.17."""
    (matrix,) = memory
    good = _curves(move, change)
    product = where(good, (move * change).sum(), 1.0).to(move.dtype)
    one = eye(move.shape[0], dtype=move.dtype)
    scale = product / where(good, change.square().sum(), 1.0).to(move.dtype)
    matrix = where(matrix[0, 0] > 0, matrix, scale * one)
    left = one - move[:, None] * change[None, :] / product
    return (where(good, left @ matrix @ left.mT + move[:, None] * move[None, :] / product, memory[0]),)
