"""Conditions of products of bytes: element types, matrices, groups, zero points that are known to be 0."""

from __future__ import annotations

import numpy as np

import graphc as gc
from graphc.interop.onnx.elements import FLOAT, INT8, UINT8
from graphc.interop.onnx.ops.quantized.byte_weights import are_bytes, point_of, takes_filters, takes_matrix
from graphc.interop.onnx.values import Value


def codes(*shape: int, dtype: str = "int8") -> Value:
    return Value(INT8 if dtype == "int8" else UINT8, gc.zeros(*shape, dtype=dtype))


def test_bytes_are_codes_of_eight_bits():
    assert are_bytes(codes(2), codes(3, dtype="uint8"))
    assert not are_bytes(codes(2), Value(FLOAT, gc.zeros(2)))


def test_matrices_are_products_of_bytes_and_stacks_of_them_are_not():
    assert takes_matrix(codes(2, 3, 4), codes(4, 5))
    assert not takes_matrix(codes(2, 3, 4), codes(2, 4, 5))


def test_images_and_filters_of_bytes_are_products_of_bytes():
    assert takes_filters(codes(1, 4, 6), codes(2, 4, 3))
    assert not takes_filters(Value(FLOAT, gc.zeros(1, 4, 6)), codes(2, 4, 3))


def test_a_zero_point_without_a_known_value_is_subtracted():
    assert point_of(None) is None
    point = point_of(Value(UINT8, gc.tensor(np.uint8(3))))
    assert point is not None and int(point) == 3
