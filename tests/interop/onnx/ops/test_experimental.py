"""Experimental operators of old files, against numpy and onnxruntime, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.interop.onnx.one_node import check, floats, needs_runtime

X = floats(2, 3, 5, 4)
CHANNELS = np.array([0.1, -0.2, 0.3], np.float32)
CASES: dict[str, tuple[dict[str, Any], np.ndarray]] = {
    "Affine": ({"alpha": 0.5, "beta": 2.0}, X * 0.5 + 2),
    "Scale": ({"scale": 3.0}, X * 3),
    "ScaledTanh": ({"alpha": 0.5, "beta": 2.0}, np.tanh(X * 2) * 0.5),
    "ParametricSoftplus": ({"alpha": 0.5, "beta": 2.0}, np.log1p(np.exp(X * 2)) * 0.5),
    "ImageScaler": ({"scale": 2.0, "bias": CHANNELS.tolist()}, X * 2 + CHANNELS.reshape(3, 1, 1)),
    "Crop": ({"border": [1, 0, 1, 2]}, X[:, :, :3, 1:3]),
    "Crop to a size": ({"border": [1, 0, 0, 0], "scale": [2, 3]}, X[:, :, :2, 1:4]),
}


@pytest.mark.parametrize("name", CASES)
def test_experimental_operators_are_those_of_old_files(name):
    attributes, expected = CASES[name]
    sizes = {0: ("n", 3, 5, 4)}
    check(name.split()[0], X, expected=[expected], opset=9, tolerance=1e-5, open_sizes=sizes, **attributes)


@needs_runtime
@pytest.mark.parametrize("name", CASES)
def test_experimental_operators_compute_what_onnxruntime_does(name):
    check(name.split()[0], X, runtime=True, opset=9, tolerance=1e-5, **CASES[name][0])


def test_a_slice_may_have_its_bounds_as_inputs():
    bounds = [np.array(n) for n in ([1, 0], [3, 2], [2, 3])]
    check("DynamicSlice", X, *bounds, constants=(1, 2, 3), expected=[X[:, :, 1:3, :2]], opset=9)
