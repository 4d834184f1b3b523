"""Fixed-length sums in f64, values in columns against numbers in a row; nodes of Gauss-Legendre quadrature."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from graphc.ops import dispatch
from graphc.ops.movement.shape import reshape
from graphc.ops.reduction import reduce


def column(x: Any) -> Any:
    """Return ``x`` with an additional last dimension of size 1."""
    return reshape(x, shape=(*x.shape, 1))


def row(values: np.ndarray) -> Any:
    """Return numbers as an operand that broadcasts against columns."""
    return dispatch.current().constant(np.array(values, np.float64))


def sum_last(x: Any) -> Any:
    """Sum over the last dimension."""
    return reduce.sum(x, axes=(len(x.shape) - 1,), keepdims=False)


@functools.cache
def gauss_legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes between 0 and 1 and their weights, whose sum is 1: exact for polynomials of degree ``2 count -
    1``."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2
