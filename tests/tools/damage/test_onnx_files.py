"""A sample of damaged and hostile ``.onnx`` files; ``python -m tools.damage.onnx_files`` runs more."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
from tools.damage import onnx_files
from tools.damage.onnx_files import NET, SECRET, judge_file, write_case
from tools.nets.run import BAD, EQUAL, FAILED


def test_a_sample_is_read_or_is_a_typed_error():
    outcomes = [onnx_files.judge(case) for case in islice(NET.cases(7), 120)]
    assert [outcome.detail for outcome in outcomes if outcome.kind in BAD] == []
    assert any(outcome.kind == EQUAL for outcome in outcomes)


def test_cases_are_the_same_each_time(tmp_path: Path):
    files = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        files.append(write_case("mutate/3", folder).read_bytes())
    assert files[0] == files[1]


def test_what_is_opened_outside_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_case("flip/0", tmp_path)
    onnx_files.watch()
    monkeypatch.setattr(onnx_files.gc, "from_onnx", lambda p: open(p.parent.parent / "secret").close())
    outcome = judge_file(path)
    assert outcome.kind == FAILED and "secret" in outcome.detail


def test_tensors_that_hold_what_lies_outside_are_noticed():
    model = onnx_files.gc.from_onnx(onnx_files.MODELS[0]())
    assert onnx_files._run(model) is None
    with onnx_files.gc.no_grad():
        model.get_parameter("fc.bias").copy_(onnx_files.gc.from_numpy(np.frombuffer(SECRET[:12], np.float32)))
    assert onnx_files._run(model) == "a tensor holds data from outside of the folder"
