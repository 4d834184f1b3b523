"""compile(tune=): which programs are searched, once; what it refuses; and that the choices are found again."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.compiler import tune_budget as module
from graphc.compiler.cache import Cache, current
from graphc.compiler.ready import target_spec
from graphc.compiler.stages import Stages
from graphc.compiler.tuning import Tuning
from graphc.errors import ArgumentError, CompileError

X = gc.tensor(np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32))
CHANGES = "lanes.long_copies=1"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    result = current()
    assert result is not None
    return result


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """Replace searches by one that keeps a setting at once; return names and budgets of the programs."""
    log: list[tuple[str, float]] = []

    def tune(stages: Stages, inputs: Any, weights: Any, disk: Cache, seconds: float, tell: Any) -> Tuning:
        assert [a.shape for a in inputs] == [v.shape for v in stages.traced.inputs if v.node.attrs["cls"] == "input"]
        log.append((stages.name, seconds))
        tuning = Tuning(stages.name, module.tuning_key(stages.traced), (), (), 2.0, 1.0, True, CHANGES, False, 0, 4.0)
        disk.choose(target_spec(stages.machine), tuning.choices())
        return tuning

    monkeypatch.setattr(module, "_tune", tune)
    return log


@pytest.fixture
def compiled_with(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the costs of the programs that are compiled."""
    log: list[int] = []
    schedule = Stages._schedule

    def spy(self: Stages, program: Any) -> Any:
        log.append(self.target.costs.lanes.long_copies)
        return schedule(self, program)

    monkeypatch.setattr(Stages, "_schedule", spy)
    return log


@pytest.fixture
def deterministic() -> Iterator[None]:
    gc.use_deterministic_algorithms(True)
    yield
    gc.use_deterministic_algorithms(False)


def test_the_first_compile_searches_and_later_ones_find_its_choices(
    searches: list[tuple[str, float]], compiled_with: list[int]
):
    net = nn.Linear(8, 3)
    with gc.no_grad():
        gc.compile(net, tune=60)(X)
        assert searches == [("Linear", 60)] and compiled_with == [1]
        gc.compile(net, tune=60)(X)
        gc.compile(nn.Linear(8, 3))(X)
    assert len(searches) == 1 and set(compiled_with) == {1}


def test_all_programs_of_a_function_share_its_budget(searches: list[tuple[str, float]]):
    compiled = gc.compile(lambda x: x.exp(), tune=9)
    for rows in (1, 2, 3, 4):
        compiled(X[:rows])
    assert [seconds for _, seconds in searches] == [9, 5, 1]


def test_forward_and_backward_programs_are_searched(searches: list[tuple[str, float]]):
    net = nn.Linear(8, 3)
    gc.compile(net, tune=60)(X).sum().backward()
    assert [name for name, _ in searches] == ["Linear.forward", "Linear.backward"] and net.weight.grad is not None


def test_a_real_search(cache: Cache):
    net = nn.Linear(8, 3)
    with gc.no_grad():
        expected = net(X)
        result = gc.compile(net, tune=0.01)(X)
    np.testing.assert_allclose(result._data, expected._data, rtol=1e-5, atol=1e-5)
    assert len(list(cache.folder.glob("*.tuned"))) == 1


def test_other_compiles_search_nothing(searches: list[tuple[str, float]]):
    tuned = gc.compile(lambda x: x + 1, tune=60)
    gc.compile(lambda x: x * 2)(X)
    assert not searches
    tuned(X)
    gc.compile(lambda x: x * 3)(X)
    assert len(searches) == 1


def test_copies_keep_the_budget():
    copy = pickle.loads(pickle.dumps(gc.compile(nn.Linear(8, 3), tune=7)))
    assert copy._tune.seconds == copy._tune.left == 7


@pytest.mark.parametrize("seconds", [0, -1, "60", True, float("nan"), float("inf"), [1]])
def test_budgets_that_are_no_time(seconds: Any):
    with pytest.raises(ArgumentError, match="is not a time") as caught:
        gc.compile(nn.Linear(8, 3), tune=seconds)
    assert caught.value.remedy == "pass seconds, such as tune=300"


def test_arguments_that_exclude_a_search(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ArgumentError, match="calls do not wait"):
        gc.compile(nn.Linear(8, 3), tune=1, tier="auto")
    monkeypatch.setenv("GRAPHC_TIER", "auto")
    assert gc.compile(nn.Linear(8, 3), tune=1)._tier == "full"
    with pytest.raises(ArgumentError, match="cannot see what passes of your own do"):
        gc.compile(nn.Linear(8, 3), tune=1, passes=[object()])  # type: ignore[list-item]
    on_device = gc.compile(lambda x: x + 1, tune=1, device="cuda-emu")
    with pytest.raises(CompileError, match="tuning needs the standard passes"):
        on_device(X)


def test_a_search_needs_the_cache(monkeypatch: pytest.MonkeyPatch):
    compiled = gc.compile(lambda x: x + 1, tune=1)
    monkeypatch.setenv("GRAPHC_CACHE", "off")
    with pytest.raises(CompileError, match="the cache is off"):
        compiled(X)


@pytest.mark.usefixtures("deterministic")
def test_deterministic_algorithms_need_strict_order(searches: list[tuple[str, float]]):
    with pytest.raises(ArgumentError, match="deterministic algorithms"):
        gc.compile(nn.Linear(8, 3), tune=1)
    gc.compile(lambda x: x + 1, tune=1, strict_order=True)(X)
    assert len(searches) == 1


def test_deterministic_algorithms_are_asked_for_at_the_search_too():
    compiled = gc.compile(lambda x: x + 1, tune=1)
    gc.use_deterministic_algorithms(True)
    try:
        with pytest.raises(ArgumentError, match="deterministic algorithms"):
            compiled(X)
    finally:
        gc.use_deterministic_algorithms(False)
