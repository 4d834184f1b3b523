"""Cases of the CUDA path: the same cases for the same seed, and outcomes that describe the difference."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tools.cuda import runs
from tools.cuda.cases import KINDS, cases, named_cases
from tools.cuda.runs import DIFFERENT, EQUAL, compare, distance_of
from tools.nets import cuda


def test_a_seed_draws_the_same_cases():
    for kind in KINDS:
        names = [case.name for case in cases([kind], 3, 4)]
        assert names == [case.name for case in cases([kind], 3, 4)]
        assert len(set(names)) == 4


def test_a_case_is_found_by_its_name():
    (case,) = named_cases(["random/17"])
    assert case.name == "random/17"
    assert [c.name for c in named_cases(["op/exp-0/first", "named/gru", "family/mlp/step"])] == [
        "op/exp-0/first",
        "named/gru",
        "family/mlp/step",
    ]
    with pytest.raises(KeyError):
        named_cases(["op/there_is_none-0/value"])


def test_ops_are_cases_with_derivatives_of_both_orders_and_types():
    names = {case.name for case in cases(["ops"])}
    assert {"op/mul-0/value", "op/mul-0/first", "op/mul-0/second", "op/mul-0/first/f64"} <= names
    assert len(names) > 2000


def test_distances_are_counted_in_roundings_of_the_largest_element():
    one = np.float32([1.0, 100.0])
    assert distance_of(one, one) == 0
    assert distance_of(one + np.float32([1e-5, 0]), one) < 1
    assert distance_of(one + np.float32([0, 1e-2]), one) > 1
    assert distance_of(np.float32([np.nan]), np.float32([np.nan])) == 0
    assert distance_of(np.float32([np.nan]), np.float32([1.0])) == np.inf
    assert distance_of(np.float32([np.inf]), np.float32([np.inf])) == 0
    assert distance_of(np.array([1]), np.array([2])) == np.inf
    turned = np.complex64([1 + 2j, 100])
    assert distance_of(turned + np.complex64(1e-5j), turned) < 1 < distance_of(turned + np.complex64(1e-2j), turned)


def test_an_outcome_names_the_element_that_differs_of_complex_numbers_the_part_too():
    reference = [[np.zeros((2, 3), np.float32)]]
    results = [[np.float32([[0, 0, 0], [0, 0, 5]])]]
    outcome = compare("case", results, reference, 1.0)
    assert outcome.kind == DIFFERENT and "element [1, 2]" in outcome.detail
    assert compare("case", reference, reference, 1.0).kind == EQUAL
    assert compare("case", [[np.zeros(2)]], reference, 1.0).kind == DIFFERENT
    turned = compare("case", [[np.complex64([0, 2j])]], [[np.complex64([0, 1j])]], 1.0)
    assert "element [1, 1]" in turned.detail and turned.worst == 1


def test_a_compile_that_fails_is_an_outcome(monkeypatch: pytest.MonkeyPatch):
    def refuse(graph, name):
        raise ValueError("no")

    monkeypatch.setattr(runs.device_compiler, "compile_for_device", refuse)
    outcome = runs.judge(runs.compile_all(named_cases(["random/1"]), "cuda-emu")[0])
    assert outcome.kind == runs.FAILED and "ValueError: no" in outcome.detail


def test_the_command_counts_by_kind(capsys: pytest.CaptureFixture[str]):
    assert cuda.main(["--case", "op/mul-0/value", "--case", "random/2", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["outcomes"] == {"op value": {"equal": 1}, "random": {"equal": 1}}
    assert summary["bad"] == {} and summary["device"] == "cuda-emu"
