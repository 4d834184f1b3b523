"""Tuning: which register block is taken for which figures, what is kept of it, and that results stay the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.schedule.pipeline import find_blocks
from graphc.compiler import tuning as module
from graphc.compiler.cache import Cache, current
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.explain import explain
from graphc.compiler.freeze import freeze
from graphc.compiler.ready import target_spec
from graphc.compiler.stages import Stages
from graphc.compiler.tuning import GAIN, Tuning, tune
from graphc.models.model_trace import snapshot
from graphc.nn import functional as F
from graphc.runtime.profile import Times

X = np.random.default_rng(0).standard_normal((48, 64)).astype(np.float32)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 96)
        self.last = nn.Linear(96, 40)

    def forward(self, x):
        return self.last(F.relu(self.first(x)))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    result = current()
    assert result is not None
    return result


@pytest.fixture(scope="module")
def net() -> Net:
    gc.manual_seed(0)
    return Net().eval()


def stages_of(net: Net) -> Stages:
    result = snapshot(net, [gc.tensor(X)])
    return Stages(freeze(result.graph, result.state()))


def labels(stages: Stages) -> dict[str, tuple[str, ...]]:
    return {name: blocks.labels for name, blocks in find_blocks(stages.lowered, stages.target).items()}


def tuned(monkeypatch: pytest.MonkeyPatch, net: Net, disk: Cache | None, favourite: int, gain: float) -> Tuning:
    """Tuning where the candidate with that number is ``gain`` times faster than all others."""
    stages = stages_of(net)
    blocks = find_blocks(stages.lowered, stages.target)
    favourites = [blocks[name].labels[favourite] for name in blocks]
    programs: dict[int, float] = {}

    class Fake(module._Bench):
        def trial(self, chosen):
            made = super().trial(chosen)
            programs[id(made.executable)] = gain if list(chosen.values()) == favourites else 1.0
            return made

    def time_calls(program, inputs, bound, seconds, rounds, quantile):
        program.run(inputs, bound)
        seconds = 1e-3 / programs[id(program)]
        return Times((seconds,) * len(stages.scheduled.calls), 0.0, 1)

    monkeypatch.setattr(module, "_Bench", Fake)
    monkeypatch.setattr(module, "time_calls", time_calls)
    return tune(stages, [X], {}, disk, candidates=4)


def test_the_fastest_block_is_used_from_then_on(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache):
    before = stages_of(net)
    expected = load_compiled(compile_stages(before))(X)
    result = tuned(monkeypatch, net, cache, favourite=3, gain=2.0)
    names = labels(before)
    assert result.kept and result.after < result.before
    assert {k.kernel: (k.estimated, k.chosen) for k in result.kernels} == {n: (c[0], c[3]) for n, c in names.items()}
    assert all(k.gain == pytest.approx(2.0) and k.candidates == 4 and k.calls == 1 for k in result.kernels)
    after = stages_of(net)
    assert cache.choices(target_spec(after.target)) == {k.key: k.chosen for k in result.kernels}
    assert [c.schedule for c in explain(after).calls] != [c.schedule for c in explain(before).calls]
    np.testing.assert_allclose(load_compiled(compile_stages(after))(X), expected, rtol=1e-5, atol=1e-5)


def test_compiled_functions_and_files_use_it(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache, tmp_path: Path):
    gc.export(net, gc.tensor(X), path=tmp_path / "net.gcm")
    expected = gc.load(tmp_path / "net.gcm")(X)
    programs = set(cache.folder.glob("*.program"))
    assert "cache" in (gc.load(tmp_path / "net.gcm").seconds or {})
    tuned(monkeypatch, net, cache, favourite=2, gain=2.0)
    again = gc.load(tmp_path / "net.gcm")
    assert "cache" not in (again.seconds or {}) and set(cache.folder.glob("*.program")) > programs
    np.testing.assert_allclose(again(X), expected, rtol=1e-5, atol=1e-5)
    with gc.no_grad():
        np.testing.assert_allclose(gc.compile(net)(gc.tensor(X))._data, expected, rtol=1e-5, atol=1e-5)
    assert "cache" in (gc.load(tmp_path / "net.gcm").seconds or {})


def test_a_small_gain_changes_nothing(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache):
    result = tuned(monkeypatch, net, cache, favourite=2, gain=(1 + GAIN) / 2)
    assert not result.kept and all(k.chosen == k.estimated and k.gain == 1 for k in result.kernels)
    assert cache.choices(target_spec(stages_of(net).target)) == {}


def test_a_choice_is_dropped_when_it_wins_no_more(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache):
    spec = target_spec(stages_of(net).target)
    tuned(monkeypatch, net, cache, favourite=1, gain=2.0)
    assert len(cache.choices(spec)) == 2
    cache.choose(spec, {"of another program": "1x1"})
    tuned(monkeypatch, net, cache, favourite=0, gain=2.0)
    assert cache.choices(spec) == {"of another program": "1x1"}


def test_every_block_computes_the_same(net: Net):
    stages = stages_of(net)
    blocks = find_blocks(stages.lowered, stages.target)
    expected = load_compiled(compile_stages(stages))(X)
    most = max(len(b.labels) for b in blocks.values())
    assert most > 8
    for number in range(0, most, 5):
        chosen = {b.key: b.labels[min(number, len(b.labels) - 1)] for b in blocks.values()}
        program = load_compiled(compile_stages(Stages(lowered=stages.lowered, tuned=chosen)))
        np.testing.assert_allclose(program(X), expected, rtol=1e-5, atol=1e-5)


def test_labels_of_no_block_are_ignored(net: Net):
    stages = stages_of(net)
    keys = [b.key for b in find_blocks(stages.lowered, stages.target).values()]
    wrong = Stages(lowered=stages.lowered, tuned=dict.fromkeys(keys, "3x5 nowhere"))
    assert wrong.text("scheduled") == stages.text("scheduled")


def test_equal_kernels_of_other_programs_have_the_same_key(net: Net):
    first, second = (
        [b.key for b in find_blocks(s.lowered, s.target).values()] for s in map(stages_of, (net, Net().eval()))
    )
    assert first == second and len(set(first)) == 2


def test_a_program_without_products_has_nothing_to_tune(cache: Cache):
    result = snapshot(lambda x: x.exp(), [gc.tensor(X)])
    done = tune(Stages(result.graph), [X], {}, cache, seconds=0.001)
    assert done.kernels == () and not done.kept and done.before == done.after


def test_real_times(net: Net):
    told: list[str] = []
    result = tune(stages_of(net), [X], {}, candidates=2, seconds=0.001, tell=told.append)
    assert len(result.kernels) == 2 and all(k.seconds > 0 and k.candidates == 2 for k in result.kernels)
    assert told[0] == "building candidate 1 of 2" and any("turn 3 of 3" in text for text in told)
    assert result.as_json()["kernels"][0]["gain"] >= 1
