"""Tensors made of numbers that each call of a compiled function gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc

MAKE = {
    "tensor": lambda t: gc.tensor(t),
    "tensor of f64": lambda t: gc.tensor(t, dtype=gc.float64),
    "tensor of i64": lambda t: gc.tensor(t, dtype=gc.int64),
    "list": lambda t: gc.tensor([t, 2 * t, 1]),
    "list of f64": lambda t: gc.tensor([t, 0.1], dtype=gc.float64),
    "nested list": lambda t: gc.tensor([[t], [1]]),
    "list with a bool": lambda t: gc.tensor([t, True]),
    "full": lambda t: gc.full((2, 3), t),
    "full of i32": lambda t: gc.full((2,), t, dtype=gc.int32),
    "full of u8": lambda t: gc.full((2,), t, dtype=gc.uint8),
    "full of bool": lambda t: gc.full((2,), t, dtype=gc.bool),
    "full without dimensions": lambda t: gc.full((), t),
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE.keys())
@pytest.mark.parametrize("numbers", [(0.1, 2.7, 16777217.0, 0.0), (1, 200, 16777217, 0)], ids=["float", "int"])
def test_a_tensor_of_a_number_has_type_and_bits_of_eager_mode(make: Any, numbers: Any):
    def function(x: Any, t: Any) -> Any:
        return make(t).add_(0) if make(t).dtype is not gc.bool else make(t)

    fast = gc.compile(function)
    for t in numbers:
        try:
            expected = function(gc.ones(1), t)
        except Exception as error:
            with pytest.raises(type(error)):
                fast(gc.ones(1), t)
            continue
        found = fast(gc.ones(1), t)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_two_tensors_of_one_number_have_memory_of_their_own():
    def function(x: Any, t: float) -> Any:
        a, b = gc.tensor(t), gc.tensor(t)
        c, d = gc.full((2,), t), gc.full((2,), t)
        a.add_(1)
        c.mul_(x)
        c[0] = 3.0
        return a + 10 * b + c + 100 * d

    fast = gc.compile(function)
    for t in (0.5, 0.25, 3.0):
        np.testing.assert_array_equal(np.asarray(fast(gc.ones(2), t)), np.asarray(function(gc.ones(2), t)))
    assert len(fast.variants) == 2
