"""Products, pools and reductions: one operator each, whatever the rank and the element type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphc as gc
from graphc.nn import functional as F
from tests.interop.onnx_export.runtimes import by_reference, by_runtime, check, distance

X, LEAD = gc.randn(3, 4), gc.randn(2, 2, 3, 6, 6)
WHOLE = gc.tensor([[3, -1, 4], [1, 5, -9]])


@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (lambda x: x @ x.T, ["Transpose", "MatMul"]),
        (lambda x: (x.double() @ x.double().T).float(), ["Cast", "Cast", "Transpose", "MatMul", "Cast"]),
        (lambda x: x.sum(1), ["ReduceSum"]),
        (lambda x: x.sum(), ["ReduceSum"]),
        (lambda x: x.amax((0, 1), keepdim=True), ["ReduceMax"]),
        (lambda x: x.prod(0), ["ReduceProd"]),
        (lambda x: x.argmax(1), ["ArgMax"]),
        (lambda x: (x > 0).any(1), ["Greater", "Cast", "ReduceSum", "Cast"]),
        (lambda x: (x > 0).sum(1), ["Greater", "Cast", "ReduceSum"]),
        (lambda x: x.cumsum(1), ["CumSum"]),
        (lambda x: x.argsort(1, descending=True), ["TopK"]),
    ],
)
def test_products_and_reductions(tmp_path: Path, function: Any, operators: list[str]):
    found = check(function, (X,), tmp_path / "f.onnx")
    assert [op for op in found if op != "Identity"][: len(operators)] == operators


def test_whole_numbers(tmp_path: Path):
    check(lambda x: (x @ x.T, x.sum(0), x.amin(1), x.prod(), x.cumsum(0)), (WHOLE,), tmp_path / "f.onnx")
    check(lambda x: x.to(gc.int8) @ x.to(gc.int8).T, (WHOLE,), tmp_path / "f.onnx")


def test_dimensions_before_the_window_are_a_batch_and_channels(tmp_path: Path):
    found = check(lambda x: F.max_pool2d(x.reshape(4, 3, 6, 6)[0], 2), (LEAD,), tmp_path / "f.onnx")
    assert "MaxPool" in found


def test_windows_with_gaps_may_be_padded_by_more_than_they_have_elements(tmp_path: Path):
    graph = gc.trace(lambda x: F.max_pool2d(x, 2, 3, 1, 3, ceil_mode=True), gc.randn(1, 2, 7, 7))
    gc.export(graph, path=tmp_path / "f.onnx")
    x = gc.randn(1, 2, 7, 7)
    wanted = F.max_pool2d(x, 2, 3, 1, 3, ceil_mode=True).numpy()
    assert distance(by_reference(tmp_path / "f.onnx", [x.numpy()]), [wanted]) == 0


def test_ranks_are_the_inverse_of_an_order(tmp_path: Path):
    check(lambda x: (x.median(1).values, x.quantile(0.3, 1), x.kthvalue(2, 1).indices), (X,), tmp_path / "f.onnx")


@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"stride": 3, "padding": 1}, {"dilation": 2}, {"groups": 2}])
def test_a_transposed_convolution_written_as_an_op(tmp_path: Path, options: dict[str, Any]):
    """A graph has no calls, and so is written op by op."""
    weight = gc.randn(4, 2, 3, 3)
    graph = gc.trace(lambda x: F.conv_transpose2d(x, weight, **options), gc.randn(1, 4, 5, 5))
    gc.export(graph, path=tmp_path / "f.onnx")
    module = gc.compile(graph)
    x = gc.randn(1, 4, 5, 5)
    assert distance(by_runtime(tmp_path / "f.onnx", [x.numpy()]), [module(x).numpy()]) < 1e-6
