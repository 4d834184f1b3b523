"""Types of results by the rules of the array API standard."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.array_api.promotion import KINDS, common_type, kinds_of, promoted
from graphc.base.errors import ArgumentError, DTypeError


@pytest.mark.parametrize(
    ("operands", "wanted"),
    [
        ((gc.int8, gc.int32), gc.int32),
        ((gc.uint8, gc.int32), gc.int32),
        ((gc.uint8, gc.int64), gc.int64),
        ((gc.float32, gc.float64), gc.float64),
        ((gc.bool_, gc.bool_), gc.bool_),
        ((gc.int8, 1), gc.int8),
        ((gc.float32, 1.5), gc.float32),
        ((gc.float64, 1), gc.float64),
        ((1, 2.0), gc.float32),
        ((gc.int8, 1.5), gc.float32),
    ],
)
def test_the_common_type_of_types_and_numbers(operands, wanted):
    assert common_type("test", *operands) is wanted
    assert common_type("test", *reversed(operands)) is wanted


def test_arrays_without_dimensions_count_as_others_do():
    scalar, vector = gc.tensor(1.0, dtype=gc.float64), gc.tensor([1.0], dtype=gc.float32)
    assert (scalar + vector).dtype is gc.float32
    assert common_type("test", scalar, vector) is gc.float64
    assert [t.dtype for t in promoted("test", scalar, vector, 2)] == [gc.float64] * 3


def test_a_number_of_a_higher_kind_takes_the_default_type():
    gc.set_default_dtype(gc.float64)
    try:
        assert common_type("test", gc.int32, 1.5) is gc.float64
        assert common_type("test", gc.float32, 1.5) is gc.float32
    finally:
        gc.set_default_dtype(gc.float32)


def test_what_is_no_tensor_is_refused_by_name():
    with pytest.raises(ArgumentError, match="add: str is no tensor"):
        common_type("add", gc.int8, "1")
    with pytest.raises(ArgumentError, match=r"add: numpy\.ndarray is no tensor"):
        common_type("add", np.zeros(1), 1)


def test_kinds_are_letters_and_types():
    assert kinds_of("integral") == ({"i", "u"}, set())
    assert kinds_of(("bool", gc.int8)) == ({"b"}, {gc.int8})
    assert all(kinds_of(name)[0] == set(letters) for name, letters in KINDS.items())
    with pytest.raises(DTypeError, match="unknown kind 'float'"):
        kinds_of("float")
