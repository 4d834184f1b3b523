"""Losses of differences: shapes that differ, errors."""

from __future__ import annotations

import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError


def test_shapes_that_differ_warn():
    with pytest.warns(UserWarning, match=r"target \[2\] is broadcast against the input \[2, 1\]"):
        assert F.mse_loss(graphc.zeros(2, 1), graphc.zeros(2), reduction="none").shape == (2, 2)


def test_errors():
    x = graphc.zeros(2)
    with pytest.raises(AttributeValueError, match="beta -1 is negative"):
        F.smooth_l1_loss(x, x, beta=-1)
    with pytest.raises(AttributeValueError, match="delta 0 is not positive"):
        F.huber_loss(x, x, delta=0)
