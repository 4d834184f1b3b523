"""``graphc summary``: a table or JSON, and what cannot be summarised."""

from __future__ import annotations

import json
from pathlib import Path

from graphc.cli import console
from tests.cli.conftest import Graphc


def test_table(models: Path, graphc: Graphc):
    done = graphc("summary", f"{models}:Net", "--input", "x:f32[2,6]")
    assert done.code == 0
    assert "fc: Linear" in done.out
    assert "multiply-adds  48" in done.out
    assert "fc: Linear" not in graphc("summary", f"{models}:Net", "--input", "x:f32[2,6]", "--depth", 0).out


def test_json(models: Path, graphc: Graphc):
    done = graphc("summary", f"{models}:Net", "--input", "x:f32[2,6]", "--json")
    data = json.loads(done.out)
    assert (data["parameters"], data["multiply_adds"]) == (28, 48)
    assert [layer["path"] for layer in data["layers"]] == ["", "fc", "drop"]


def test_errors(models: Path, graphc: Graphc):
    assert graphc("summary", f"{models}:double", "--input", "x:f32[2]").code == console.USAGE
    assert graphc("summary", f"{models}:Net", "--input", "x:f32[2,6]", "--depth", -1).code == console.USAGE
    assert graphc("summary", f"{models}:Net", "--input", "x:f32[2,7]").code == console.COMPILE
    assert graphc("summary", f"{models}:Branching", "--input", "x:f32[2]").code == console.COMPILE
