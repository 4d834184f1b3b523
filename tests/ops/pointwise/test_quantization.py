"""Quantization with a known scale: the product is the quotient, rounded twice, for every number near a tie."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import DType, float32, int8, uint8
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.pointwise.quantization import MOST_CODES, quantize_linear, reciprocal
from tests.native import TARGETS, run_native, target_or_skip

RANDOM = np.random.default_rng(0)
SCALES = [float(np.float32(10**x)) for x in RANDOM.uniform(-6, 3, 12)]


def near_ties(scale: float, low: int, high: int) -> np.ndarray:
    """Return the f32 numbers within five units of one whose quotient ends in one half, and special ones."""
    ties = ((np.arange(low - 2, high + 2) + 0.5) * scale).astype(np.float32)
    near = (ties.view(np.int32)[:, None] + np.arange(-5, 6, dtype=np.int32)).view(np.float32).ravel()
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-42], np.float32)
    return np.concatenate([near, special])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("zero", [0, 128, 255])
def test_codes_are_those_of_the_quotient_on_all_targets(zero: int, target: str):
    """NaN has the lowest code."""
    for scale in SCALES[:4]:
        x = near_ties(scale, -zero, 255 - zero)
        graph = Graph("g")
        value = graph.add_input(TensorType(float32, x.shape), "x")
        with use(GraphDispatcher(graph)):
            codes = quantize_linear(value, scale=scale, low=-zero, high=255 - zero, zero=zero, dtype=uint8)
        graph.set_outputs([codes])
        with np.errstate(all="ignore"):
            exact = np.clip(np.nan_to_num(np.rint(x / np.float32(scale)), nan=-np.inf), -zero, 255 - zero) + zero
        (result,) = run_native(graph, [x], target_or_skip(target))[0]
        assert np.array_equal(result, exact.astype(np.uint8))


@pytest.mark.parametrize("scale", SCALES)
def test_common_scales_have_a_reciprocal(scale: float):
    for low, high in ((0, 255), (-128, 127), (-3, 252)):
        assert reciprocal(scale, low, high) is not None


def test_others_are_divided():
    assert reciprocal(1e-38, 0, 255) is None
    assert reciprocal(0.1, 0, MOST_CODES + 1) is None


def test_codes_of_a_signed_type_wrap_nothing():
    x = np.array([-1e9, -64.1, 0.0, 63.4, 1e9], np.float32)
    attrs = {"scale": 0.5, "low": -128.0, "high": 127.0, "zero": 0.0, "dtype": int8}
    assert quantize_linear.op.evaluate([x], quantize_linear.op.normalize(attrs))[0].tolist() == [
        -128,
        -128,
        0,
        127,
        127,
    ]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [int8, float32])
def test_infinities_have_the_last_codes_where_the_scale_times_a_code_overflows(dtype: DType, target: str):
    x = np.array([-np.inf, -3e38, -1e38, np.nan, 0.0, 3e38, np.inf], np.float32)
    graph = Graph("g")
    value = graph.add_input(TensorType(float32, x.shape), "x")
    with use(GraphDispatcher(graph)):
        codes = quantize_linear(value, scale=2.0**126, low=-128, high=127, zero=0, dtype=dtype)
    graph.set_outputs([codes])
    (result,) = run_native(graph, [x], target_or_skip(target))[0]
    assert result.tolist() == [-128, -4, -1, -128, 0, 4, 127]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("high", [127, 1 << 22])
def test_integers_have_no_negative_zero(high: int, target: str):
    """Otherwise 1 / x would have another sign than the same number from its byte."""
    x = np.array([-0.4, -0.0, 0.0, 0.4, -0.5, 1.5, 2.5], np.float32)
    graph = Graph("g")
    value = graph.add_input(TensorType(float32, x.shape), "x")
    with use(GraphDispatcher(graph)):
        codes = quantize_linear(value, scale=1.0, low=-128, high=high, zero=0, dtype=float32)
    graph.set_outputs([codes])
    (result,) = run_native(graph, [x], target_or_skip(target))[0]
    exact = quantize_linear.op.evaluate([x], codes.node.attrs)[0]
    for numbers in (result, exact):
        assert numbers.tolist() == [0, 0, 0, 0, 0, 2, 2] and not np.signbit(numbers).any()
