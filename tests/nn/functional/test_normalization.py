"""Normalisation: running statistics, whole numbers, errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, ShapeError
from tests.nn.compare import floats, tensor


def test_batch_norm_in_training_normalises():
    x = tensor(floats(16, 3, 4))
    y = F.batch_norm(x, None, None, training=True).numpy()
    np.testing.assert_allclose(y.mean((0, 2)), 0, atol=1e-10)
    np.testing.assert_allclose(y.var((0, 2)), 1, rtol=1e-4)


def test_running_statistics_have_no_gradient():
    mean, var = graphc.zeros(3), graphc.ones(3)
    x = graphc.randn(4, 3).requires_grad_()
    F.batch_norm(x, mean, var, training=True).sum().backward()
    assert mean.grad_fn is None and not mean.requires_grad and not var.requires_grad


def test_batch_norm_errors():
    x = graphc.zeros(1, 3)
    with pytest.raises(AttributeValueError, match="one value per channel"):
        F.batch_norm(x, None, None, training=True)
    with pytest.raises(AttributeValueError, match="needs running_mean and running_var"):
        F.batch_norm(x, None, None)
    with pytest.raises(ShapeError, match="no channel dimension"):
        F.batch_norm(graphc.zeros(3), None, None, training=True)


def test_layer_norm_errors():
    with pytest.raises(ShapeError, match=r"does not end with \[4\]"):
        F.layer_norm(graphc.zeros(2, 3), (4,))
    with pytest.raises(ShapeError, match=r"shape \[2\], expected \[3\]"):
        F.layer_norm(graphc.zeros(2, 3), (3,), graphc.zeros(2))


def test_group_norm_needs_whole_groups():
    with pytest.raises(ShapeError, match="4 groups do not divide"):
        F.group_norm(graphc.zeros(2, 6, 3), 4)


def test_instance_norm_errors():
    with pytest.raises(ShapeError, match="no spatial dimensions"):
        F.instance_norm(graphc.zeros(2, 3))
    with pytest.raises(AttributeValueError, match="one value per channel"):
        F.instance_norm(graphc.zeros(2, 3, 1))


def test_an_input_of_no_channels_is_its_own_result():
    assert F.batch_norm(graphc.ones(0), graphc.ones(0), graphc.ones(0)).shape == (0,)


def test_local_response_norm_of_whole_numbers_has_whole_means():
    x = graphc.tensor([[[3], [4], [5]]])
    means = np.array([9 // 2, (9 + 16) // 2, (16 + 25) // 2])
    wanted = np.array([3, 4, 5]) / (1 + 0.5 * means) ** 0.75
    np.testing.assert_allclose(F.local_response_norm(x, 2, alpha=0.5).numpy()[0, :, 0], wanted, rtol=1e-6)
    assert F.local_response_norm(x[:0], 2).dtype is graphc.int64
