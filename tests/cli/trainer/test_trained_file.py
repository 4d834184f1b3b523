"""The file that a training leaves: weights are others, all else is as it was, and its sample calls are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import graphc as gc
from graphc import nn
from graphc.checks.self_test import selftest
from graphc.cli.trainer.trained_file import save_trained
from graphc.files import model_content


def make(path: Path) -> None:
    gc.manual_seed(0)
    net = nn.Linear(3, 2)
    x, y = gc.randn(4, 3), gc.randn(4, 2)
    step = gc.compile_step(net, nn.functional.mse_loss, gc.optim.SGD(net.parameters(), lr=0.1))
    alone = gc.Entry(lambda v: v * 2.0, gc.randn(3))
    entries = {"infer": gc.Entry(net, x), "train_step": gc.Entry(step, x, y), "twice": alone}
    gc.export(entries, path=path, golden=2, native=True)


def test_weights_change_and_all_else_stays(tmp_path: Path):
    make(tmp_path / "a.gcm")
    stored = model_content.load(tmp_path / "a.gcm")
    state = {"weight": np.full((2, 3), 0.5, np.float32)}
    save_trained(stored, state, tmp_path / "b.gcm")
    found = model_content.load(tmp_path / "b.gcm")
    assert np.array_equal(found.weights["weight"], state["weight"])
    assert np.array_equal(found.weights["bias"], stored.weights["bias"])
    assert [(e.text, len(e.natives), len(e.golden)) for e in found.entries] == [
        (e.text, len(e.natives), len(e.golden)) for e in stored.entries
    ]
    assert found.manifest.weights == stored.manifest.weights


def test_sample_calls_and_native_code_are_of_the_new_weights(tmp_path: Path):
    make(tmp_path / "a.gcm")
    save_trained(
        model_content.load(tmp_path / "a.gcm"), {"weight": np.full((2, 3), 0.5, np.float32)}, tmp_path / "b.gcm"
    )
    report = selftest(tmp_path / "b.gcm", trust=True)
    assert report.good and {c.entry for c in report.cases} == {"infer", "train_step", "twice"}
    assert all(c.calls == 2 for c in report.cases)


def test_the_same_weights_give_the_same_bytes(tmp_path: Path):
    make(tmp_path / "a.gcm")
    stored = model_content.load(tmp_path / "a.gcm")
    save_trained(stored, dict(stored.weights), tmp_path / "b.gcm")
    assert (tmp_path / "b.gcm").read_bytes() == (tmp_path / "a.gcm").read_bytes()
