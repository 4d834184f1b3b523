"""Element types, the tensors that hold them, and the arrays that come and go."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.errors import UnsupportedError
from graphc.interop.onnx.elements import (
    BOOL,
    BY_TYPE,
    ELEMENTS,
    FLOAT,
    STRING,
    UINT64,
    carried,
    delivered,
    element_of,
    element_of_array,
    element_of_code,
)

onnx = pytest.importorskip("onnx")
HELD = [e for e in ELEMENTS if e.carrier is not None]


def test_names_and_numbers_are_those_of_onnx():
    assert {e.name: e.code for e in ELEMENTS}.items() <= dict(onnx.TensorProto.DataType.items()).items()


def test_schemas_name_every_type():
    named = {f"tensor({t})" for t in ("float", "double", "string", "bool", "int64", "uint8", "float16", "bfloat16")}
    assert named <= BY_TYPE.keys()
    assert BY_TYPE["tensor(float)"] is FLOAT


@pytest.mark.parametrize("element", HELD, ids=str)
def test_arrays_go_into_tensors_and_come_back(element: object):
    x = np.array([0, 1, 1, 0]).astype(element.numpy)
    held = carried(x, element)
    assert held.dtype == element.carrier.numpy
    back = delivered(held, element)
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back.astype(np.float64), x.astype(np.float64))


def test_the_largest_numbers_are_held_by_their_bits():
    x = np.array([2**64 - 1], np.uint64)
    assert carried(x, UINT64).tolist() == [-1]
    assert delivered(carried(x, UINT64), UINT64).tolist() == x.tolist()


def test_texts_are_in_no_tensor():
    assert element_of_array(np.dtype(object)) is STRING
    with pytest.raises(UnsupportedError, match="tensors of STRING"):
        carried(np.array(["a"], object), STRING)


def test_native_types_are_those_of_tensors():
    assert [e.name for e in ELEMENTS if e.is_native] == ["FLOAT", "UINT8", "INT8", "INT32", "INT64", "BOOL", "DOUBLE"]
    assert all(element_of(e.carrier) is e for e in ELEMENTS if e.is_native and e.carrier is not None)
    assert not BOOL.is_floating_point


def test_unknown_numbers_and_arrays_are_refused():
    with pytest.raises(UnsupportedError, match="element type 99"):
        element_of_code(99)
    with pytest.raises(UnsupportedError, match="arrays of datetime64"):
        element_of_array(np.dtype("datetime64[s]"))
