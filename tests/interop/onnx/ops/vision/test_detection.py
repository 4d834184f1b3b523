"""Operators of object detection."""

import numpy as np
import pytest

pytest.importorskip("onnx")
import graphc as gc
from tests.interop.onnx.alike import check, module_of, refused

TEXT = """(float[1, 4, 4] b, float[1, 2, 4] s) => (int64 y) {
    m = Constant<value_int=2>() i = Constant<value_float=0.5>() l = Constant<value_float=0.2>()
    y = NonMaxSuppression(b, s, m, i, l)
}"""
BOXES = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [5, 5, 6, 6], [1, 1, 0, 0]]], np.float32)
SCORES = np.array([[[0.9, 0.8, 0.7, 0.1], [0.1, 0.3, 0.1, 0.95]]], np.float32)


def test_boxes_that_overlap_better_ones_are_left_out() -> None:
    check(TEXT, BOXES, SCORES, expected=[[[0, 0, 0], [0, 0, 2], [0, 1, 3]]])


@pytest.mark.parametrize("center", [0, 1])
def test_one_path_finds_as_many_boxes_as_there_are_and_gathers_them(center: int) -> None:
    text = """(float[2, 30, 4] b, float[2, 3, 30] s) => (int64[n, 3] y, float[n, 4] z) {
        m = Constant<value_int=4>() i = Constant<value_float=0.3>() l = Constant<value_float=0.5>()
        y = NonMaxSuppression<center_point_box=CENTER>(b, s, m, i, l)
        k = Constant<value_ints=[0, 2]>() at = Gather<axis=1>(y, k) z = GatherND(b, at)
    }""".replace("CENTER", str(center))
    module = module_of(text)
    program, rng, counts = gc.compile(module), np.random.default_rng(3), set()
    for scale in (1.0, 0.2, 0.6, 1.0):
        boxes = rng.random((2, 30, 4), np.float32) + np.float32([0, 0, 1, 1])
        scores = rng.random((2, 3, 30), np.float32) * np.float32(scale)
        expected = module(boxes, scores)
        for a, b in zip(program(boxes, scores), expected, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        counts.add(len(expected[0]))
    assert len(counts) > 2
    assert 0 in counts
    assert len(program.programs) == 2


def test_the_number_of_boxes_cannot_be_known_in_a_trace() -> None:
    assert "NonMaxSuppression" in refused(TEXT, BOXES, SCORES)


def test_without_a_number_of_boxes_there_is_none() -> None:
    text = "(float[1, 4, 4] b, float[1, 2, 4] s) => (int64 y) { y = NonMaxSuppression(b, s) }"
    check(text, BOXES, SCORES, expected=[np.zeros((0, 3))])
