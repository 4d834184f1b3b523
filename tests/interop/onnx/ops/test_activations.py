"""Activations and softmax of all kinds, eagerly and compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.interop.onnx.module import from_onnx
from tests.interop.onnx.single import MICROSOFT, check, model

onnx = pytest.importorskip("onnx")

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32) * 3


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("Elu", {"alpha": 2.0}),
        ("Selu", {"alpha": 2.0, "gamma": 3.0}),
        ("Selu", {}),
        ("Celu", {"alpha": 2.0}),
        ("LeakyRelu", {"alpha": 0.1}),
        ("ThresholdedRelu", {"alpha": 0.7}),
        ("HardSigmoid", {"alpha": 0.5, "beta": 0.6}),
        ("HardSwish", {}),
        ("Shrink", {"lambd": 1.5, "bias": 1.5}),
        ("Gelu", {}),
        ("Gelu", {"approximate": "tanh"}),
        ("Mish", {}),
        ("Softplus", {}),
    ],
)
def test_activations_are_those_of_onnx(name: str, attributes: dict[str, Any]):
    check(name, X, **attributes)


def test_swish_has_a_slope():
    check("Swish", X, version=24, alpha=1.5)


def test_slopes_of_negative_numbers_broadcast():
    check("PRelu", X, np.array([[0.1], [0.2], [0.3]], np.float32))


@pytest.mark.parametrize("version", [11, 13])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_before_version_13_is_over_all_dimensions_from_the_axis_on(name: str, axis: int, version: int):
    result = from_onnx(model(name, X, version=version, axis=axis))(X).numpy()
    rows = X if version == 13 else X.reshape(int(np.prod(X.shape[: axis % 3])), -1)
    at = axis if version == 13 else 1
    e = np.exp(rows - rows.max(at, keepdims=True))
    share = e / e.sum(at, keepdims=True)
    expected = {"Softmax": share, "LogSoftmax": np.log(share), "Hardmax": share == share.max(at, keepdims=True)}[name]
    np.testing.assert_allclose(result, expected.reshape(X.shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_is_compiled_for_any_number_of_rows(name: str):
    check(name, X, open_rows=True)


@pytest.mark.parametrize(
    ("name", "inputs"), [("Gelu", 1), ("BiasGelu", 2), ("FastGelu", 1), ("FastGelu", 2), ("QuickGelu", 1)]
)
def test_activations_of_onnx_runtime(name: str, inputs: int):
    given = (X, X[0, 0]) if inputs == 2 else (X,)
    check(name, *given, domain=MICROSOFT, runtime=True, rtol=1e-3, atol=1e-4)


def test_half_of_a_row_gates_the_other_half():
    y = X + X[0, 0]
    expected = y[..., :2] * np.vectorize(lambda v: v * (1 + math.erf(v / 2**0.5)) / 2)(y[..., 2:])
    result = from_onnx(model("BiasSplitGelu", X, X[0, 0], domain=MICROSOFT))(X, X[0, 0])
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_gradients_reach_slopes():
    module = from_onnx(model("PRelu", X, np.full((3, 1), 0.5, np.float32), known=(1,)))
    module(X).sum().backward()
    (slope,) = module.parameters()
    expected = np.where(X < 0, X, 0).sum((0, 2)).reshape(3, 1)
    np.testing.assert_allclose(slope.grad.numpy(), expected, rtol=1e-5)
    assert isinstance(slope, graphc.nn.Parameter)
