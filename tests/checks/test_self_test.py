"""Sample calls of model files: what is stored, by which codes it is run, what is told."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.files import model_content
from graphc.files.model_content import Sample
from graphc.models import model_programs


class Counted(nn.Module):
    """Rows of a table, a product with them, and a state that each call adds to."""

    def __init__(self):
        super().__init__()
        self.table, self.linear = nn.Embedding(10, 4), nn.Linear(4, 3)
        self.register_buffer("total", gc.zeros(3))

    def forward(self, rows: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        """Means of rows, and what has been added up."""
        found = self.linear(self.table(rows)).mean(1)
        self.total.copy_(self.total + found.sum(0))
        return found, self.total * 1.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "net.gcm"


def test_each_entry_is_run_as_compiled_and_by_code_of_the_file(path: Path):
    gc.manual_seed(0)
    model, batch = Counted().eval(), gc.Dim("batch", max=9)
    rows = gc.randint(0, 10, (2, 5))
    entries = {"all": gc.Entry(model, rows, dims=[(batch,)]), "linear": gc.Entry(model.linear, gc.rand(4))}
    gc.export(entries, path=path, golden=3, native=True)
    stored = model_content.load(path)
    assert [len(entry.golden) for entry in stored.entries] == [3, 3]
    assert stored.first.golden[0].inputs[0].tolist() == rows.tolist()
    assert set(np.unique(stored.first.golden[2].inputs[0])) <= set(np.unique(rows.numpy()))
    report = gc.selftest(path, trust=True)
    assert report.good and [(c.entry, c.calls, c.skipped) for c in report.cases] == [
        *[("all", 3, ""), ("linear", 3, "")] * 2
    ]
    assert report.cases[0].code == "compiled" and report.cases[0].error < 0.1
    untrusted = gc.selftest(path)
    assert untrusted.good and [bool(c.skipped) for c in untrusted.cases] == [False, False, True, True]
    assert "trust" in str(untrusted)


def test_outputs_that_are_others_are_told(path: Path):
    net = nn.Linear(4, 3).eval()
    gc.export(net, gc.rand(2, 4), path=path, golden=True)
    stored = model_content.load(path)
    (sample,) = stored.first.golden
    wrong = sample.outputs[0].copy()
    wrong[1, 2] += 0.01
    entry = replace(stored.first, golden=(Sample(sample.inputs, (wrong,)),))
    model_content.save(path, replace(stored, entries=(entry,)))
    report = gc.selftest(path)
    (case,) = report.cases
    assert not report.good and not case.good and case.error > 10 and case.absolute == pytest.approx(0.01, rel=1e-3)
    assert "BAD" in str(report) and gc.selftest(path, atol=0.1).good
    entry = replace(stored.first, golden=(Sample(sample.inputs, (np.full_like(wrong, np.nan),)),))
    model_content.save(path, replace(stored, entries=(entry,)))
    assert gc.selftest(path).cases[0].error == inf


def test_code_that_does_not_run_here_is_not_run_and_says_why(path: Path, monkeypatch: pytest.MonkeyPatch):
    gc.export(nn.Linear(4, 3).eval(), gc.rand(2, 4), path=path, golden=True, native=True, target=("sse2", "neon"))
    report = gc.selftest(path, trust=True)
    foreign = [case.skipped for case in report.cases if case.skipped]
    assert len(foreign) == 1 and "this machine is" in foreign[0] and report.good
    monkeypatch.setattr(model_programs, "runs_here", lambda target: "it needs wings")
    monkeypatch.setattr("graphc.checks.self_test.why_not_native", model_programs.why_not_native)
    report = gc.selftest(path, trust=True)
    assert [case.skipped for case in report.cases] == ["", *["it needs wings"] * 2]


def test_a_file_without_sample_calls_is_not_good(path: Path):
    gc.export(nn.Linear(4, 3).eval(), gc.rand(2, 4), path=path)
    report = gc.selftest(path)
    assert not report.good and report.cases == () and "golden=True" in str(report)


def test_numbers_that_are_no_tensors_have_no_sample_calls(path: Path):
    count = gc.Dim("count", max=8)

    def first(x: gc.Tensor, n: int) -> gc.Tensor:
        return x[:n] * 2.0

    with pytest.raises(ArgumentError, match="golden: first has 2 inputs, but 1 examples"):
        gc.export(first, gc.rand(8), 3, path=path, dims=[None, count], golden=True)


def test_whole_numbers_beyond_what_f64_holds_are_told_apart(path: Path):
    gc.export(lambda n: n + 1, gc.tensor([2**53 - 1, 7]), path=path, golden=True)
    assert gc.selftest(path).good
    stored = model_content.load(path)
    (sample,) = stored.first.golden
    assert sample.outputs[0][0] == 2**53
    wrong = sample._replace(outputs=(sample.outputs[0] + np.array([1, 0]),))
    model_content.save(path, replace(stored, entries=(replace(stored.first, golden=(wrong,)),)))
    assert not gc.selftest(path).good
