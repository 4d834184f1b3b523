"""A sample of damaged and hostile ``.onnx`` files; ``python -m tools.damage.onnx_files`` runs more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
from tools.damage import onnx_files
from tools.damage.onnx_files import FAILED, READ, SECRET, Watch, judge, make_case


def test_a_sample_is_read_or_is_a_typed_error():
    outcomes = onnx_files.run(120, seed=7)
    assert [(name, outcome.text) for name, outcome in outcomes if outcome.kind == FAILED] == []
    assert any(outcome.kind == READ for _, outcome in outcomes)


def test_cases_are_the_same_each_time(tmp_path: Path):
    files = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        files.append(make_case(3, 5, folder)[1].read_bytes())
    assert files[0] == files[1]


def test_what_is_opened_outside_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _, path = make_case(0, 0, tmp_path)
    monkeypatch.setattr(onnx_files, "_read_and_run", lambda p: open(p.parent.parent / "secret").close())
    outcome = judge(path, Watch())
    assert outcome.kind == FAILED and "secret" in outcome.text


def test_tensors_that_hold_what_lies_outside_are_noticed():
    model = onnx_files.gc.from_onnx(onnx_files.MODELS[0]())
    assert not onnx_files._holds_secret(model)
    with onnx_files.no_grad():
        model.get_parameter("fc.bias").copy_(onnx_files.gc.from_numpy(np.frombuffer(SECRET[:12], np.float32)))
    assert onnx_files._holds_secret(model)
