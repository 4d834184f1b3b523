"""Differences of two models: arrays with their largest difference, entries, graphs, and what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.dtypes import bfloat16, elements
from graphc.checks.model_diff import (
    Tolerance,
    compare_arrays,
    compare_models,
    compare_named,
    compare_outputs,
    why_other_calls,
)
from graphc.files import model_content
from graphc.files.model_content import Artifact

EXACT = Tolerance()
ONE = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_equal_arrays_have_no_difference():
    nan = np.array([1, np.nan, np.inf], np.float32)
    for a, b in ((ONE, ONE.copy()), (nan, nan.copy()), (np.zeros(0), np.zeros(0))):
        assert compare_arrays("a", a, b, EXACT) is None
    assert compare_arrays("a", np.array([0.0]), np.array([-0.0]), EXACT) is None


def test_the_largest_difference_is_told():
    other = ONE.copy()
    other[1, 2] += 0.5
    other[0, 1] += 0.25
    difference = compare_arrays("a", ONE, other, EXACT)
    assert difference is not None and not difference.within
    assert (difference.absolute, difference.count, difference.size, difference.place) == (0.5, 2, 6, (1, 2))
    assert difference.relative == pytest.approx(0.25 / 1.25)


@pytest.mark.parametrize(
    ("absolute", "relative", "within"), [(0.5, 0, True), (0.4, 0, False), (0, 0.2, True), (0.3, 0.1, True)]
)
def test_a_tolerance_holds_for_each_element(absolute: float, relative: float, within: bool):
    other = ONE.copy()
    other[1, 2] += 0.5
    other[0, 1] += 0.25
    difference = compare_arrays("a", ONE, other, Tolerance(absolute, relative))
    assert difference is not None and difference.within is within


def test_what_is_not_finite_is_never_near():
    for a, b in ((np.nan, 1.0), (np.inf, 1.0), (np.inf, -np.inf), (1.0, np.nan)):
        difference = compare_arrays("a", np.array([a]), np.array([b]), Tolerance(10, 10))
        assert difference is not None and not difference.within


def test_whole_numbers_are_equal_or_not():
    difference = compare_arrays("a", np.array([1 << 62, 5]), np.array([(1 << 62) + 1, 5]), Tolerance(10, 10))
    assert difference is not None and not difference.within and difference.absolute == 1 and difference.count == 1
    assert compare_arrays("a", np.array([True]), np.array([False]), EXACT) is not None


def test_bf16_and_complex_numbers_are_compared_by_their_size():
    a, b = (elements([1.0, v], bfloat16) for v in (-2.0, 3.0))
    difference = compare_arrays("w", a, b, Tolerance(absolute=5))
    assert difference is not None and (difference.absolute, difference.count, difference.place, difference.within) == (
        5.0,
        1,
        (1,),
        True,
    )
    difference = compare_arrays("w", np.complex64([1, 2j]), np.complex64([1, 2j - 4j]), Tolerance())
    assert difference is not None and (difference.absolute, difference.relative, difference.within) == (4.0, 2.0, False)


def test_other_types_and_shapes_are_told():
    for other, message in (
        (ONE.astype(float), "float32[2, 3] and float64[2, 3]"),
        (ONE.T, "float32[2, 3] and float32[3,"),
    ):
        difference = compare_arrays("a", ONE, other, EXACT)
        assert difference is not None and difference.problem.startswith(message)


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
    assert compare_models(a, made(tmp_path / "c.gcm", second), tolerance=Tolerance(1.5)).equal


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
