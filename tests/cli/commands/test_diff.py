"""graphc diff: weights, graphs and outputs of two files, other formats, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.cli import console
from graphc.cli.commands import diff
from tests.cli.conftest import Graphc
from tests.cli.field_check import mismatches
from tests.cli.trained import make_data, make_trainable


def pair(folder: Path) -> tuple[Path, Path]:
    """Two files of one graph, the second with another bias."""
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
    gc.export(net, gc.zeros(4, 3), path=folder / "a.gcm")
    with gc.no_grad():
        net[0].bias[1] += 0.001
    gc.export(net, gc.zeros(4, 3), path=folder / "b.gcm")
    return folder / "a.gcm", folder / "b.gcm"


def test_equal_files(tmp_path: Path, graphc: Graphc):
    a, _ = pair(tmp_path)
    done = graphc("diff", a, a)
    assert done.code == console.OK
    assert done.out == ("weights: 2 equal\nentry forward: graphs equal\nentry forward: outputs equal\nequal\n")


def test_what_differs_is_named(tmp_path: Path, graphc: Graphc):
    a, b = pair(tmp_path)
    done = graphc("diff", a, b)
    assert done.code == console.WRONG
    assert "weights: 1 of 2 equal\n  0.bias: 1 of 2 elements differ, 1 beyond the tolerance, by at most" in done.out
    assert "graphs equal" in done.out and "outputs differ\n  output: 4 of 8 elements differ" in done.out
    assert done.out.endswith("different\n")
    assert graphc("diff", a, b, "--graph").code == console.OK
    near = graphc("diff", a, b, "--atol", "0.01")
    assert near.code == console.OK and "1 within the tolerance" in near.out and near.out.endswith("equal\n")
    assert graphc("diff", a, b, "--weights", "--rtol", "1e-9").code == console.WRONG


def test_the_fields_of_its_json(tmp_path: Path, graphc: Graphc):
    a, b = pair(tmp_path)
    found = json.loads(graphc("diff", a, b, "--json").out)
    assert mismatches(found, diff.JSON) == []
    assert not found["equal"] and found["compared"] == {"weights": 2, "graphs": 1, "outputs": 1}
    assert found["weights"][0]["name"] == "0.bias" and found["weights"][0]["place"] == [1]
    assert mismatches(json.loads(graphc("diff", a, a, "--json").out), diff.JSON) == []


def test_other_graphs_and_other_inputs(tmp_path: Path, graphc: Graphc):
    a, _ = pair(tmp_path)
    gc.export(nn.Linear(3, 2), gc.zeros(5, 3), path=tmp_path / "c.gcm")
    done = graphc("diff", a, tmp_path / "c.gcm")
    assert done.code == console.WRONG
    assert "0.weight: only in the first" in done.out and "weight: only in the second" in done.out
    assert "entry forward: inputs input: f32[4,3] and input: f32[5,3]" in done.out
    assert "+++ b" in graphc("diff", a, tmp_path / "c.gcm", "--graph").out


def test_entries_are_compared_one_by_one(tmp_path: Path, graphc: Graphc):
    make_trainable(tmp_path / "a.gcm")
    make_data(tmp_path / "d.npz")
    graphc("train", tmp_path / "a.gcm", "--data", tmp_path / "d.npz", "-o", tmp_path / "b.gcm")
    done = graphc("diff", tmp_path / "a.gcm", tmp_path / "b.gcm")
    assert "entry infer: graphs equal\nentry infer: outputs differ" in done.out
    assert "entry train_step: graphs equal\nentry train_step: outputs differ" in done.out
    same = graphc("diff", tmp_path / "b.gcm", tmp_path / "b.gcm")
    assert same.code == console.OK  # Each call begins with the states of the file.
    gc.export(nn.Linear(3, 2), gc.zeros(4, 3), path=tmp_path / "plain.gcm")
    assert "entry infer: only in the first" in graphc("diff", tmp_path / "b.gcm", tmp_path / "plain.gcm").out


def test_an_onnx_file_beside_the_model_that_it_is_of(tmp_path: Path, graphc: Graphc):
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    gc.export(net, gc.zeros(4, 3), path=tmp_path / "a.gcm")
    gc.export(net, gc.zeros(4, 3), path=tmp_path / "a.onnx")
    done = graphc("diff", tmp_path / "a.gcm", tmp_path / "a.onnx", "--outputs", "--rtol", "1e-5", "--atol", "1e-6")
    assert done.code == console.OK, done.out


def test_files_that_cannot_be_read(tmp_path: Path, graphc: Graphc):
    a, b = pair(tmp_path)
    assert graphc("diff", a, tmp_path / "none.gcm").code == console.USAGE
    b.write_bytes(b.read_bytes()[:100])
    assert graphc("diff", a, b).code == console.DAMAGED
    np.save(tmp_path / "x.npy", np.zeros(3))
    assert graphc("diff", a, tmp_path / "x.npy").code == console.DAMAGED
    assert graphc("diff", a, a, "--atol", "-1").code == console.USAGE
