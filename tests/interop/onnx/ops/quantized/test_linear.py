"""Operators of ONNX Runtime on steps, which it computes alike, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.interop.onnx.single import MICROSOFT, check

pytest.importorskip("onnx")

RANDOM = np.random.default_rng(0)
ZERO = np.array(120, np.uint8)


def steps(*shape: int) -> np.ndarray:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def number(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def runs(name: str, *inputs: Any, **attributes: Any) -> None:
    known = [i for i, x in enumerate(inputs) if x.ndim == 0]
    check(name, *inputs, domain=MICROSOFT, runtime=True, results=[np.uint8], known=known, **attributes)


@pytest.mark.parametrize("name", ["QLinearAdd", "QLinearMul"])
def test_two_tensors(name: str):
    a, b = steps(3, 8), steps(8)
    runs(name, a, number(0.03125), ZERO, b, number(0.0625), ZERO, number(0.25), ZERO)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.1}), ("QLinearSoftmax", {"opset": 13})],
)
def test_one_tensor(name: str, attributes: dict[str, Any]):
    runs(name, steps(3, 8), number(0.03125), ZERO, number(0.00390625), np.array(0, np.uint8), **attributes)


def test_means_of_images():
    x = steps(1, 3, 5, 5)
    runs("QLinearGlobalAveragePool", x, number(0.5), ZERO, number(0.25), ZERO, channels_last=0)


@pytest.mark.parametrize(
    "attributes",
    [
        *({}, {"pads": [1, 1, 1, 1]}, {"pads": [0, 0, 1, 1], "strides": [2, 2]}),
        *({"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER", "count_include_pad": 1}),
    ],
)
def test_means_of_windows(attributes: dict[str, Any]):
    x = steps(1, 3, 6, 6)
    runs("QLinearAveragePool", x, number(0.5), ZERO, number(0.5), ZERO, kernel_shape=[2, 2], **attributes)


def test_tensors_of_other_scales_are_joined():
    given = (number(0.5), ZERO, steps(2, 3), number(0.25), ZERO, steps(2, 4), number(0.5), np.array(3, np.uint8))
    runs("QLinearConcat", *given, axis=1)


def test_elements_of_either_scale_are_chosen():
    condition = np.array([True, False, True])
    given = (steps(3), number(0.5), ZERO, steps(3), number(0.25), ZERO, number(0.5), ZERO)
    runs("QLinearWhere", condition, *given)
