"""Operands other than matrices of floats or complex numbers are refused before any computation."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.linalg import checks


def test_matrices_pass():
    x = gc.ones(2, 3, 3)
    assert checks.need_square("f", x.cfloat()).dtype is gc.complex64
    assert checks.need_square("f", x) is x and checks.need_matrix("f", x[:, :2]).shape == (2, 2, 3)


def test_what_is_no_matrix_is_refused():
    with pytest.raises(ShapeError, match=r"f takes square matrices, got \[2, 3\]"):
        checks.need_square("f", gc.ones(2, 3))
    with pytest.raises(ShapeError, match=r"f takes matrices, got \[3\]"):
        checks.need_matrix("f", gc.ones(3))
    with pytest.raises(DTypeError, match="f takes matrices of floats or complex numbers, got i64"):
        checks.need_square("f", gc.ones(2, 2).long())
    with pytest.raises(DTypeError, match="element types differ: f32 and f64"):
        checks.need_float("f", gc.ones(2, 2), gc.ones(2, 2).double())
    with pytest.raises(ArgumentError):
        checks.need_float("f", np.eye(2))


def test_a_condition_stops_eager_and_compiled_code():
    def checked(x):
        checks.require(x > 0, "it is not positive")
        return x

    for function in (checked, gc.compile(checked)):
        assert function(gc.ones(2)).tolist() == [1, 1]
        with pytest.raises(checks.LinAlgError, match="it is not positive"):
            function(gc.zeros(2))


def test_batches_are_expanded():
    assert checks.expanded(gc.ones(2, 3), (4, 5)).shape == (4, 5, 2, 3)
    assert checks.identity(gc.ones(2, 2), 3).tolist() == np.eye(3).tolist()
