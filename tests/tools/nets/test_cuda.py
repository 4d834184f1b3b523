"""Cases of the CUDA path: the same cases for the same seed, and outcomes that describe the difference."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tools.cuda import runs
from tools.cuda.cases import KINDS, cases, named_cases
from tools.cuda.runs import DIFFERENT, EQUAL, compare
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


def _kind(result: np.ndarray, reference: np.ndarray) -> str:
    return compare("case", [[result]], [[reference]], 1.0).kind


def test_differences_are_measured_in_roundings_of_the_largest_element():
    one, turned = np.float32([1.0, 100.0]), np.complex64([1 + 2j, 100])
    for reference, near, far in (
        (one, np.float32([1e-5, 0]), np.float32([0, 1e-2])),
        (turned, np.complex64(1e-5j), np.complex64(1e-2j)),
    ):
        assert _kind(reference, reference) == _kind(reference + near, reference) == EQUAL
        assert _kind(reference + far, reference) == DIFFERENT
    nan, infinite = np.float32([np.nan]), np.float32([np.inf])
    assert _kind(nan, nan) == _kind(infinite, infinite) == EQUAL
    assert _kind(nan, one[:1]) == _kind(np.array([1]), np.array([2])) == _kind(np.zeros(2), one) == DIFFERENT


def test_an_outcome_names_the_element_that_differs():
    reference = [[np.zeros((2, 3), np.float32)]]
    outcome = compare("case", [[np.float32([[0, 0, 0], [0, 0, 5]])]], reference, 1.0)
    assert "result 0[1, 2] = 5" in outcome.detail and outcome.worst == 5


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
