"""Eager mode beside eager torch."""

import json

import numpy as np
import pytest

import graphc
from benchmarks import eager
from benchmarks.models import eager_calls, eager_loops


def test_there_are_two_hundred_calls_and_twelve_loops():
    assert len(eager_calls.expressions()) * len(eager_calls.SIZES) == 200
    assert len(set(eager_calls.expressions())) == 100
    assert len(eager_loops.LOOPS) == 12


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
        {"kind": "call", "name": "a", "graphc": 4.9, "torch": 1.0},
        {"kind": "call", "name": "b", "graphc": 30.0, "torch": 6.0},
        {"kind": "loop", "name": "c", "graphc": 10.0, "torch": 20.0},
    ]
    figures = eager.summary(rows)
    assert figures["call"] == {"rows": 2, "median": 4.95, "worst": 5.0, "which": "b", "beyond": 1}
    assert figures["loop"]["median"] == 0.5 and figures["loop"]["beyond"] == 0
    assert "ratio   5.00 !" in eager.line(rows[1]) and "!" not in eager.line(rows[0])


def test_the_command_prints_json(monkeypatch, capsys):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setattr(eager, "pin", lambda threads: None)
    eager.main(["--json", "--only", "small x + y", "--rounds", "1", "--seconds", "0.0001"])
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["kind"] == "call" and row["graphc"] > 0
