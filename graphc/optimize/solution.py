"""Parts that the solvers share: states as vectors, reports, and derivatives of solutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from graphc.autograd.function import Function
from graphc.autograd.transforms import jvp, vjp
from graphc.base.dtypes import int64
from graphc.base.errors import ArgumentError, DTypeError
from graphc.base.records import NamedTuple
from graphc.control.closed import closed
from graphc.func.jacobian import jacfwd
from graphc.linalg.systems import solve_ex
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tape.tangents import has_tangents
from graphc.tensors.creation import full
from graphc.tensors.free_functions import assert_true, cat
from graphc.tensors.structure import flatten, unflatten
from graphc.tracing.trace import is_tracing


class SolverReport(NamedTuple):
    """Work of a solver."""

    steps: Any
    """i64: steps taken."""
    error: Any
    """Size of what the solver makes small, at the solution: its docstring names it."""
    converged: Any
    """bool: whether the error is within the tolerance."""


class Vector:
    """A nested state of real tensors of one type, as one vector."""

    def __init__(self, name: str, x0: Any):
        leaves, self.form = flatten(x0)
        if not leaves:
            raise ArgumentError(f"{name}: the start holds no tensor", remedy="pass a tensor, or containers of them")
        dtypes = {x.dtype for x in leaves}
        if len(dtypes) > 1 or leaves[0].dtype.is_complex or not leaves[0].dtype.is_differentiable:
            types = ", ".join(x.dtype.name for x in leaves)
            raise DTypeError(f"{name}: the start is of {types}", remedy="pass tensors of one real floating-point type")
        self.shapes = [tuple(x.shape) for x in leaves]
        self.start = joined(leaves)
        """The start, without history."""

    def nested(self, v: Any) -> Any:
        """Return a vector as the state's nest of tensors."""
        leaves, first = [], 0
        for shape in self.shapes:
            leaves.append(v[first : first + prod(shape)].reshape(shape))
            first += prod(shape)
        return unflatten(self.form, leaves)


def joined(leaves: Sequence[Any]) -> Any:
    """Return the elements of all tensors as one vector."""
    return cat([x.reshape(-1) for x in leaves])


def vector_of(value: Any) -> Any:
    """Return the elements of a nest of tensors as one vector."""
    return joined(flatten(value)[0])


def largest(v: Any) -> Any:
    """Return the largest absolute value of a vector."""
    return v.abs().amax(0)


def counted() -> Any:
    """Return an i64 counter at 0."""
    return full((), 0, dtype=int64)


def linear_solution(matrix: Any, v: Any) -> Any:
    """Solve ``matrix @ x = v``; a singular matrix gives numbers that are not finite, no error."""
    return solve_ex(matrix, v).result


def with_derivatives(equation: Callable[[Any], Any], v: Any) -> Any:
    """Return the solution ``v`` of ``equation(v) = 0`` with derivatives by the tensors that ``equation`` uses.

    They follow from the implicit function theorem: a backward pass solves one system with the Jacobian matrix. Raises
    TraceError if ``equation`` writes to tensors from outside, or draws random numbers.
    """
    if not is_tracing():
        rest = equation(v)
        if not (is_grad_enabled() and rest.requires_grad) and not has_tangents((rest,)):
            return v
    pure, outside = closed(equation, v)
    return _Implicit.apply(pure, v, *outside)


class _Implicit(Function):
    """A solution of a system of equations as a function of the system's tensors."""

    @staticmethod
    def forward(ctx: Any, equation: Any, v: Any, *outside: Any) -> Any:
        """Return the solution."""
        solution = v.clone()
        ctx.equation = equation
        ctx.save_for_backward(solution, *outside)
        return solution

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Solve with the transposed matrix, and pull the result back through the equation."""
        v, *outside = ctx.saved_tensors
        needed = [k for k, needs in enumerate(ctx.needs_input_grad[2:]) if needs]
        matrix = jacfwd(lambda v: ctx.equation(v, outside))(v)
        weights = linear_solution(matrix.mT, -grads[0])
        result: list[Any] = [None] * len(outside)
        if needed:
            equation = _of_needed(ctx.equation, outside, needed)
            _, pull = vjp(lambda chosen: equation(v, chosen), [outside[k] for k in needed])
            for k, x in zip(needed, pull(weights)[0], strict=True):
                result[k] = x
        return (None, None, *result)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Push the tangents through the equation, and solve with the matrix."""
        v, *outside = ctx.saved_tensors
        by_outside = tangents[2:]
        needed = [k for k, x in enumerate(by_outside) if x is not None]
        of_needed = _of_needed(ctx.equation, outside, needed)
        chosen, directions = [outside[k] for k in needed], [by_outside[k] for k in needed]
        _, pushed = jvp(lambda chosen: of_needed(v, chosen), (chosen,), (directions,))
        return linear_solution(jacfwd(lambda v: ctx.equation(v, outside))(v), -pushed)


def _of_needed(equation: Callable[..., Any], outside: Sequence[Any], needed: Sequence[int]) -> Callable[..., Any]:
    """Return the equation as a function of its point and of some of its outside tensors."""

    def of_needed(v: Any, chosen: Sequence[Any]) -> Any:
        full = list(outside)
        for k, value in zip(needed, chosen, strict=True):
            full[k] = value
        return equation(v, full)

    return of_needed


def reported(name: str, x: Any, report: SolverReport, full_output: bool) -> Any:
    """Return ``x``, or with ``full_output`` (x, report). Otherwise raise ConditionError unless it converged."""
    if full_output:
        return x, report
    assert_true(report.converged, f"{name}: no solution was found; pass another start, max_steps or tol")
    return x
