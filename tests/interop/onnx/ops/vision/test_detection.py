"""Operators of object detection."""

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.interop.onnx.alike import check, refused

TEXT = """(float[1, 4, 4] b, float[1, 2, 4] s) => (int64 y) {
    m = Constant<value_int=2>() i = Constant<value_float=0.5>() l = Constant<value_float=0.2>()
    y = NonMaxSuppression(b, s, m, i, l)
}"""
BOXES = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [5, 5, 6, 6], [1, 1, 0, 0]]], np.float32)
SCORES = np.array([[[0.9, 0.8, 0.7, 0.1], [0.1, 0.3, 0.1, 0.95]]], np.float32)


def test_boxes_that_overlap_better_ones_are_left_out() -> None:
    check(TEXT, BOXES, SCORES, expected=[[[0, 0, 0], [0, 0, 2], [0, 1, 3]]], eager=True)


def test_the_number_of_boxes_cannot_be_known_in_a_trace() -> None:
    assert "NonMaxSuppression" in refused(TEXT, BOXES, SCORES)


def test_without_a_number_of_boxes_there_is_none() -> None:
    text = "(float[1, 4, 4] b, float[1, 2, 4] s) => (int64 y) { y = NonMaxSuppression(b, s) }"
    check(text, BOXES, SCORES, expected=[np.zeros((0, 3))], eager=True)
