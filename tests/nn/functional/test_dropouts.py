"""Dropout: probabilities, scale, whole channels, gradients, repeatable draws."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_share_and_scale(p: float):
    graphc.manual_seed(0)
    y = F.dropout(graphc.ones(200, 200), p).numpy()
    assert set(np.unique(y)) <= {np.float32(0), np.float32(1 / (1 - p))}
    assert abs((y == 0).mean() - p) < 0.01


def test_nothing_outside_of_training():
    x = graphc.ones(3)
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 0.0) is x


def test_everything_dropped():
    x = graphc.ones(4).requires_grad_()
    y = F.dropout(x, 1.0)
    y.sum().backward()
    np.testing.assert_array_equal(y.detach().numpy(), np.zeros(4))
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros(4))


def test_gradient_has_the_mask():
    x = graphc.ones(100).requires_grad_()
    y = F.dropout(x, 0.5)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())


def test_draws_repeat_with_the_seed():
    graphc.manual_seed(3)
    first, second = F.dropout(graphc.ones(50)).numpy(), F.dropout(graphc.ones(50)).numpy()
    graphc.manual_seed(3)
    np.testing.assert_array_equal(F.dropout(graphc.ones(50)).numpy(), first)
    assert (first != second).any()


@pytest.mark.parametrize(("name", "spatial"), [("dropout1d", (5,)), ("dropout2d", (4, 5))])
@pytest.mark.parametrize("lead", [(40,), (8, 20)])
def test_whole_channels(name: str, spatial: tuple[int, ...], lead: tuple[int, ...]):
    graphc.manual_seed(1)
    y = getattr(F, name)(graphc.ones(*lead, *spatial)).numpy()
    flat = y.reshape(*lead, -1)
    assert (flat == flat[..., :1]).all()
    assert 0 < (flat[..., 0] == 0).mean() < 1


def test_in_place():
    x = graphc.ones(100)
    assert F.dropout(x, 0.5, inplace=True) is x
    assert (x.numpy() == 0).any()


def test_errors():
    with pytest.raises(AttributeValueError, match=r"between 0 and 1, got 1.5"):
        F.dropout(graphc.ones(2), 1.5)
    with pytest.raises(ShapeError, match="dropout2d: the input"):
        F.dropout2d(graphc.ones(2, 3))
