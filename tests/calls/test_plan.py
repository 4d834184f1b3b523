"""Memory and time of programs, planned without a call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.calls.plan import plan_of
from graphc.calls.variant import Variant
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.errors import ArgumentError


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


def test_the_plan_of_one_program_for_all_sizes_is_that_of_a_call():
    batch = gc.Dim("batch", 1, 512, hint=16)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.LayerNorm(32), nn.Linear(32, 4))
    f = gc.compile(model, dims={"input": (batch, 8)})
    with gc.no_grad():
        small, large = f.plan(gc.rand(2, 8)), f.plan(gc.rand(512, 8))
        assert f.programs[0].arena == f.plan(gc.rand(16, 8)).arena
    assert len(f.programs) == 1 and small.signature == large.signature == ("input: f32[batch,8]",)
    assert small.arena < large.arena and small.code == large.code
    both = [f.plan(gc.rand(n, 8)) for n in (2, 512)]
    assert len(f.programs) == 2 and both[1].arena > both[0].arena and both[0].code > small.code


def test_the_plan_of_a_program_for_sizes_by_name():
    batch = gc.Dim("batch", 1, 512, hint=16)
    graph = gc.trace(perceptron(), gc.rand(16, 64), dims={"input": (batch, 64)})
    program = load_compiled(compile_graph(graph))
    assert plan_of(program, sizes={"batch": 512}).arena > plan_of(program, sizes={"batch": 2}).arena
    assert plan_of(program, sizes={"batch": 16}) == plan_of(program)
    with pytest.raises(ArgumentError, match="there is no dimension rows"):
        plan_of(program, sizes={"rows": 3})
    with pytest.raises(ArgumentError, match="batch is 513"):
        plan_of(program, sizes={"batch": 513})
