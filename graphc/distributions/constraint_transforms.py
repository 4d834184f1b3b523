"""Transforms from all real numbers to the values that a constraint allows."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.distributions import constraints
from graphc.distributions.constraints import Constraint
from graphc.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    SigmoidTransform,
    SoftmaxTransform,
    StickBreakingTransform,
    Transform,
    identity_transform,
)


def biject_to(constraint: Constraint) -> Transform:
    """A bijective transform from real numbers to the values of a constraint, with a Jacobian determinant: for samplers
    and approximations that know no constraints. Raises UnsupportedError where there is none."""
    found = _transform(constraint, StickBreakingTransform())
    if found is None:
        raise UnsupportedError(f"biject_to: no transform gives values that are {constraint!r}")
    return found


def transform_to(constraint: Constraint) -> Transform:
    """A transform from real numbers to the values of a constraint that need not be bijective: for optimizers. Raises
    UnsupportedError where there is none."""
    found = _transform(constraint, SoftmaxTransform())
    if found is None:
        raise UnsupportedError(f"transform_to: no transform gives values that are {constraint!r}")
    return found


def _transform(constraint: Any, to_simplex: Transform) -> Transform | None:
    if constraint.is_discrete:
        return None
    if isinstance(constraint, constraints.independent):
        inner = _transform(constraint.base_constraint, to_simplex)
        return inner and IndependentTransform(inner, constraint.reinterpreted_batch_ndims)
    known = {
        constraints.real: identity_transform,
        constraints.simplex: to_simplex,
        constraints.lower_cholesky: LowerCholeskyTransform(),
    }
    return known.get(constraint) or _within(
        getattr(constraint, "lower_bound", None), getattr(constraint, "upper_bound", None)
    )


def _within(low: Any, high: Any) -> Transform | None:
    """From real numbers to those between two bounds, of which one may be None."""
    if low is None and high is None:
        return None
    if low is None:
        return ComposeTransform([ExpTransform(), AffineTransform(high, -1.0)])
    if high is None:
        plain = isinstance(low, (int, float)) and low == 0
        return ExpTransform() if plain else ComposeTransform([ExpTransform(), AffineTransform(low, 1.0)])
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])
