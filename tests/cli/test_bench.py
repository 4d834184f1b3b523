"""graphc bench: figures of the call and of each stage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphc.cli import console
from graphc.cli.bench import measure
from graphc.compiled.model_file import load
from tests.cli.conftest import Graphc

SHORT = ["--rounds", "3", "--seconds", "0.01"]


def test_figures(net: Path, graphc: Graphc):
    done = graphc("bench", net, *SHORT)
    assert done.code == console.OK
    lines = done.out.splitlines()
    assert lines[0] == "Net(x: f32[2,6]) -> (output: f32[2,4])"
    assert [line.split()[0] for line in lines[4:]] == ["load", "optimized", "lowered", "scheduled", "llvm", "object"]
    assert all(word in done.out for word in ("median", "p10", "p90"))


def test_json(net: Path, graphc: Graphc):
    facts = json.loads(graphc("bench", net, *SHORT, "--json").out)
    assert 0 < facts["call"]["p10"] <= facts["call"]["median"] <= facts["call"]["p90"]
    assert facts["rounds"] == 3 and facts["model"] == "Net"
    assert 0 < sum(facts["stages"].values()) < facts["load"]


def test_code_from_the_file_has_no_stages(models: Path, tmp_path: Path, graphc: Graphc):
    path = tmp_path / "n.gcm"
    graphc("compile", f"{models}:double", "--input", "x:f32[2]", "-o", path, "--native")
    assert json.loads(graphc("bench", path, *SHORT, "--trust", "--json").out)["stages"] == {}


def test_given_inputs(two: Path, graphc: Graphc):
    assert graphc("bench", two, *SHORT, "--input", "a=ones", "--input", "b=zeros").code == console.OK
    assert graphc("bench", two, *SHORT, "--input", "a=ones").code == console.MISMATCH


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--rounds", "x"], ["--seconds", "0"], ["--seconds", "nan"]])
def test_wrong_numbers(net: Path, graphc: Graphc, arguments: list[str]):
    assert graphc("bench", net, *arguments).code == console.USAGE


def test_missing_and_damaged_files(tmp_path: Path, graphc: Graphc):
    assert graphc("bench", tmp_path / "missing.gcm").code == console.USAGE
    (tmp_path / "bad.gcm").write_bytes(b"bad")
    assert graphc("bench", tmp_path / "bad.gcm").code == console.DAMAGED


def test_one_figure_per_round(net: Path):
    times = measure(load(net), [np.zeros((2, 6), np.float32)], rounds=5, seconds=0.01)
    assert times.shape == (5,) and (times > 0).all()


def test_named_dimensions_through_the_commands(models: Path, tmp_path: Path, graphc: Graphc):
    path = tmp_path / "any.gcm"
    made = graphc("compile", f"{models}:Net", "--input", "x:f32[batch=1..64,6]", "-o", path)
    assert made.code == console.OK and "Net(x: f32[batch,6]) -> (output: f32[batch,4])" in made.out
    shown = graphc("inspect", path).out
    assert "dimension  batch: 1 to 64, expected 32" in shown
    assert json.loads(graphc("inspect", path, "--json").out)["dims"] == [
        {"name": "batch", "min": 1, "max": 64, "hint": 32}
    ]
    assert "output: f32[3,4]" in graphc("run", path, "--input", "x=ones", "--shape", "batch=3").out
    assert "output: f32[2,4]" in graphc("run", path, "--input", f"x={[[1.0] * 6] * 2}").out
    assert graphc("run", path, "--input", "x=ones", "--shape", "batch=65").code == 2
    assert graphc("run", path, "--input", "x=ones", "--shape", "batch=1,2").code == 2
    for command in (["run", path, "--input", "x=ones"], ["bench", path, *SHORT]):
        twice = graphc(*command, "--shape", "batch=3", "--shape", "batch=4")
        assert twice.code == 2 and "--shape batch=... is given twice" in twice.err
    timed = json.loads(graphc("bench", path, *SHORT, "--shape", "batch=1,8,32", "--json").out)
    assert [call["sizes"] for call in timed["calls"]] == [{"batch": 1}, {"batch": 8}, {"batch": 32}]
    assert "call batch=8" in graphc("bench", path, *SHORT, "--shape", "batch=1,8").out
    assert "dim batch = 1..64 hint 32" in graphc("ir", path, "--stage", "traced").out
