"""Nodes that integrate polynomials exactly, and sums over columns of values."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.ops.pointwise.quadrature import column, gauss_legendre, row, sum_last


@pytest.mark.parametrize("degree", [0, 3, 7])
def test_powers_are_integrated_exactly(degree: int):
    places, weights = gauss_legendre(4)
    x = gc.tensor([1.0, 2.0], dtype=gc.float64)
    found = sum_last((column(x) * row(places)) ** degree * row(weights))
    np.testing.assert_allclose(found.numpy(), x.numpy() ** degree / (degree + 1), 1e-14)
