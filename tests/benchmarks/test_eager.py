"""Eager mode beside eager torch."""

import json

import numpy as np
import pytest

import graphc
from benchmarks import eager
from benchmarks.harness.results import Result
from benchmarks.models import eager_calls, small_loops


def test_there_are_two_hundred_calls_and_twelve_loops():
    assert len(eager_calls.expressions()) * len(eager_calls.SIZES) == 200
    assert len(set(eager_calls.expressions())) == 100
    assert len(small_loops.EAGER) == 13


def _arrays(value):
    tensors = value if isinstance(value, (tuple, list)) else [value]
    return [np.asarray(tensor.detach().numpy(), np.float64) for tensor in tensors]


@pytest.mark.torch
def test_both_frameworks_compute_the_same():
    torch = pytest.importorskip("torch")
    for expression in eager_calls.expressions():
        if "rand" in expression or "dropout" in expression:
            continue
        ours, theirs = (_arrays(eager.call_of(expression, lib, "small")()) for lib in (graphc, torch))
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5, err_msg=expression)


def test_rows_and_their_summary():
    rows = [
        Result("small a", {"beyond": ""}, {"graphc": [4.9], "torch": [1.0]}),
        Result("small b", {"beyond": "!"}, {"graphc": [30.0], "torch": [6.0]}),
        Result("loop c", {"beyond": ""}, {"graphc": [10.0], "torch": [20.0]}),
    ]
    calls, loops = eager.summary(rows)
    assert calls == "2 calls: median 4.95, worst 5.00 (small b), 1 beyond"
    assert loops == "1 loops: median 0.50, worst 0.50 (loop c), 0 beyond"


def test_a_call_is_beyond_what_is_allowed_by_its_ratio_and_its_time():
    results = [Result("x", {}, {"graphc": [own], "torch": [1e-3]}) for own in (4.5e-3, 5.5e-3)]
    for result in results:
        eager.SWEEP.finish("x", result)
    assert [r.facts["beyond"] for r in results] == ["", "!"]


def test_the_command_prints_json(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.harness.sweep.pin", lambda threads: None)
    eager.SWEEP.main(["--json", "--only", "small x + y", "--rounds", "1", "--seconds", "0.0001"])
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["ms"]["graphc"] > 0
