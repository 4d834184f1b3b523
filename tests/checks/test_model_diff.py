"""Differences of two models: arrays with their largest difference, entries, graphs, and what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import graphc as gc
from graphc import nn
from graphc.base.difference import EXACT, Tolerance
from graphc.checks.model_diff import compare_models, compare_named, compare_outputs, why_other_calls
from graphc.files import model_content
from graphc.files.model_content import Artifact

ONE = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_equal_arrays_are_omitted():
    for a, b in ((ONE, ONE.copy()), (np.array([0.0]), np.array([-0.0]))):
        assert compare_named({"a": a}, {"a": b}, EXACT) == []


def test_the_second_is_the_reference_and_types_must_agree():
    (one,) = compare_named({"a": ONE + 1}, {"a": ONE}, Tolerance(atol=1.0))
    assert one.is_within and one.actual - one.expected == 1
    (other,) = compare_named({"a": ONE}, {"a": ONE.astype(float)}, EXACT)
    assert other.problem == "float32[2, 3] instead of float64[2, 3]"


def test_missing_names_are_told():
    differences = compare_named({"a": ONE, "b": ONE}, {"b": ONE, "c": ONE}, EXACT)
    assert [(d.name, d.problem) for d in differences] == [("a", "only in the first"), ("c", "only in the second")]


def made(path: Path, model: nn.Module) -> Artifact:
    gc.export(model, gc.zeros(4, 3), path=path)
    return model_content.load(path)


def test_models_of_one_graph_differ_in_weights_only(tmp_path: Path):
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    second.load_state_dict(first.state_dict())
    a = made(tmp_path / "a.gcm", first)
    assert compare_models(a, made(tmp_path / "b.gcm", second), tolerance=EXACT).equal
    with gc.no_grad():
        second.bias[0] += 1.0
    report = compare_models(a, made(tmp_path / "c.gcm", second), tolerance=EXACT)
    assert not report.equal and [w.name for w in report.weights] == ["bias"] and report.entries[0].graph == ""
    assert report.compared == {"weights": 2, "graphs": 1}
    assert compare_models(a, made(tmp_path / "c.gcm", second), tolerance=EXACT, weights=False).equal
    assert compare_models(a, made(tmp_path / "c.gcm", second), tolerance=Tolerance(atol=1.5)).equal


def test_models_of_other_graphs_show_the_nodes(tmp_path: Path):
    first = nn.Linear(3, 2)
    second = nn.Sequential(first, nn.ReLU())
    a, b = made(tmp_path / "a.gcm", first), made(tmp_path / "b.gcm", second)
    report = compare_models(a, b, tolerance=EXACT, weights=False)
    added = [line for line in report.entries[0].graph.splitlines() if line.startswith("+  ")]
    assert len(added) == 3 and "le(%add" in added[0] and not report.equal


def test_outputs_are_compared_in_order(tmp_path: Path):
    spec = made(tmp_path / "a.gcm", nn.Linear(3, 2)).first.spec
    assert compare_outputs((spec, spec), [ONE], [ONE], EXACT) == []
    assert [d.name for d in compare_outputs((spec, spec), [ONE], [ONE + 1], EXACT)] == ["output"]
    other = made(tmp_path / "b.gcm", nn.Linear(3, 3)).first.spec
    assert why_other_calls(spec, other) == "" != why_other_calls(spec, made_wide(tmp_path).first.spec)


def made_wide(folder: Path) -> Artifact:
    gc.export(nn.Linear(5, 2), gc.zeros(4, 5), path=folder / "w.gcm")
    return model_content.load(folder / "w.gcm")
