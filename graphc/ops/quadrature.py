"""Sums of fixed length in f64: a column of values against a row of numbers, and the nodes of Gauss and Legendre."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from graphc.ops import dispatch, reduce
from graphc.ops.shape import reshape


def column(x: Any) -> Any:
    """``x`` with a last dimension of size 1."""
    return reshape(x, shape=(*x.shape, 1))


def row(values: np.ndarray) -> Any:
    """Numbers as an operand that broadcasts against columns."""
    return dispatch.current().constant(np.array(values, np.float64))


def sum_last(x: Any) -> Any:
    """The sum over the last dimension."""
    return reduce.sum(x, axes=(len(x.shape) - 1,), keepdims=False)


@functools.cache
def gauss_legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes between 0 and 1 and their weights, whose sum is 1: exact for polynomials of degree ``2 count - 1``."""
    places, weights = np.polynomial.legendre.leggauss(count)
    return (places + 1) / 2, weights / 2
