"""Losses of classification: types of targets, large numbers, old flags, errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.errors import AttributeValueError, DTypeError, IndexRangeError, ShapeError
from tests.nn.compare import floats, tensor


def test_small_integer_types_are_class_numbers():
    x = tensor(floats(3, 4))
    expected = F.cross_entropy(x, graphc.tensor([0, 3, 1])).item()
    for dtype in ("uint8", "int8", "int32"):
        assert F.cross_entropy(x, tensor(np.array([0, 3, 1], dtype))).item() == expected


def test_cross_entropy_of_large_logits_is_finite():
    x = graphc.tensor([[1000.0, -1000.0]]).requires_grad_()
    loss = F.cross_entropy(x, graphc.tensor([1]))
    loss.backward()
    assert loss.item() == 2000.0
    np.testing.assert_array_equal(x.grad.numpy(), [[1.0, -1.0]])


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        (np.array([0, 5, 1]), IndexRangeError, r"target 5 \(at \[1\]\) is out of range[\s\S]*0 to 4, -100"),
        (np.array([0, -1, 1]), IndexRangeError, r"target -1 \(at \[1\]\) is out of range"),
        (np.array([[0], [1], [2]]), ShapeError, r"targets have shape \[3, 1\], the input \[3, 5\] needs \[3\]"),
        (np.zeros(3), ShapeError, "probabilities"),
        (np.zeros(3, bool), DTypeError, "class indices must be integers, got bool"),
    ],
)
def test_wrong_targets(target: np.ndarray, error: type, message: str):
    with pytest.raises(error, match=message):
        F.cross_entropy(tensor(floats(3, 5)), tensor(target))


def test_wrong_options():
    x, y = tensor(floats(3, 5)), graphc.tensor([0, 1, 2])
    with pytest.raises(AttributeValueError, match="reduction 'average' is not known"):
        F.cross_entropy(x, y, reduction="average")
    with pytest.raises(AttributeValueError, match="label_smoothing 2"):
        F.cross_entropy(x, y, label_smoothing=2)
    with pytest.raises(ShapeError, match=r"weights have shape \[2\], expected \[5\]"):
        F.cross_entropy(x, y, weight=graphc.ones(2))
    with pytest.raises(ShapeError, match="no dimension for classes"):
        F.nll_loss(graphc.tensor(1.0), graphc.tensor(0))


@pytest.mark.parametrize(
    ("flags", "reduction"),
    [
        ({"size_average": True}, "mean"),
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"reduce": True, "size_average": False}, "sum"),
    ],
)
def test_flags_of_old_programs(flags: dict, reduction: str):
    x, y = tensor(floats(3, 5)), graphc.tensor([0, 1, 2])
    with pytest.warns(UserWarning, match="deprecated"):
        old = F.cross_entropy(x, y, **flags)
    np.testing.assert_array_equal(old.numpy(), F.cross_entropy(x, y, reduction=reduction).numpy())


def test_binary_cross_entropy_is_finite_at_the_ends():
    loss = F.binary_cross_entropy(graphc.tensor([0.0, 1.0]), graphc.tensor([1.0, 1.0]), reduction="none")
    np.testing.assert_array_equal(loss.numpy(), [100.0, 0.0])


def test_gradient_of_logits_at_zero():
    x = graphc.zeros(2).requires_grad_()
    F.binary_cross_entropy_with_logits(x, graphc.tensor([0.0, 1.0]), reduction="sum").backward()
    np.testing.assert_allclose(x.grad.numpy(), [0.5, -0.5])


@pytest.mark.parametrize("name", ["binary_cross_entropy", "binary_cross_entropy_with_logits"])
def test_binary_targets_have_the_inputs_shape(name: str):
    with pytest.raises(ShapeError, match=r"the input has shape \[2, 1\], the target \[2\]"):
        getattr(F, name)(graphc.zeros(2, 1), graphc.zeros(2))


def test_kl_div_of_zero_probability_is_zero():
    loss = F.kl_div(graphc.tensor([-1.0, -2.0]), graphc.tensor([0.0, 1.0]), reduction="none")
    np.testing.assert_array_equal(loss.numpy(), [0.0, 2.0])
