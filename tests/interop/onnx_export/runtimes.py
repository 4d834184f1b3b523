"""Runs of exported models by the reference of the package onnx, and by onnxruntime where installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.tensors.structure import flatten

onnx = pytest.importorskip("onnx", reason="exporting to ONNX needs the package onnx")
reference = pytest.importorskip("onnx.reference")
TOLERANCE = 1e-6
"""Of a result's largest element."""


def by_reference(path: Path, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs, computed in numpy by the package onnx."""
    model = onnx.load(path)
    with np.errstate(all="ignore"):
        result = reference.ReferenceEvaluator(model).run(None, _named(model, arrays))
    return [np.asarray(a) for a in result]


def by_runtime(path: Path, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of onnxruntime; skips the test without it."""
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, _named(onnx.load(path), arrays)))


def _named(model: Any, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {v.name: np.asarray(a) for v, a in zip(model.graph.input, arrays, strict=True)}


def distance(result: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest difference of two lists of results, of which equal elements count as 0, as a part of the largest
    finite element."""
    largest = 0.0
    for a, b in zip(result, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, f"{a.dtype}{a.shape} is not {b.dtype}{b.shape}"
        if not b.size:
            continue
        with np.errstate(all="ignore"):
            same = (a == b) | ((a != a) & (b != b))
            apart = np.where(same, 0, np.abs(a.astype(np.float64) - b.astype(np.float64)))
            finite = np.abs(b[np.isfinite(b)].astype(np.float64))
        largest = max(largest, float(np.nan_to_num(apart, nan=np.inf).max()) / (finite.max(initial=0) or 1.0))
    return largest


def operators(path: Path) -> list[str]:
    """The operators of a model's graph in order."""
    return [node.op_type for node in onnx.load(path).graph.node]


def check(
    function: Any, arguments: Sequence[Any], path: Path, opset: int = 20, reference: bool = True, **options: Any
) -> list[str]:
    """Export a function or module, compare the runtimes' results with graphc's, and return its operators.
    ``reference`` is False where the reference of onnx lacks something."""
    graphc.export(function, *arguments, path=path, opset=opset, **options)
    arrays = [t.numpy() for t in flatten(tuple(arguments))[0]]
    with graphc.no_grad():
        expected = [t.numpy() for t in flatten(function(*arguments))[0]]
    if reference:
        assert distance(by_reference(path, arrays), expected) < TOLERANCE
    if importlib.util.find_spec("onnxruntime"):
        assert distance(by_runtime(path, arrays), expected) < TOLERANCE
    return operators(path)
