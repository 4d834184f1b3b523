"""Bits as another type, in eager mode and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import DTypeError


def test_a_view_as_another_type_has_the_same_bits():
    x = np.array([1.0, -0.0, np.inf], np.float32)
    np.testing.assert_array_equal(graphc.tensor(x).view(graphc.int32).numpy(), x.view(np.int32))


def test_compiled_code_sees_the_same_bits():
    x = np.array([[1.0, -2.5, 0.0]], np.float32)
    exponent = graphc.compile(lambda x: ((x.view(graphc.int32) >> 23) & 255) - 127)
    np.testing.assert_array_equal(exponent(graphc.tensor(x)).numpy(), [[0, 1, -127]])


def test_types_of_another_width_are_refused():
    with pytest.raises(DTypeError, match="cannot read the bits of f32 as f64"):
        graphc.ones(2).view(graphc.float64)
