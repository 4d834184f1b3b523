"""Definitions of com.microsoft's operators for ONNX's evaluator: ONNX Runtime computes the same codes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime", reason="the definitions are compared with ONNX Runtime")
pytest.importorskip("torch", reason="the runner of nets uses PyTorch")

from tests.interop.onnx.one_node import needs_exact_bytes
from tools.nets.quantized import exact
from tools.nets.quantized.builder import QuantizedBuilder
from tools.nets.quantized.definitions import observed
from tools.nets.quantized.evaluators import evaluated, runtime, widened

UNKNOWN = {"mean"}
"""Steps with an operator that ONNX Runtime has no CPU kernel for."""


@needs_exact_bytes
@pytest.mark.parametrize("step", dict.fromkeys(exact.STEPS), ids=lambda step: step.__name__)
def test_onnxruntime_computes_the_codes_of_a_block_or_their_neighbours(step):
    compared = 0
    for number in range(60):
        builder = QuantizedBuilder(11, number)
        builder.input()
        if builder.add(step):
            theirs = runtime(builder.model(), builder.feeds())
            if theirs is None:
                continue
            compared += 1
            for name, codes in evaluated(builder.model(), builder.feeds()).items():
                limit = 1 if theirs[name].dtype.itemsize == 1 else 0
                if codes.dtype.kind != "f":
                    assert np.abs(theirs[name].astype(int) - codes.astype(int)).max() <= limit, number
            if compared == 3:
                break
    assert (compared > 0) is (step.__name__ not in UNKNOWN)


def test_the_numbers_before_rounding_are_returned_and_constants_are_widened():
    builder = QuantizedBuilder(11, 0)
    x = builder.input()
    assert builder.add(exact.other_blocks.requantized)
    model = builder.model()
    results, numbers = observed(model, builder.feeds())
    result = builder.values[-1]
    np.testing.assert_allclose(numbers, (builder.feeds()[x.name].astype(int) - x.zero) * x.scale, rtol=1e-6)
    limits = np.iinfo(result.dtype)
    codes = np.clip(np.rint(numbers / result.scale) + result.zero, limits.min, limits.max)
    assert np.abs(codes - results[result.name]).max() <= 1
    assert {c.data_type for c in widened(model).graph.initializer} & {1, 11} == {11}
