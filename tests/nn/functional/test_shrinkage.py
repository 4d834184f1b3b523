"""Shrinkage, thresholds, random slopes and soft samples: by hand, in place, and by their distribution."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError
from tests.nn.compare import floats, tensor


def test_by_hand():
    x = graphc.tensor([-2.0, -0.5, 0.0, 0.5, 2.0])
    assert F.hardshrink(x).tolist() == [-2, 0, 0, 0, 2]
    assert F.softshrink(x, 1.0).tolist() == [-1, 0, 0, 0, 1]
    assert F.threshold(x, 0.0, 7.0).tolist() == [7, 7, 7, 0.5, 2]
    np.testing.assert_allclose(F.tanhshrink(x).numpy(), x.numpy() - np.tanh(x.numpy()), rtol=1e-6)
    with pytest.raises(AttributeValueError, match="must not be negative"):
        F.softshrink(x, -1.0)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("relu", ()),
        ("leaky_relu", (0.2,)),
        ("elu", (2.0,)),
        ("selu", ()),
        ("celu", (2.0,)),
        ("hardtanh", (-0.5, 0.25)),
        ("threshold", (0.1, -1.0)),
        ("rrelu", (0.1, 0.3)),
    ],
)
def test_in_place(name: str, arguments: tuple):
    array = floats(3, 4)
    x = tensor(array)
    found = getattr(F, f"{name}_")(x, *arguments)
    np.testing.assert_array_equal(found.numpy(), x.numpy())
    np.testing.assert_array_equal(x.numpy(), getattr(F, name)(tensor(array), *arguments).numpy())
    assert np.any(x.numpy() != array)


def test_slopes_are_drawn_in_training():
    graphc.manual_seed(0)
    x = -graphc.ones(2000).requires_grad_()
    y = F.rrelu(x, 0.2, 0.4, training=True)
    slopes = -y.detach().numpy()
    assert slopes.min() >= 0.2
    assert slopes.max() <= 0.4
    assert abs(slopes.mean() - 0.3) < 0.01
    assert F.rrelu(graphc.ones(3), training=True).tolist() == [1, 1, 1]


def test_samples_of_a_softmax():
    graphc.manual_seed(0)
    weights = np.array([0.1, 0.2, 0.7], np.float32)
    logits = graphc.tensor(np.tile(np.log(weights), (4000, 1))).requires_grad_()
    soft = F.gumbel_softmax(logits, tau=0.5)
    np.testing.assert_allclose(soft.detach().numpy().sum(1), 1, rtol=1e-5)
    hard = F.gumbel_softmax(logits, hard=True)
    rows = hard.detach().numpy()
    assert set(np.round(np.unique(rows), 5)) == {0, 1}
    np.testing.assert_allclose(rows.mean(0), weights, atol=0.03)
    (hard * graphc.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad is not None
    assert np.any(logits.grad.numpy() != 0)
