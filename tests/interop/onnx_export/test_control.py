"""Branches and loops: bodies that see what is around them, at any depth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from tests.interop.onnx_export.runtimes import check, onnx

X = gc.randn(4, 3)


def test_a_branch_may_hand_on_an_operand_or_a_constant(tmp_path: Path):
    def function(x: Any) -> Any:
        return gc.cond(x.sum() > 0, lambda a: (a, gc.zeros(3)), lambda a: (a * 2, a[0]), (x,))

    for x in (X.abs(), -X.abs()):
        assert check(function, (x,), tmp_path / "f.onnx")[-1] == "If"


def test_branches_in_loops(tmp_path: Path):
    def step(total: Any, row: Any) -> Any:
        new = gc.cond(row.sum() > 0, lambda a, b: F.softmax(a + b, 0), lambda a, b: a - b, (total, row))
        return new, new * 2

    found = check(lambda x: gc.scan(step, gc.zeros(3), x), (X,), tmp_path / "f.onnx")
    assert "Scan" in found
    (scan,) = [n for n in onnx.load(tmp_path / "f.onnx").graph.node if n.op_type == "Scan"]
    (body,) = [a.g for a in scan.attribute if a.HasField("g")]
    assert "If" in [n.op_type for n in body.node]


def test_a_scan_backwards_and_without_sequences(tmp_path: Path):
    def backwards(x: Any) -> Any:
        return gc.scan(lambda carry, row: (carry * 0.5 + row, carry), gc.zeros(3), x, reverse=True)

    def without(x: Any) -> Any:
        return gc.scan(lambda carry, _: (F.gelu(carry), carry), x, length=3)

    # The reference of Scan goes in one direction.
    assert "Scan" in check(backwards, (X,), tmp_path / "f.onnx", reference=False)
    assert "Scan" in check(without, (X,), tmp_path / "f.onnx")


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_of_one_step_is_no_loop(tmp_path: Path, reverse: bool):
    def function(x: Any) -> Any:
        return gc.scan(lambda carry, row: (carry * 0.5 + row, carry), gc.ones(3), x, reverse=reverse)

    assert "Scan" not in check(function, (X[:1],), tmp_path / "f.onnx")


def test_a_loop_with_layers_of_a_module_in_its_body(tmp_path: Path):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(3, 3)
            self.norm = nn.LayerNorm(3)

        def forward(self, x: Any) -> Any:
            return gc.scan(lambda h, row: (self.norm(self.cell(row, h)), h), gc.zeros(1, 3), x.unsqueeze(1))[0]

    check(Net(), (X,), tmp_path / "f.onnx")
    (scan,) = [n for n in onnx.load(tmp_path / "f.onnx").graph.node if n.op_type == "Scan"]
    (body,) = [a.g for a in scan.attribute if a.HasField("g")]
    assert {"LayerNormalization", "Gemm"} <= {n.op_type for n in body.node}
    assert "/norm/LayerNormalization" in [n.name for n in body.node]


def test_a_loop_until_a_condition(tmp_path: Path):
    def function(x: Any) -> Any:
        limit = x.abs().sum() * 50
        state = (x.abs(), gc.zeros(()))
        return gc.while_loop(lambda s: s[0].sum() < limit, lambda s: (s[0] * 2, s[1] + 1), state)

    assert "Loop" in check(function, (X,), tmp_path / "f.onnx")
