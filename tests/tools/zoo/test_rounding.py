"""Spread of ONNX Runtime's results, and comparison of single quantised operators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import graphc as gc  # noqa: E402
from benchmarks.peers.onnx_calls import onnx_session  # noqa: E402
from tools.zoo.rounding import DRAWS, codes, moved_results  # noqa: E402

helper, TYPES = onnx.helper, onnx.TensorProto
CASE = {"x": np.random.default_rng(0).standard_normal((3, 16)).astype(np.float32)}


def _file(tmp_path: Path) -> Path:
    """Write a model whose second product rounds the first one's result to codes."""
    rng = np.random.default_rng(1)
    stored = [
        onnx.numpy_helper.from_array(rng.standard_normal((16, 16)).astype(np.float32), "w"),
        onnx.numpy_helper.from_array(rng.integers(-127, 128, (16, 8)).astype(np.int8), "codes"),
        onnx.numpy_helper.from_array(rng.random(8).astype(np.float32), "scale"),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("DynamicQuantizeLinear", ["h"], ["q", "q_scale", "q_zero"]),
        helper.make_node("MatMulInteger", ["q", "codes", "q_zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["wide"], to=TYPES.FLOAT),
        helper.make_node("Mul", ["wide", "scale"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(n, TYPES.FLOAT, ["n", k]) for n, k in (("x", 16), ("y", 8))]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def test_moved_weights_give_results_that_differ_from_each_other_and_little_from_the_right_ones(tmp_path: Path):
    path = _file(tmp_path)
    right = onnx_session(path).run(None, CASE)[0]
    found = [results[0][0] for results in moved_results(path, [CASE])]
    assert len(found) == DRAWS and any((a != right).any() for a in found)
    assert all(np.abs(a - right).max() < 0.05 * np.abs(right).max() for a in found)


def _compiled(model: bytes, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    with gc.no_grad():
        return [y.numpy() for y in gc.compile(gc.from_onnx(model))(*[gc.from_numpy(a) for a in operands])]


def test_codes_of_separate_operators_equal_those_of_onnx_runtime(tmp_path: Path):
    assert codes(_file(tmp_path), CASE, _compiled) == (3 * 16 + 2 + 3 * 8, 0)


def test_codes_that_differ_are_counted(tmp_path: Path):
    def wrong(model: bytes, operands: Sequence[np.ndarray]) -> list[Any]:
        quantized, *rest = _compiled(model, operands)
        return [quantized ^ np.eye(3, 16, dtype=np.uint8), *rest]

    assert codes(_file(tmp_path), CASE, wrong)[1] == 3
