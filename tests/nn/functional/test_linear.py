"""Affine maps against PyTorch and numpy."""

from __future__ import annotations

import numpy as np
import pytest

import graphc.nn.functional as F
from graphc.errors import ShapeError
from tests.nn.compare import agree, floats, tensor


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 0)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_as_torch(torch, lead: tuple[int, ...], bias: bool):
    parameters = (floats(4, 5, seed=1), floats(4, seed=2)) if bias else (floats(4, 5, seed=1),)
    agree(F.linear, torch.nn.functional.linear, floats(*lead, 5), *parameters)


def test_linear_with_a_vector_weight_as_torch(torch):
    agree(F.linear, torch.nn.functional.linear, floats(2, 3, 5), floats(5, seed=1))


def test_linear_is_matmul_with_the_transpose():
    x, w, b = floats(2, 3), floats(4, 3, seed=1), floats(4, seed=2)
    np.testing.assert_allclose(F.linear(tensor(x), tensor(w), tensor(b)).numpy(), x @ w.T + b, rtol=1e-12)


def test_linear_names_both_shapes():
    with pytest.raises(ShapeError, match=r"input \[2, 3\] and weight \[4, 5\]") as caught:
        F.linear(tensor(floats(2, 3)), tensor(floats(4, 5)))
    assert "5 features" in str(caught.value)


def test_bilinear_as_torch(torch):
    arrays = (floats(2, 3, 4), floats(2, 3, 5, seed=1), floats(6, 4, 5, seed=2), floats(6, seed=3))
    agree(F.bilinear, torch.nn.functional.bilinear, *arrays)


def test_bilinear_checks_shapes():
    with pytest.raises(ShapeError, match="do not fit weight"):
        F.bilinear(tensor(floats(2, 3)), tensor(floats(2, 4)), tensor(floats(5, 3, 3)))
