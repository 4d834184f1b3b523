"""What programs take, known without a call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.compiled.variant import Variant


def perceptron() -> nn.Module:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).eval()


def test_a_plan_needs_no_call(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a program was called")

    net = perceptron()
    fast = gc.compile(net)
    with gc.no_grad():
        with monkeypatch.context() as patch:
            patch.setattr(Variant, "run", refuse)
            small, large = fast.plan(gc.ones(64, 64)), fast.plan(gc.ones(256, 64))
        assert small.prepacked == large.prepacked > 2 * 64 * 128 * 4 - 1
        assert large.nanoseconds > small.nanoseconds > 0 and small.code > 0 and large.arena >= small.arena
        assert small.signature[0].endswith("f32[64,64]") and "arena" in str(small)
        assert [p.signature for p in fast.programs] == [small.signature, large.signature]
        assert fast(gc.ones(64, 64)).allclose(net(gc.ones(64, 64)), atol=1e-4)
        assert len(fast.variants) == 2 and fast.programs[-1] == small
        held = sum(a.nbytes for a in fast.variants[0].prepacked())
        assert held == small.prepacked


def test_the_plan_of_a_program_with_gradients_counts_both_passes():
    fast = gc.compile(perceptron())
    with gc.no_grad():
        forward = fast.plan(gc.ones(64, 64))
    both = fast.plan(gc.ones(64, 64))
    assert both.code > forward.code and both.nanoseconds > forward.nanoseconds


def test_the_plan_of_a_model_file(tmp_path: Path):
    net = perceptron()
    gc.export(net, gc.ones(4, 64), path=tmp_path / "net.gcm")
    plan = gc.load(tmp_path / "net.gcm").plan()
    assert plan.constants >= 2 * 64 * 128 * np.dtype(np.float32).itemsize and plan.nanoseconds > 0
    assert plan.signature[0].endswith("f32[4,64]") and plan.prepacked == 0
