"""Protobuf: files that the checker of onnx accepts or none, and weights in a second file where they are large."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.dtypes import bool_, float32
from graphc.base.installation import install_command
from graphc.errors import ArgumentError, VerifyError
from graphc.interop.onnx_export import protobuf
from graphc.interop.onnx_export.records import GraphRecord, NodeRecord, ValueRecord
from tests.interop.onnx_export.runtimes import by_reference, by_runtime, onnx


def record(op: str = "Add", **attrs: object) -> GraphRecord:
    x, y = (ValueRecord(name, float32, ("n", 3)) for name in "xy")
    node = NodeRecord(op, ["x", "w"], ["y"], dict(attrs), "/fc/Add", "fc")
    return GraphRecord("g", [x], [y], [node], {"w": np.arange(3, dtype=np.float32)})


def test_a_record_becomes_a_model(tmp_path: Path):
    protobuf.write(tmp_path / "m.onnx", record(), 20, {"pkg.graphc.assumptions": "n <= 4"})
    model = onnx.load(tmp_path / "m.onnx")
    assert model.graph.node[0].metadata_props[0].value == "fc"
    assert model.metadata_props[0].key == "pkg.graphc.assumptions"
    (found,) = by_reference(tmp_path / "m.onnx", [np.ones((2, 3), np.float32)])
    assert found.tolist() == [[1, 2, 3]] * 2


def test_attributes_may_be_types_and_graphs(tmp_path: Path):
    body = GraphRecord("then", [], [ValueRecord("t", float32, ("n", 3))], [NodeRecord("Abs", ["x"], ["t"], {}, "a")])
    other = GraphRecord("else", [], [ValueRecord("e", float32, ("n", 3))], [NodeRecord("Neg", ["x"], ["e"], {}, "b")])
    graph = record()
    graph.nodes = [
        NodeRecord("Cast", ["w"], ["c"], {"to": bool_}, "c"),
        NodeRecord("ReduceMax", ["w"], ["m"], {"keepdims": 0}, "m"),
        NodeRecord("Cast", ["m"], ["p"], {"to": bool_}, "p"),
        NodeRecord("If", ["p"], ["y"], {"then_branch": body, "else_branch": other}, "i"),
    ]
    protobuf.write(tmp_path / "m.onnx", graph, 20, {})
    assert by_reference(tmp_path / "m.onnx", [-np.ones((1, 3), np.float32)])[0].tolist() == [[1, 1, 1]]


def test_what_the_checker_refuses_is_not_written(tmp_path: Path):
    (tmp_path / "m.onnx").write_bytes(b"before")
    for bad in (record("Nothing"), record("Concat")):
        with pytest.raises(VerifyError, match="onnx refuses the exported model"):
            protobuf.write(tmp_path / "m.onnx", bad, 20, {})
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"] and (tmp_path / "m.onnx").read_bytes() == b"before"


def test_large_weights_lie_in_a_second_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    net, x = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 40, bias=False)), gc.randn(2, 20)
    monkeypatch.setattr(protobuf, "LARGEST", 1000)
    gc.export(net, x, path=tmp_path / "net.onnx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
    stored = onnx.load(tmp_path / "net.onnx", load_external_data=False)
    outside = {t.name for t in stored.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL}
    assert outside == {"0.weight", "2.weight"}
    wanted = net(x).detach().numpy()
    assert np.abs(by_reference(tmp_path / "net.onnx", [x.numpy()])[0] - wanted).max() < 1e-5
    assert np.abs(by_runtime(tmp_path / "net.onnx", [x.numpy()])[0] - wanted).max() < 1e-5


def test_opsets_that_are_not_known_are_refused():
    assert protobuf.check_opset(None) == protobuf.USUAL and protobuf.check_opset(18) == 18
    for opset in (protobuf.OLDEST - 1, protobuf.NEWEST + 1):
        with pytest.raises(ArgumentError, match="cannot be written"):
            protobuf.check_opset(opset)


def test_an_older_package_writes_what_it_knows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: 19)
    assert protobuf.check_opset(None) == 19
    with pytest.raises(ArgumentError, match="use an opset from 18 to 19"):
        protobuf.check_opset(20)


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    remedy = re.escape(install_command("onnx"))
    with pytest.raises(ArgumentError, match=rf"need the package onnx\n  try    install onnx: {remedy}"):
        gc.export(nn.Linear(2, 2), gc.ones(1, 2), path="never.onnx")
    assert not Path("never.onnx").exists()
