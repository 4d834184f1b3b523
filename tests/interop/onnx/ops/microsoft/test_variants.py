"""Operators of com.microsoft that ONNX has in another form, against numpy and onnxruntime, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import graphc as gc
from graphc.base.errors import UnsupportedError
from tests.interop.onnx import single
from tests.interop.onnx.one_node import MICROSOFT, check, floats, model_of, needs_exact_bytes, needs_runtime

X = floats(3, 4)
PLAIN: dict[str, Any] = {"domain": MICROSOFT, "tolerance": 1e-4}
LIMITS = [np.array(n, np.int64) for n in (1, 9, 3)]
IDS = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]], np.int64)

CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "GatherND": ([X, np.array([[0, 1], [2, -1]], np.int64)], {}),
    "Trilu": ([X, np.array(1, np.int64)], {"upper": 0, "constants": (1,)}),
    "Pad of a matrix": ([X, np.array([[0, 1, 1, 0]], np.int64), np.array(7, np.float32)], {"constants": (1, 2)}),
    "Pad by reflection": ([X, np.array([0, 1, 0, 1], np.int64)], {"mode": "reflect", "constants": (1,)}),
    "Range": (LIMITS, {"constants": (0, 1, 2)}),
    "Range by one": (LIMITS[:2], {"constants": (0, 1)}),
    "ExpandDims": ([X, np.array(-1, np.int32)], {"constants": (1,)}),
    "Inverse": ([floats(2, 3, 3)], {}),
    "UnfoldTensor": ([floats(2, 7, 3)], {"dim": 1, "size": 3, "step": 2}),
    "CDist": ([X, floats(5, 4, seed=2)], {"metric": "euclidean", "open_sizes": {0: ("n", 4)}}),
    "CDist of squares": ([X, floats(5, 4, seed=2)], {"constants": (1,), "open_sizes": {0: ("n", 4)}}),
    "ScaledSiLU": ([X], {"alpha": 2.0}),
    "ScaledSiLU by input": ([X, np.array(0.5, np.float32)], {}),
    "ConvTransposeWithDynamicPads": (
        [floats(1, 2, 5, 5), floats(2, 3, 3, 3), np.array([1, 1, 0, 1], np.int64), floats(3)],
        {"constants": (2,), "strides": [2, 2]},
    ),
    **{f"NGramRepeatBlock of {n}": ([IDS, floats(2, 6)], {"ngram_size": n}) for n in (1, 2, 3)},
    "NhwcMaxPool": (
        [np.arange(96).reshape(2, 4, 6, 2).astype(np.uint8)],
        {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [0, 1, 0, 1]},
    ),
}


@needs_runtime
@pytest.mark.parametrize("name", CASES)
def test_operators_compute_what_onnxruntime_does(name):
    arrays, options = CASES[name]
    check(name.split()[0], *arrays, runtime=True, **options, **PLAIN)


@needs_runtime
def test_products_of_16_bits_are_exact_in_32():
    a, b = np.array([[30000, -300]], np.int16), np.array([[30001], [400]], np.int16)
    single.check("MatMulInteger16", a, b, domain=MICROSOFT, runtime=True, results=(np.int32,))


def test_distances_are_those_of_all_pairs():
    other = floats(5, 4, seed=2)
    expected = ((X[:, None] - other[None]) ** 2).sum(-1)
    check("CDist", X, other, expected=[expected], **PLAIN)
    check("CDist", X, other, metric="euclidean", expected=[np.sqrt(expected)], **PLAIN)
    with pytest.raises(UnsupportedError, match="metric 'cosine'"):
        gc.from_onnx(model_of("CDist", (X, other), metric="cosine", domain=MICROSOFT))(X, other)


def test_tokens_that_would_repeat_a_pair_are_excluded():
    scores = floats(2, 6)
    expected = scores.copy()
    expected[0, 3] = expected[1, 4] = -np.inf
    check("NGramRepeatBlock", IDS, scores, ngram_size=2, expected=[expected], **PLAIN)


def test_distinct_elements_are_in_the_order_of_their_occurrence():
    x = np.array([2, 1, 1, 3, 4, 3], np.float32)
    results = gc.from_onnx(model_of("Unique", (x,), outputs=3, domain=MICROSOFT))(x)
    assert [t.tolist() for t in results] == [[2, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]]


@needs_exact_bytes
@needs_runtime
@pytest.mark.parametrize("last", [0, 1])
def test_quantized_images_may_have_their_channels_last(last):
    rng = np.random.default_rng(1)
    image, filters = rng.integers(0, 256, (1, 3, 6, 5)).astype(np.uint8), rng.integers(-127, 128, (4, 3, 3, 3))
    scales = [np.array(n, np.float32) for n in (0.02, 0.05)]
    zero, bias = np.array(128, np.uint8), rng.integers(-500, 500, 4).astype(np.int32)
    w_scales, w_zeros = (rng.random(4) * 0.02).astype(np.float32), np.zeros(4, np.int8)
    x = np.moveaxis(image, 1, -1).copy() if last else image
    arrays = (x, scales[0], zero, filters.astype(np.int8), w_scales, w_zeros, scales[1], zero, bias)
    options = {"channels_last": last, "pads": [1, 1, 1, 1], "constants": tuple(range(1, 9)), "runtime": True}
    check("QLinearConv", *arrays, **options, **PLAIN)
