"""Views: dimensions of 1 come and go by name, slices name what they cut, sizes of calls are taken from the operand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphc as gc
from graphc.nn import functional as F
from tests.interop.onnx_export.runtimes import check

X = gc.randn(2, 3, 4)
COUNTED = ("Shape", "Squeeze", "Range")


@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (lambda x: x.unsqueeze(1), ["Unsqueeze"]),
        (lambda x: x.reshape(1, 2, 3, 1, 4), ["Unsqueeze"]),
        (lambda x: x.unsqueeze(1).squeeze(1), ["Unsqueeze", "Squeeze"]),
        (lambda x: x.reshape(6, 4), ["Reshape"]),
        (lambda x: x.reshape(2, 3, 4), []),
        (lambda x: x.permute(2, 0, 1), ["Transpose"]),
        (lambda x: x[:, 1:], ["Slice"]),
        (lambda x: x[..., ::2], ["Slice"]),
        (lambda x: x[:, 1], ["Slice", "Squeeze"]),
        (lambda x: x.flip(0, 2), ["Slice"]),
        (lambda x: x.unsqueeze(0).expand(5, 2, 3, 4), ["Unsqueeze", "Expand"]),
        (lambda x: gc.cat([x, x], 1), ["Concat"]),
        (lambda x: F.pad(x, (1, 2)), ["Pad"]),
        (lambda x: F.pad(x, (-1, 2)), ["Pad", "Slice"]),
        (lambda x: F.pad(x, (-1, 0)), ["Slice"]),
        (lambda x: x.index_select(1, gc.tensor([2, 0])), ["Gather"]),
        (lambda x: x.as_strided((2, 2), (5, 1), 3), ["Reshape", "Gather"]),
        (lambda x: gc.arange(4) + x, ["Cast", "Add"]),
        (lambda x: x.roll(1, 0), ["Slice", "Slice", "Concat"]),
        (lambda x: x.masked_fill(x > 0, 1.0), ["Greater", "Where"]),
    ],
)
def test_views(tmp_path: Path, function: Any, operators: list[str]):
    found = check(function, (X,), tmp_path / "f.onnx")
    assert [op for op in found if op != "Identity"] == operators


@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (lambda x: x.reshape(x.shape[0], 12), ["Reshape"]),
        (lambda x: x.reshape(-1, 4), ["Reshape"]),
        (lambda x: x.transpose(0, 1).reshape(3, -1), ["Transpose", "Reshape"]),
        (lambda x: x.unsqueeze(0), ["Unsqueeze"]),
        (lambda x: x[:, 1:], ["Slice"]),
        (lambda x: x[1:], ["Slice"]),
        (lambda x: x.expand(5, *x.shape), ["Expand"]),
        (lambda x: x.flip(0), ["Slice"]),
        (lambda x: gc.cat([x, x * 2]), ["Mul", "Concat"]),
        (lambda x: x.mean(0).expand(x.shape), ["ReduceMean", "Shape", "Concat", "Expand"]),
        (lambda x: x + gc.arange(x.shape[0]).reshape(-1, 1, 1), [*COUNTED, "Unsqueeze", "Cast", "Add"]),
        (lambda x: x * x.shape[0], ["Shape", "Squeeze", "Cast", "Mul"]),
    ],
)
def test_views_of_tensors_whose_sizes_differ_from_call_to_call(tmp_path: Path, function: Any, operators: list[str]):
    batch = gc.Dim("batch", max=16, hint=2)
    found = check(function, (X,), tmp_path / "f.onnx", dims=[(batch,)])
    assert [op for op in found if op != "Identity"] == operators


def test_elements_are_written_at_positions(tmp_path: Path):
    index = gc.tensor([2, 0])

    def function(x: Any) -> Any:
        part = gc.ones(2, 2, 4)
        return x.index_add(1, index, part), x.index_copy(1, index, part), x.scatter_reduce(1, WHERE, x, "amax")

    assert "ScatterElements" in check(function, (X,), tmp_path / "f.onnx")


WHERE = gc.randint(0, 3, (2, 3, 4))


def test_a_part_may_be_written_in_place(tmp_path: Path):
    def function(x: Any) -> Any:
        y = x.clone()
        y[:, 1] = 0.0
        y[0, :, ::2] += 1.0
        return y

    check(function, (X,), tmp_path / "f.onnx")
