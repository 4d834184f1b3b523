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


def test_vectors_of_zeros_have_a_bounded_gradient():
    """As in PyTorch 1e-12 is added to both squared lengths."""
    zero = graphc.zeros(1, 2, dtype=graphc.float64, requires_grad=True)
    F.cosine_embedding_loss(zero, graphc.tensor([[3.0, 4.0]], dtype=graphc.float64), graphc.ones(1)).backward()
    assert zero.grad.tolist() == [[pytest.approx(-0.6e6), pytest.approx(-0.8e6)]]
