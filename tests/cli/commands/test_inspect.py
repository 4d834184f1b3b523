"""graphc inspect: what a file holds, for people and for machines."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.cli import console
from graphc.cli.commands.inspect import count_ops
from graphc.files import model_content
from graphc.ir.graph.parse import parse_graph
from tests.cli.conftest import Graphc
from tests.compiler.graphs import mlp


def test_facts_for_people(net: Path, graphc: Graphc):
    done = graphc("inspect", net)
    assert done.code == console.OK
    for part in (
        "model      Net\n",
        "input      x: f32[2,6]\n",
        "output     output: f32[2,4]\n",
        "weights    2, 112 B\n",
        "fc.weight: f32[4,6]",
        "native     none: compiled when it is loaded\n",
        "matmul 1",
        "llvmlite ",
        hashlib.sha256(net.read_bytes()).hexdigest(),
    ):
        assert part in done.out


def test_facts_for_machines(net: Path, graphc: Graphc):
    facts = json.loads(graphc("inspect", net, "--json").out)
    assert facts["inputs"] == [{"name": "x", "dtype": "f32", "shape": [2, 6]}]
    assert facts["bytes"] == net.stat().st_size
    weight = facts["weights"][0]
    stored = model_content.load(net)
    assert weight["name"] == "fc.weight" and weight["bytes"] == 96
    assert weight["sha256"] == hashlib.sha256(stored.weights["fc.weight"].tobytes()).hexdigest()
    assert facts["ops"] == dict(count_ops(parse_graph(stored.first.text))) and facts["native"] is None


def test_native_code_is_described(models: Path, tmp_path: Path, graphc: Graphc):
    path = tmp_path / "n.gcm"
    graphc("compile", f"{models}:double", "--input", "x:f32[2]", "-o", path, "--native")
    assert "used with --trust only" in graphc("inspect", path).out
    native = json.loads(graphc("inspect", path, "--json").out)["native"]
    assert native["triple"] and native["code_bytes"] > 100 and native["features"] and "chosen" not in native
    graphc("compile", f"{models}:double", "--input", "x:f32[batch=1..64,2]", "-o", path, "--native")
    assert json.loads(graphc("inspect", path, "--json").out)["native"]["chosen"] == 0


def test_files_that_are_no_models(net: Path, tmp_path: Path, graphc: Graphc):
    assert graphc("inspect", tmp_path / "missing.gcm").code == console.USAGE
    np.save(tmp_path / "a.npy", np.zeros(3))
    done = graphc("inspect", tmp_path / "a.npy")
    assert done.code == console.DAMAGED and "a NumPy .npy file" in done.err
    content = bytearray(net.read_bytes())
    content[-1] ^= 1
    net.write_bytes(content)
    done = graphc("inspect", net)
    assert done.code == console.DAMAGED and "digest of section 'data' differs" in done.err


def test_ops_are_counted():
    assert count_ops(mlp()) == {"matmul": 1, "add": 1, "maximum": 1, "sum": 1}


@pytest.fixture
def several(tmp_path: Path) -> Path:
    net = nn.Linear(3, 2)
    entries = {"infer": gc.Entry(net, gc.zeros(4, 3)), "twice": gc.Entry(lambda x: x + x, gc.zeros(5))}
    gc.export(entries, path=tmp_path / "s.gcm")
    return tmp_path / "s.gcm"


def test_entries_are_described(several: Path, graphc: Graphc):
    text = graphc("inspect", several).out
    assert "entry      infer\ninput      input: f32[4,3]\noutput     output: f32[4,2]\nentry      twice" in text
    facts = json.loads(graphc("inspect", several, "--json").out)
    assert [(e["entry"], e["name"]) for e in facts["entries"]] == [("infer", "Linear"), ("twice", "main")]
    assert facts["ops"] == {"add": 2, "matmul": 1}
