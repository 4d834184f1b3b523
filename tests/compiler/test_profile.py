"""profile: the stamped program computes what the program computes, and its stamps are in order."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.cli.commands.profile import text
from graphc.codegen.llvm.entry import emit_stamped
from graphc.codegen.llvm.stamps import LEAD, stamp_count
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.threads.execution import Execution
from graphc.compiler import profile as compiler_profile
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.freeze import freeze
from graphc.compiler.profile import load_stamped, profile
from graphc.compiler.stages import Stages
from graphc.errors import ArgumentError, CompileError
from graphc.models.model_trace import snapshot
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
    report = snapshot(Net().train(train), [gc.tensor(X)])
    return Stages(freeze(report.graph, report.state())), report.state()


@pytest.mark.parametrize("train", [False, True])
def test_stamped_programs_compute_the_same(train: bool):
    stages, state = traced(train)
    program, stamped = load_compiled(compile_stages(stages)), load_stamped(stages)
    bound = [tuple(state[b.path].copy() for b in program.bound) for _ in range(2)]
    expected = program.run([X], bound[0])
    *report, stamps = stamped.run([X], bound[1])
    for a, b in zip((*expected, *bound[0]), (*report, *bound[1]), strict=True):
        np.testing.assert_array_equal(a, b)
    assert stamps.shape == (stamp_count(stages.scheduled),) and stamps[0] == LEAD
    count = len(stages.scheduled.calls)
    assert (np.diff(stamps[1:-count]) > 0).all() and (stamps[-count:] == 1).all()


def test_stamps_around_all_calls_together():
    stages, state = traced(False)
    program = load_stamped(stages, each=False)
    *_, stamps = program.run([X], tuple(state[b.path] for b in program.bound))
    assert stamps.shape == (1 + LEAD + 2,) and (np.diff(stamps[1:-1]) > 0).all() and stamps[-1] == 1


def test_no_kernel_passes_a_stamp():
    text = emit_stamped(traced(False)[0].scheduled, target_named("avx2"), Execution()).text
    lines = text.splitlines()
    reads = [i for i, line in enumerate(lines) if "call i64 @llvm.readcyclecounter" in line]
    assert reads and all("lfence" in lines[i - 1] and "lfence" in lines[i + 1] for i in reads)


def test_profile():
    stages, state = traced(True)
    before = {k: v.copy() for k, v in state.items()}
    report = profile(stages, [X], state, seconds=0.02, rounds=5)
    assert [c.report.kernel for c in report.calls] == [c.kernel for c in stages.scheduled.calls]
    assert sum(c.share for c in report.calls) == pytest.approx(1)
    assert report.kernels == pytest.approx(sum(c.seconds for c in report.calls)) and 0 < report.overhead < 0.01
    assert all(0 <= best <= low <= high for best, low, high in (c.spread for c in report.calls))
    assert 3 <= report.rounds <= 5 and report.seconds > 0
    assert sum(report.by_module().values()) == pytest.approx(sum(c.seconds for c in report.calls))
    assert {"norm", "last"} <= set(report.by_module())
    assert all(c.bound in ("compute", "memory") for c in report.calls)
    assert json.loads(json.dumps(report.as_json()))["calls"][0]["report"]["kernel"] == "k0"
    for path, array in before.items():
        np.testing.assert_array_equal(state[path], array)


@pytest.mark.parametrize(("spent", "messages"), [(1e-9, False), (1e-6, True)])
def test_calls_shorter_than_the_taking_of_time_have_no_rates(
    monkeypatch: pytest.MonkeyPatch, spent: float, messages: bool
):
    stages, state = traced(False)
    count = len(stages.scheduled.calls)
    times = Times((spent,) * count, spent, 3, resolution=1e-8, spread=((spent,) * 3,) * count)
    monkeypatch.setattr(compiler_profile, "time_programs", lambda *args: [times, times])
    monkeypatch.setattr(compiler_profile, "call_overhead", lambda *args: 0.0)
    report = profile(stages, [X], state)
    assert all(
        (c.peak_fraction is not None) is messages and (c.copy_fraction is not None) is messages for c in report.calls
    )
    assert any("-" in line.split() for line in text(report).splitlines()) is not messages
    assert ("< 10 ns" in text(report)) is not messages and ("~" in text(report)) is not messages


def test_a_busy_machine_is_noted(monkeypatch: pytest.MonkeyPatch):
    stages, state = traced(False)
    count = len(stages.scheduled.calls)
    times = Times((1e-6,) * count, 1e-6 * count, 3, spread=((1e-6,) * 3,) * count)
    monkeypatch.setattr(compiler_profile, "call_overhead", lambda *args: 0.0)
    for seconds_of_call, noted in ((1e-6 * count, False), (2e-6 * count, True)):
        monkeypatch.setattr(
            compiler_profile, "time_programs", lambda *args, w=seconds_of_call: [times, replace(times, total=w)]
        )
        assert ("something else ran" in text(profile(stages, [X], state))) is noted


def test_time_counts_for_the_module_of_a_product():
    stages, state = traced(False)
    report = profile(stages, [X], state, seconds=0.01, rounds=3)
    assert {"first", "last"} <= set(report.by_module())


def test_wrong_inputs():
    stages, state = traced(False)
    with pytest.raises(ArgumentError):
        profile(stages, [], state)


def test_machines_without_a_readable_counter():
    with pytest.raises(CompileError, match="cycle counter"):
        emit_stamped(traced(False)[0].scheduled, target_named("neon"), Execution())


def test_repeated_calls_take_as_long_as_all_their_runs():
    net, x = nn.LSTM(8, 16), np.random.default_rng(0).standard_normal((200, 1, 8)).astype(np.float32)
    report = snapshot(net, [gc.tensor(x)])
    stages, state = Stages(report.graph), report.state()
    program, stamped = load_compiled(compile_stages(stages)), load_stamped(stages)
    expected = program.run([x], tuple(state[b.path] for b in program.bound))
    *results, stamps = stamped.run([x], tuple(state[b.path] for b in stamped.bound))
    for a, b in zip(expected, results, strict=True):
        np.testing.assert_array_equal(a, b)
    count = len(stages.scheduled.calls)
    runs = [c.runs for c in stages.scheduled.calls]
    assert (np.diff(stamps[1:-count]) > 0).all() and stamps[-count:].tolist() == runs
    times = profile(stages, [x], state, seconds=0.02, rounds=5)
    repeated = {i for i, c in enumerate(stages.scheduled.calls) if c.loops}
    assert repeated and all(times.calls[i].seconds > 0 for i in repeated)
    (product,) = [times.calls[i].report for i in repeated if times.calls[i].report.kind == "contraction"]
    assert product.flops >= 200 * 2 * 16 * 64 and product.ops[0] == "matmul"


def test_loops_that_values_end_and_branches_count_their_runs():
    def function(x):
        y = gc.cond(x.sum() > 0, lambda v: v * 2.0, lambda v: v - 1.0, (x,))
        return gc.while_loop(lambda c: c[1] < 5, lambda c: (c[0].cos(), c[1] + 1), (y, gc.tensor(0)))[0]

    x = np.ones((2, 3), np.float32)
    report = snapshot(function, [gc.tensor(x)])
    stages = Stages(report.graph)
    *_, stamps = load_stamped(stages).run([x], ())
    count = len(stages.scheduled.calls)
    runs = dict(zip([c.values for c in stages.scheduled.calls], stamps[-count:].tolist(), strict=True))
    looped = {v: n for v, n in runs.items() if any("cos" in name for name in v)}
    assert set(looped.values()) == {5}
    branches = {c.loops[0].flag: n for c, n in zip(stages.scheduled.calls, stamps[-count:], strict=True) if c.loops}
    assert branches["cond.then"] == 1 and branches["cond.otherwise"] == 0
