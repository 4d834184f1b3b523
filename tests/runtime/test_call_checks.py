"""Checks of arguments that all calls share."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.errors import ArgumentError, DTypeError, ShapeError
from graphc.files.manifest import BufferSpec, Manifest, TargetSpec
from graphc.runtime.call_checks import Checks

X = BufferSpec("x", "f32", (2, 3), "input")
W = BufferSpec("w", "f32", (3,), "param", "layer.weight", written=True)
V = BufferSpec("v", "f32", (3,), "param", "layer.bias")
MANIFEST = Manifest("net", "entry", (X, W, V), 0, 0, TargetSpec("x86_64", "", ()), "1")
CHECKS = Checks(MANIFEST)


def test_what_fits_is_taken():
    CHECKS.check(X, np.zeros((2, 3), np.float32))
    assert CHECKS.inputs == (X,) and CHECKS.bound == (W, V) and CHECKS.outputs == ()


@pytest.mark.parametrize(
    "value,error,text",
    [
        ([1, 2], ArgumentError, "is a list, net takes a NumPy array"),
        (np.zeros((3, 2), np.float32), ShapeError, r"has shape \[3, 2\], net takes \[2, 3\]"),
        (np.zeros((2, 3)), DTypeError, "has element type float64, net takes float32"),
    ],
)
def test_what_does_not_fit_is_told(value: object, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        CHECKS.check(X, value)


def test_counts():
    assert "takes 2 bound arrays (layer.weight, layer.bias), got 1" in str(CHECKS.wrong_count("bound", (W, V), 1))


def test_memory_that_is_written_is_shared_with_nothing():
    CHECKS.check_spans([(0, 12, W), (12, 24, V)])
    CHECKS.check_spans([(0, 12, V), (0, 12, V)])
    with pytest.raises(ArgumentError, match="share memory, and net writes to it"):
        CHECKS.check_spans([(0, 12, W), (8, 20, V)])
