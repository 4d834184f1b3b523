"""Constraints: sets of allowed values of parameters and samples, as conditions on tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphc.linalg.systems import cholesky_ex
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tensors.tensor import Tensor


class Constraint:
    """A set of values. ``check(value)`` returns a bool tensor: for each event, whether it belongs to the set."""

    is_discrete = False
    event_dim = 0
    """Number of trailing dimensions of one event."""

    def check(self, value: Tensor) -> Tensor:
        """Check for each event whether it belongs to the set."""
        raise NotImplementedError(f"{type(self).__name__} does not define check")

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_").lower()


class _Condition(Constraint):
    """A set defined by a function of tensors; ``name`` describes it."""

    def __init__(self, name: str, check: Callable[[Tensor], Any], event_dim: int = 0, is_discrete: bool = False):
        self._name = name
        self._check = check
        self.event_dim = event_dim
        self.is_discrete = is_discrete

    def check(self, value: Tensor) -> Tensor:
        return self._check(value)

    def __repr__(self) -> str:
        return self._name


class _HalfLine(_Condition):
    """Numbers on one side of ``lower_bound`` or of ``upper_bound``."""

    lower_bound: Any = None
    upper_bound: Any = None


class _Dependent(Constraint):
    """A set that depends on parameters; a distribution provides it as a property."""

    def __init__(self, is_discrete: bool = False, event_dim: int = 0):
        self.is_discrete = is_discrete
        self.event_dim = event_dim


class _Interval(Constraint):
    """Numbers from ``lower_bound`` to ``upper_bound`` (numbers, or tensors that broadcast)."""

    def __init__(self, lower_bound: Any, upper_bound: Any, *, open_below: bool = False, open_above: bool = False):
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self._open = (open_below, open_above)

    def check(self, value: Tensor) -> Tensor:
        above = (ew.gt if self._open[0] else ew.ge)(value, self.lower_bound)
        return ew.logical_and(above, (ew.lt if self._open[1] else ew.le)(value, self.upper_bound))

    def __repr__(self) -> str:
        opening, closing = "(["[not self._open[0]], ")]"[not self._open[1]]
        return f"in {opening}{_short(self.lower_bound)}, {_short(self.upper_bound)}{closing}"


class _IntegerInterval(_Interval):
    """Integers from ``lower_bound`` to ``upper_bound``."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return ew.logical_and(_is_whole(value), super().check(value))

    def __repr__(self) -> str:
        return f"whole and {super().__repr__()}"


class _Independent(Constraint):
    """A constraint whose last ``reinterpreted_batch_ndims`` batch dimensions belong to the event, too."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        satisfied, count = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        return satisfied.all(tuple(range(-count, 0))) if count else satisfied

    def __repr__(self) -> str:
        return f"{self.base_constraint!r}, each of an event"


def _short(bound: Any) -> str:
    return "a tensor" if isinstance(bound, Tensor) and bound.numel() != 1 else f"{bound}"


def _is_whole(value: Tensor) -> Any:
    return ew.eq(mathematics.floor(value), value) if value.dtype.is_floating_point else ew.eq(value, value)


def _above(bound: Any) -> Constraint:
    constraint = _HalfLine(f"greater than {_short(bound)}", lambda v: ew.gt(v, bound))
    constraint.lower_bound = bound
    return constraint


def _at_least(bound: Any) -> Constraint:
    constraint = _HalfLine(f"at least {_short(bound)}", lambda v: ew.ge(v, bound))
    constraint.lower_bound = bound
    return constraint


def _below(bound: Any) -> Constraint:
    constraint = _HalfLine(f"less than {_short(bound)}", lambda v: ew.lt(v, bound))
    constraint.upper_bound = bound
    return constraint


_TOLERANCE = 1e-6
"""Allowed difference of a sum of probabilities from 1; single precision needs it."""


def _is_simplex(value: Tensor) -> Any:
    return ew.logical_and(value.ge(0).all(-1), value.sum(-1).sub(1).abs().lt(_TOLERANCE))


def _is_one_hot(value: Tensor) -> Any:
    bits = ew.logical_or(ew.eq(value, 0), ew.eq(value, 1)).all(-1)
    return ew.logical_and(bits, ew.eq(value.sum(-1), 1))


def _is_lower(value: Tensor) -> Any:
    return value.tril().eq(value).flatten(-2).all(-1)


def _is_lower_cholesky(value: Tensor) -> Any:
    return ew.logical_and(_is_lower(value), value.diagonal(dim1=-2, dim2=-1).gt(0).all(-1))


def _is_symmetric(value: Tensor) -> Any:
    return value.isclose(value.transpose(-2, -1), atol=_TOLERANCE).flatten(-2).all(-1)


def _is_positive_definite(value: Tensor) -> Any:
    return ew.logical_and(_is_symmetric(value), ew.eq(cholesky_ex(value).info, 0))


def multinomial(upper_bound: Any) -> Constraint:
    """Return the constraint of counts with a sum of at most ``upper_bound``."""

    def check(value: Tensor) -> Any:
        return ew.logical_and(value.ge(0).all(-1), ew.le(value.sum(-1), upper_bound))

    return _Condition("counts of a total", check, event_dim=1, is_discrete=True)


dependent = _Dependent()
independent = _Independent
boolean = _Condition("0 or 1", lambda v: ew.logical_or(ew.eq(v, 0), ew.eq(v, 1)), is_discrete=True)
real = _Condition("a number, not NaN", lambda v: ew.eq(v, v))
positive = _above(0)
nonnegative = _at_least(0)
unit_interval = _Interval(0, 1)
nonnegative_integer = _IntegerInterval(0, math.inf)
positive_integer = _IntegerInterval(1, math.inf)
real_vector = _Independent(real, 1)
simplex = _Condition("at least 0 with a sum of 1", _is_simplex, event_dim=1)
one_hot = _Condition("one 1 among zeros", _is_one_hot, event_dim=1, is_discrete=True)
lower_triangular = _Condition("a lower triangle", _is_lower, event_dim=2)
lower_cholesky = _Condition("a lower triangle with a positive diagonal", _is_lower_cholesky, event_dim=2)
symmetric = _Condition("a symmetric matrix", _is_symmetric, event_dim=2)
positive_definite = _Condition("symmetric and positive definite", _is_positive_definite, event_dim=2)
interval, integer_interval = _Interval, _IntegerInterval
greater_than, greater_than_eq, less_than = _above, _at_least, _below


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Return the constraint of numbers from ``lower_bound``, included, to ``upper_bound``, excluded."""
    return _Interval(lower_bound, upper_bound, open_above=True)


def is_dependent(constraint: Any) -> bool:
    """Check whether a constraint is known only together with parameters."""
    return isinstance(constraint, _Dependent)


__all__ = ["Constraint", "boolean", "dependent", "greater_than", "greater_than_eq", "half_open_interval", "independent"]
__all__ += ["integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular"]
__all__ += ["multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite"]
__all__ += ["positive_integer", "real", "real_vector", "simplex", "symmetric", "unit_interval"]
