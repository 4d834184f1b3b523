"""Findings in model files: damage with its position, and suspicious contents."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.files import container, model_content
from graphc.models.file_report import report_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.gcm"
    gc.export(nn.Linear(3, 2), gc.zeros(4, 3), path=path, native=True)
    return path


def edit(path: Path, **changes: object) -> None:
    """The file again with other parts of its first entry."""
    stored = model_content.load(path)
    entry = dataclasses.replace(stored.first, **changes)  # type: ignore[arg-type]
    model_content.save(path, dataclasses.replace(stored, entries=(entry,)))


def test_a_whole_file_is_good_and_described(file: Path):
    report = report_of(file)
    assert report.good and report.weights == 2 and report.weight_bytes == 4 * 8
    (entry,) = report.entries
    (code,) = entry["natives"]
    assert entry["name"] == "forward" and entry["nodes"] > 0 and code["runs_here"] and code["features"]
    assert report.warnings == ["forward: no sample call, so selftest cannot test it"]


def test_damage_is_a_problem(file: Path):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)
    report = report_of(file)
    assert not report.good and report.problem.startswith("the file is damaged: the digest of section")
    file.write_bytes(content[:100])
    assert "truncated" in report_of(file).problem


def test_a_graph_that_is_none_is_a_problem_of_its_entry(file: Path):
    edit(file, text="graph @main() -> () {\n")
    assert report_of(file).problem.startswith("entry forward: the graph is not valid")


def test_a_graph_of_other_weights_is_a_problem(file: Path):
    stored = model_content.load(file)
    weights = {**stored.weights, "weight": np.zeros((2, 4), np.float32)}
    params = [t.name for t in stored.manifest.weights]
    model_content.save(file, model_content.assemble(stored.entries, weights, stored.manifest.versions, params=params))
    assert "weight 'weight' is f32[2, 4], the graph takes f32[2, 3]" in report_of(file).problem


def test_numbers_that_are_not_finite_are_warnings(tmp_path: Path):
    net = nn.Linear(3, 2)
    with gc.no_grad():
        net.weight[0, 1] = float("nan")
        net.bias[:] = float("inf")
    gc.export(net, gc.zeros(4, 3), path=tmp_path / "n.gcm")
    warnings = report_of(tmp_path / "n.gcm").warnings
    assert warnings[:2] == ["weight: 1 of 6 numbers are not finite", "bias: 2 of 2 numbers are not finite"]


def test_native_code_for_other_machines_is_a_warning(file: Path):
    (code,) = model_content.load(file).first.natives
    target = dataclasses.replace(code.manifest.target, features=("imaginary",))
    edit(file, natives=(code._replace(manifest=dataclasses.replace(code.manifest, target=target)),))
    report = report_of(file)
    assert report.good and not report.entries[0]["natives"][0]["runs_here"]
    assert "no native code in it runs here: it needs imaginary" in report.warnings[0]
    versions = {**code.manifest.versions, "graphc": "0.0.1"}
    edit(file, natives=(code._replace(manifest=dataclasses.replace(code.manifest, versions=versions)),))
    assert "built by graphc 0.0.1" in report_of(file).warnings[0]


def test_other_containers_are_no_models(tmp_path: Path):
    container.write_sections(tmp_path / "a.gcm", {"manifest": [b"{}"]})
    assert not report_of(tmp_path / "a.gcm").good
