"""Transforms to what constraints allow."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
import graphc.distributions as D
from graphc.distributions import constraints
from graphc.errors import UnsupportedError
from tests.distributions.cases import some


@pytest.mark.parametrize(
    "constraint",
    [
        constraints.real,
        constraints.positive,
        constraints.nonnegative,
        constraints.greater_than(2.0),
        constraints.less_than(-1.0),
        constraints.unit_interval,
        constraints.interval(-3.0, 5.0),
        constraints.half_open_interval(gc.tensor(1.0), gc.tensor(2.0)),
        constraints.simplex,
        constraints.lower_cholesky,
        constraints.real_vector,
        constraints.independent(constraints.positive, 1),
    ],
)
@pytest.mark.parametrize("find", [D.biject_to, D.transform_to])
def test_values_satisfy_the_constraint(constraint, find):
    t = find(constraint)
    x = gc.tensor(some(4, 4, low=-3))
    y = t(x)
    assert constraint.check(y).all().item() and t.codomain.event_dim == constraint.event_dim
    if t.bijective:
        np.testing.assert_allclose(t(t.inv(y)).numpy(), y.numpy(), 1e-8, 1e-12)


def test_what_has_no_transform():
    for constraint in (constraints.boolean, constraints.dependent, constraints.positive_definite):
        for find in (D.biject_to, D.transform_to):
            with pytest.raises(UnsupportedError, match="no transform"):
                find(constraint)
