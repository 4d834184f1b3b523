"""Element by element: numbers that stop processors, limits that limit nothing, and small whole numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphc as gc
from tests.interop.onnx_export.runtimes import check

WHOLE = gc.tensor([-7, -1, 0, 3, 8])


@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (lambda x: x.clamp(min=0), ["Clip"]),
        (lambda x: x.clamp(max=0), ["Clip"]),
        (lambda x: x.clamp(-1, 1), ["Clip"]),
        (lambda x: gc.clamp(x, gc.zeros(3), gc.ones(3)), ["Max", "Min"]),
        (lambda x: x != 0, ["Equal", "Not"]),
        (lambda x: (x > 0) & (x < 1), ["Greater", "Less", "And"]),
        (lambda x: (x > 0) + (x < 1), ["Greater", "Less", "Or"]),
        (lambda x: x**2, ["Pow"]),
        (lambda x: x.exp().log1p(), ["Exp", "Add", "Log"]),
        (lambda x: x.trunc(), ["Sign", "Abs", "Floor", "Mul"]),
    ],
)
def test_floats(tmp_path: Path, function: Any, operators: list[str]):
    assert check(function, (gc.tensor([-1.5, 0.25, 2.0]),), tmp_path / "f.onnx") == operators


@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (lambda x: x // 3, ["Mod", "Sub", "Div"]),
        (lambda x: x % 3, ["Mod"]),
        (lambda x: x**2, ["Mul"]),
        (lambda x: x**3, ["Mul", "Mul"]),
        (lambda x: x.floor(), []),
        (lambda x: x & 6, ["BitwiseAnd"]),
        (lambda x: x.to(gc.int32).to(gc.int8) + 1, ["Cast", "Cast", "Cast", "Cast", "Add", "Cast"]),
    ],
)
def test_whole_numbers(tmp_path: Path, function: Any, operators: list[str]):
    found = check(function, (WHOLE,), tmp_path / "f.onnx")
    assert [op for op in found if op != "Identity"] == operators


def test_divisors_that_stop_processors_are_taken_out(tmp_path: Path):
    divisors = gc.tensor([2, -1, 0, -3, 0])
    assert "Where" in check(lambda x, y: (x // y, x % y), (WHOLE, divisors), tmp_path / "f.onnx")


def test_shifts_go_as_far_as_the_width(tmp_path: Path):
    amounts = gc.tensor([0, 3, 62, 63, 64])
    check(lambda x, y: (x << y, x >> y), (WHOLE, amounts), tmp_path / "f.onnx")


def test_comparisons_of_bools(tmp_path: Path):
    bools = gc.tensor([True, False, True]), gc.tensor([False, False, True])
    check(lambda x, y: (x < y, x >= y, x == y, gc.logical_xor(x, y)), bools, tmp_path / "f.onnx")
