"""Affine maps against numpy, and their errors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc.nn.functional as F
from graphc.errors import ShapeError
from tests.nn.compare import floats, tensor


def test_linear_is_matmul_with_the_transpose():
    x, w, b = floats(2, 3), floats(4, 3, seed=1), floats(4, seed=2)
    np.testing.assert_allclose(F.linear(tensor(x), tensor(w), tensor(b)).numpy(), x @ w.T + b, rtol=1e-12)


def test_linear_names_both_shapes():
    with pytest.raises(ShapeError, match=r"input \[2, 3\] and weight \[4, 5\]") as caught:
        F.linear(tensor(floats(2, 3)), tensor(floats(4, 5)))
    assert "5 features" in str(caught.value)


def test_bilinear_checks_shapes():
    with pytest.raises(ShapeError, match="do not fit weight"):
        F.bilinear(tensor(floats(2, 3)), tensor(floats(2, 4)), tensor(floats(5, 3, 3)))
