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

__all__ = ["biject_to", "transform_to"]


def biject_to(constraint: Constraint) -> Transform:
    """Return a bijective transform from real numbers to the values of a constraint, with a Jacobian determinant.

    For samplers and approximations over unconstrained values. Raises UnsupportedError when no such transform exists.
    """
    transform = _transform(constraint, StickBreakingTransform())
    if transform is None:
        raise UnsupportedError(f"biject_to: no transform gives values that are {constraint!r}")
    return transform


def transform_to(constraint: Constraint) -> Transform:
    """Return a transform from real numbers to the values of a constraint; it need not be bijective.

    For optimizers. Raises UnsupportedError when no such transform exists.
    """
    transform = _transform(constraint, SoftmaxTransform())
    if transform is None:
        raise UnsupportedError(f"transform_to: no transform gives values that are {constraint!r}")
    return transform


def _transform(constraint: Any, to_simplex: Transform) -> Transform | None:
    if constraint.is_discrete:
        return None
    if isinstance(constraint, constraints.independent):
        inner = _transform(constraint.base_constraint, to_simplex)
        return inner and IndependentTransform(inner, constraint.reinterpreted_batch_ndims)
    fixed = {
        constraints.real: identity_transform,
        constraints.simplex: to_simplex,
        constraints.lower_cholesky: LowerCholeskyTransform(),
    }
    return fixed.get(constraint) or _within(
        getattr(constraint, "lower_bound", None), getattr(constraint, "upper_bound", None)
    )


def _within(low: Any, high: Any) -> Transform | None:
    """Return a transform from real numbers to the numbers between two bounds, one of which may be None."""
    if low is None and high is None:
        return None
    if low is None:
        return ComposeTransform([ExpTransform(), AffineTransform(high, -1.0)])
    if high is None:
        positive = isinstance(low, (int, float)) and low == 0
        return ExpTransform() if positive else ComposeTransform([ExpTransform(), AffineTransform(low, 1.0)])
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])
