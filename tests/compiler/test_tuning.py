"""Tuning: which settings and register blocks win, what is kept of them, and that results stay the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.machine.settings import SETTINGS, parse_changes, with_changes
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.pipeline import find_blocks
from graphc.compiler import tuning as module
from graphc.compiler.cache import Cache, current
from graphc.compiler.compile import compile_stages, load_compiled
from graphc.compiler.duel import Duel, TimedProgram
from graphc.compiler.example_arrays import example_arrays
from graphc.compiler.explain import explain
from graphc.compiler.freeze import freeze, watch
from graphc.compiler.graph_programs import tuning_key
from graphc.compiler.ready import target_spec
from graphc.compiler.stages import Stages
from graphc.compiler.tuning import GAIN, Tuning, tune
from graphc.errors import CompileError
from graphc.models.model_trace import snapshot
from graphc.nn import functional as F
from graphc.runtime.profile import Times
from tools.cases import step_graph

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


def tuned(
    monkeypatch: pytest.MonkeyPatch,
    net: Net,
    disk: Cache | None,
    favourite: int = 0,
    gain: float = 1.0,
    speeds: Mapping[str, float] | None = None,
    seconds: float = 60.0,
    program_gain: float | None = None,
) -> Tuning:
    """Tune where the candidate block with that number is ``gain`` times faster than all others, and the program with
    these blocks ``program_gain`` times (None: as much). ``speeds`` are those of programs by changed costs."""
    stages = stages_of(net)
    blocks = find_blocks(stages.lowered, stages.target)
    favourites = {b.key: b.labels[favourite] for b in blocks.values()}
    programs: dict[int, float] = {}

    def speed_of(stages: Stages) -> float:
        fastest = (program_gain or gain) if stages.choices == favourites else 1.0
        for changes, speed in (speeds or {}).items():
            costs = stages.target.costs
            fastest *= speed if with_changes(costs, parse_changes(changes, costs)) == costs else 1.0
        return fastest

    class Fake(module._Bench):
        def trial(self, chosen):
            trial = super().trial(chosen)
            programs[id(trial.executable)] = gain if list(chosen.values()) == list(favourites.values()) else 1.0
            return trial

    def time_calls(program, inputs, bound, seconds, rounds, quantile):
        program.run(inputs, bound)
        seconds = 1e-3 / programs[id(program)]
        return Times((seconds,) * len(stages.scheduled.calls), 0.0, 1)

    monkeypatch.setattr(module, "_Bench", Fake)
    monkeypatch.setattr(module, "time_calls", time_calls)
    monkeypatch.setattr(module, "_code", lambda stages: stages.target.costs)
    monkeypatch.setattr(TimedProgram, "time", lambda self, seconds=0.0: 1e-3 / speed_of(self.stages))
    return tune(stages, [X], {}, disk, candidates=4, seconds=seconds)


def key_of(net: Net) -> str:
    return tuning_key(stages_of(net).traced)


def test_the_fastest_block_is_used_from_then_on(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache):
    before = stages_of(net)
    expected = load_compiled(compile_stages(before))(X)
    result = tuned(monkeypatch, net, cache, favourite=3, gain=2.0)
    names = labels(before)
    assert result.kept and result.after < result.before
    assert {k.kernel: (k.estimated, k.chosen) for k in result.kernels} == {n: (c[0], c[3]) for n, c in names.items()}
    assert all(k.gain == pytest.approx(2.0) and k.candidates == 4 and k.calls == 1 for k in result.kernels)
    after = stages_of(net)
    assert cache.choices(target_spec(after.target)) == {k.key: k.chosen for k in result.kernels} | {key_of(net): ""}
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
    assert cache.choices(target_spec(stages_of(net).target)) == {key_of(net): ""}


def test_a_choice_is_dropped_when_it_wins_no_more(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache):
    spec = target_spec(stages_of(net).target)
    tuned(monkeypatch, net, cache, favourite=1, gain=2.0)
    assert len(cache.choices(spec)) == 3
    cache.choose(spec, {"of another program": "1x1"})
    tuned(monkeypatch, net, cache, favourite=0, gain=2.0)
    assert cache.choices(spec) == {"of another program": "1x1", key_of(net): ""}


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


def test_a_program_without_products_has_only_settings(cache: Cache):
    result = snapshot(lambda x: x.exp(), [gc.tensor(X)])
    done = tune(Stages(result.graph), [X], {}, cache)
    assert done.kernels == () and done.settings and not done.untried


def test_real_times(net: Net):
    messages: list[str] = []
    result = tune(stages_of(net), [X], {}, candidates=2, tell=messages.append)
    assert len(result.kernels) == 2 and all(k.seconds > 0 and k.candidates == 2 for k in result.kernels)
    assert [s.setting for s in result.settings] == [s.name for s in SETTINGS]
    assert messages[0] == "building the program without tuning" and any("turn 3 of 3" in text for text in messages)
    assert result.as_json()["kernels"][0]["gain"] >= 1


LONG, TILES = "lanes.long_copies=1", "memory.tile_step=0.5"


def test_a_setting_that_wins_is_used_from_then_on(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache):
    result = tuned(monkeypatch, net, cache, speeds={LONG: 1.1})
    assert result.kept and result.changes == LONG and not result.blocks and result.before == 1.1 * result.after
    stages = stages_of(net)
    assert cache.choices(target_spec(stages.machine)) == {key_of(net): LONG}
    assert stages.target.costs == with_changes(stages.machine.costs, {"lanes.long_copies": 1})
    other = Stages(snapshot(lambda x: x.exp(), [gc.tensor(X)]).graph)
    assert other.target is other.machine


def test_a_winner_is_the_base_of_the_next_candidates(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache):
    closer = "memory.tile_step=2.0"
    result = tuned(
        monkeypatch, net, cache, speeds={LONG: 1.1, TILES: 1.1, closer: 1.2, "memory.non_temporal_bytes=0": 1.02}
    )
    outcomes = {s.changes: s.outcome for s in result.settings}
    assert outcomes[LONG] == outcomes[TILES] == outcomes[closer] == "kept"
    assert outcomes["contraction.panel_l1=1"] == "not faster"
    assert result.changes == f"{LONG} {closer}"


def test_faster_blocks_of_small_kernels_are_kept(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache):
    result = tuned(monkeypatch, net, cache, favourite=2, gain=2.0, program_gain=1.01)
    assert result.kept and result.blocks and result.before / result.after == pytest.approx(1.01)


def test_faster_blocks_in_a_program_that_is_no_faster_are_dropped(
    monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache
):
    result = tuned(monkeypatch, net, cache, favourite=2, gain=2.0, program_gain=1.0)
    assert not result.kept and all(k.chosen != k.estimated for k in result.kernels)
    assert cache.choices(target_spec(stages_of(net).machine)) == {key_of(net): ""}


def test_winners_that_lose_against_the_untuned_program_are_dropped(
    monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache
):
    duels = iter([True, *[False] * len(SETTINGS)])
    monkeypatch.setattr(module, "fight", lambda old, new, gain=1.03: Duel(1.0, 1.0, 9 * next(duels, False), 9))
    result = tuned(monkeypatch, net, cache)
    assert [s.outcome for s in result.settings][:2] == ["kept", "not faster"]
    assert not result.kept and result.changes == "" and result.choices()[key_of(net)] == ""


def test_a_spent_budget_says_what_was_not_tried(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache):
    tuned(monkeypatch, net, cache, speeds={LONG: 1.1})
    result = tuned(monkeypatch, net, cache, seconds=1e-9)
    assert {s.outcome for s in result.settings} == {"not tried"} and result.untried == len(SETTINGS) + 1
    assert cache.choices(target_spec(stages_of(net).machine)) == {key_of(net): LONG}


def test_an_interrupted_search_keeps_nothing(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache):
    def stop(message: str) -> None:
        if message.startswith("timing all"):
            raise KeyboardInterrupt

    def seconds_of(program: TimedProgram, seconds: float = 0.0) -> float:
        return 1.0 if program.stages.target.costs.lanes.long_copies == 1 else 2.0

    monkeypatch.setattr(TimedProgram, "time", seconds_of)
    monkeypatch.setattr(module, "_code", lambda stages: stages.target.costs)
    with pytest.raises(KeyboardInterrupt):
        tune(stages_of(net), [X], {}, cache, candidates=1, tell=stop)
    assert not list(cache.folder.glob("*.tuned"))


def test_strict_order_keeps_the_lowered_program(net: Net):
    result = snapshot(net, [gc.tensor(X)])
    stages = Stages(freeze(result.graph, result.state()), target=target_named("host:strict"))
    done = tune(stages, [X], {}, candidates=1)
    assert [s.setting for s in done.settings] == [s.name for s in SETTINGS if not s.lowers]


def test_settings_outlive_another_training_and_the_form_of_weights(
    monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache
):
    tuned(monkeypatch, net, cache, speeds={LONG: 1.1})
    traced = snapshot(Net().eval(), [gc.tensor(X)])
    live, state = traced.graph, traced.state()
    for graph in (live, watch(live, list(state)), freeze(live, state)):
        assert Stages(graph).target.costs.lanes.long_copies == 1


def test_files_and_libraries_use_settings(monkeypatch: pytest.MonkeyPatch, net: Net, cache: Cache, tmp_path: Path):
    gc.export(net, gc.tensor(X), path=tmp_path / "net.gcm")
    tuned(monkeypatch, net, cache, speeds={LONG: 1.1})
    targets: list[int] = []
    schedule = Stages._schedule

    def spy(self, program):
        targets.append(self.target.costs.lanes.long_copies)
        return schedule(self, program)

    monkeypatch.setattr(Stages, "_schedule", spy)
    gc.load(tmp_path / "net.gcm")(X)
    gc.export(net, gc.tensor(X), path=tmp_path / "native.gcm", native=True)
    gc.build_library(tmp_path / "net.gcm", path=tmp_path / "libnet.so", target="host")
    with gc.no_grad():
        gc.compile(net)(gc.tensor(X))
    assert len(targets) >= 4 and set(targets) == {1}


def test_costs_of_another_version_change_nothing(net: Net, cache: Cache):
    stages = stages_of(net)
    for text in ("lanes.gone=1", "strict_order=1", "lanes.copies=1", "lanes.long_copies=many"):
        cache.choose(target_spec(stages.machine), {key_of(net): text})
        assert stages_of(net).target is stages.machine


def test_programs_with_written_states_start_each_round_from_the_same_state():
    model = nn.Linear(4, 2)
    optimizer = gc.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    rows, labels = gc.tensor(X[:, :4]), gc.tensor(X[:, :2])
    stages = Stages(step_graph(model, F.mse_loss, optimizer, rows, labels), tuned={})
    inputs, weights = example_arrays(stages, {})
    program = TimedProgram(stages, inputs, weights)
    program.time(0.0)
    once = [a.copy() for a in program._bound]
    program.time(0.0)
    assert all(np.array_equal(a, b) for a, b in zip(once, program._bound, strict=True))
    assert any(not np.array_equal(a, b) for a, b in program._written)


def test_programs_that_random_arrays_cannot_time_are_refused():
    def halved(x):
        return gc.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x)

    graph = snapshot(halved, [gc.tensor(X)]).graph
    with pytest.raises(CompileError, match="values decide how long it loops"):
        tune(Stages(graph), [X], {})
