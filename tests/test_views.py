"""Writes through views reach the base, its gradient history, and its other views."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import GradientError
from graphc.ir.interpret import evaluate

VIEWS = [
    lambda x: x.reshape(-1),
    lambda x: x.t(),
    lambda x: x[1],
    lambda x: x[::2, 1:],
    lambda x: x.t()[1:].unsqueeze(0),
    lambda x: x.detach(),
    lambda x: x.reshape(2, 2, 3)[:, 1],
    lambda x: x.expand(4, 3),
]
ARRAY = np.arange(12.0, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("view", VIEWS)
def test_eager_recorded_and_traced_agree(view):
    def function(x):
        y = x * 1
        other = y[0]
        part = view(y)
        with graphc.no_grad():
            part.mul_(2)
        if not view(graphc.ones(4, 3, requires_grad=True)).is_leaf:
            view(y).add_(view(y).detach().clone() * x.sum())
        return y, other, part

    expected = [t.numpy() for t in function(graphc.from_numpy(ARRAY.copy()))]
    recorded = function(graphc.from_numpy(ARRAY.copy()).requires_grad_())
    traced = evaluate(graphc.trace(function, graphc.from_numpy(ARRAY)), [ARRAY])
    for a, b, c in zip(expected, recorded, traced, strict=True):
        np.testing.assert_array_equal(a, b.detach().numpy())
        np.testing.assert_array_equal(a, c)


def test_traced_copies_are_no_views():
    def function(x):
        y = x * 1
        flat = y.t().reshape(-1)  # Needs a copy, in eager mode and so under trace.
        flat.zero_()
        own = y.clone()
        own.zero_()
        assert flat._base is not y and not y.t().is_contiguous() and y.t().stride() == (1, 3)
        return y, flat

    y, flat = evaluate(graphc.trace(function, graphc.from_numpy(ARRAY)), [ARRAY])
    np.testing.assert_array_equal(y, ARRAY)
    assert not flat.any()


def test_views_without_gradient_take_no_history():
    w = graphc.ones(3, requires_grad=True)
    y = graphc.zeros(2, 3)
    with pytest.raises(GradientError, match=r"made by detach\(\) or under no_grad\(\)"):
        y.detach()[0].copy_(w)
    with graphc.no_grad():
        row = y[0]
    with pytest.raises(GradientError, match="no_grad"):
        row.copy_(w)


def test_gradient_of_a_replaced_part():
    x = graphc.ones(2, 3, requires_grad=True)
    w = graphc.full((3,), 5.0, requires_grad=True)
    y = x * 2
    y[1] = w
    (y * y).sum().backward()
    assert x.grad.tolist() == [[8, 8, 8], [0, 0, 0]]
    assert w.grad.tolist() == [10, 10, 10]
