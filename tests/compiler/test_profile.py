"""profile: the stamped program computes what the program computes, and its stamps are in order."""

from __future__ import annotations

import json

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.cli.profile import text
from graphc.codegen.llvm.entry import emit_stamped
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.threads.execution import Execution
from graphc.compiled.model_trace import snapshot
from graphc.compiler import profile as compiler_profile
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.freeze import freeze
from graphc.compiler.profile import load_stamped, profile
from graphc.compiler.stages import Stages
from graphc.errors import ArgumentError, CompileError
from graphc.nn import functional as F
from graphc.runtime.profile import Times


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 128)
        self.norm = nn.BatchNorm1d(128)
        self.last = nn.Linear(128, 10)

    def forward(self, x):
        return F.log_softmax(self.last(F.relu(self.norm(self.first(x)))), 1)


X = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)


def traced(train: bool) -> tuple[Stages, dict[str, np.ndarray]]:
    found = snapshot(Net().train(train), [gc.tensor(X)])
    return Stages(freeze(found.graph, found.state())), found.state()


@pytest.mark.parametrize("train", [False, True])
def test_stamped_programs_compute_the_same(train: bool):
    stages, state = traced(train)
    program, stamped = load_compiled(compile_stages(stages)), load_stamped(stages)
    bound = [tuple(state[b.path].copy() for b in program.bound) for _ in range(2)]
    expected = program.run([X], bound[0])
    *found, stamps = stamped.run([X], bound[1])
    for a, b in zip((*expected, *bound[0]), (*found, *bound[1]), strict=True):
        np.testing.assert_array_equal(a, b)
    assert stamps.shape == (len(stages.scheduled.calls) + 2,) and (np.diff(stamps) > 0).all()


def test_profile():
    stages, state = traced(True)
    before = {k: v.copy() for k, v in state.items()}
    found = profile(stages, [X], state, seconds=0.02, rounds=5)
    assert [c.report.kernel for c in found.calls] == [c.kernel for c in stages.scheduled.calls]
    assert sum(c.share for c in found.calls) == pytest.approx(1)
    assert 3 <= found.rounds <= 5 and found.seconds > 0
    assert sum(found.by_module().values()) == pytest.approx(sum(c.seconds for c in found.calls))
    assert {"norm", "last"} <= set(found.by_module())
    assert all(c.bound in ("compute", "memory") for c in found.calls)
    assert json.loads(json.dumps(found.as_json()))["calls"][0]["report"]["kernel"] == "k0"
    for path, array in before.items():
        np.testing.assert_array_equal(state[path], array)


@pytest.mark.parametrize(("spent", "told"), [(1e-9, False), (1e-6, True)])
def test_calls_shorter_than_the_taking_of_time_have_no_rates(monkeypatch: pytest.MonkeyPatch, spent: float, told: bool):
    stages, state = traced(False)
    count = len(stages.scheduled.calls)
    monkeypatch.setattr(compiler_profile, "time_calls", lambda *args: Times((spent,) * count, spent, 3, least=1e-8))
    found = profile(stages, [X], state)
    assert all((c.peak_fraction is not None) is told and (c.copy_fraction is not None) is told for c in found.calls)
    assert any("-" in line.split() for line in text(found).splitlines()) is not told


def test_wrong_inputs():
    stages, state = traced(False)
    with pytest.raises(ArgumentError):
        profile(stages, [], state)


def test_machines_without_a_readable_counter():
    with pytest.raises(CompileError, match="counter of cycles"):
        emit_stamped(traced(False)[0].scheduled, target_named("neon"), Execution())


def test_repeated_calls_take_as_long_as_all_their_runs():
    net, x = nn.LSTM(8, 16), np.random.default_rng(0).standard_normal((200, 1, 8)).astype(np.float32)
    found = snapshot(net, [gc.tensor(x)])
    stages, state = Stages(found.graph), found.state()
    program, stamped = load_compiled(compile_stages(stages)), load_stamped(stages)
    expected = program.run([x], tuple(state[b.path] for b in program.bound))
    *results, stamps = stamped.run([x], tuple(state[b.path] for b in stamped.bound))
    for a, b in zip(expected, results, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (np.diff(stamps) > 0).all()
    times = profile(stages, [x], state, seconds=0.02, rounds=5)
    repeated = {i for i, c in enumerate(stages.scheduled.calls) if c.loops}
    assert repeated and all(c.seconds > 0 for c in times.calls)
    (product,) = [times.calls[i].report for i in repeated if times.calls[i].report.kind == "contraction"]
    assert product.flops >= 200 * 2 * 16 * 64 and product.ops[0] == "matmul"
