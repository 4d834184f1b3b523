"""Values of a graph while it runs: known arrays, sizes, and tensors."""

import numpy as np
import pytest

import graphc as gc
from graphc.interop.onnx.elements import FLOAT, FLOAT16, INT64, STRING, UINT8
from graphc.interop.onnx.values import Value, array_of_sizes, settled


def test_what_rules_give_becomes_a_value_with_an_element_type() -> None:
    assert Value.of(gc.ones(2)).element is FLOAT
    assert Value.of(np.int64(3)).element is INT64
    assert Value.of(np.array(["a"], object)).element is STRING
    assert Value.of(np.zeros(2, np.uint8), UINT8).element is UINT8


def test_the_tensor_of_a_known_value_is_made_when_it_is_asked_for() -> None:
    value = Value(FLOAT16, None, np.array([1.5, 2], np.float16))
    assert value.is_known and value.tensor.dtype is gc.float32 and value.tensor is value.tensor


def test_the_array_of_a_tensor_is_of_the_element_type() -> None:
    assert Value(FLOAT16, gc.tensor([1.0])).array.dtype == np.float16


def test_numbers_are_those_of_python() -> None:
    assert Value.of(np.int64(3)).number == 3
    assert Value.of(np.array([1, 2])).numbers == (1, 2)
    assert Value.of(np.array([[1, 2]])).numbers.shape == (1, 2)


def test_sizes_of_named_dimensions_stay_sizes() -> None:
    n = gc.Dim("n")
    assert array_of_sizes([2, 3]).dtype == np.int64
    sizes = array_of_sizes([n, 3])
    assert sizes.dtype == object and sizes[0] is n
    assert settled(sizes - np.array([n, 1], object)).tolist() == [0, 2]
    assert Value.of(sizes).element is INT64


def test_a_known_value_is_no_part_of_the_trace_that_asked_for_it_first() -> None:
    value = Value(FLOAT, None, np.ones(2, np.float32))
    first = gc.compile(lambda x: x + value.tensor)(gc.zeros(2))
    second = gc.compile(lambda x: x * 2 + value.tensor)(gc.zeros(2))
    assert first.tolist() == second.tolist() == value.tensor.tolist() == [1, 1]


def test_values_of_calls_are_open_in_a_trace_alone() -> None:
    def look(x: gc.Tensor) -> gc.Tensor:
        values = (Value.of(x), Value.of(gc.ones(2)), Value.of(np.ones(2)))
        return gc.stack([x * int(value.is_open) for value in values])

    assert gc.compile(look)(gc.ones(1)).tolist() == [[1], [0], [0]]
    assert not Value.of(gc.ones(2)).is_open


def test_the_array_of_an_open_value_is_refused() -> None:
    def read(x: gc.Tensor) -> gc.Tensor:
        return x * Value.of(x).number

    with pytest.raises(gc.errors.ValueNeededError):
        gc.compile(read)(gc.ones(1))
