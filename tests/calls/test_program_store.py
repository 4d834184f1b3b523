"""Programs that are kept: few enough, small enough, the ones used last; results are right whatever goes."""

from __future__ import annotations

import gc as collector
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn, optim
from graphc.calls import program_store
from graphc.calls.program_store import SAME_KEY, OneForAll, ProgramStore, trim
from graphc.errors import CompileError
from graphc.nn import functional as F
from tests.base.test_locks import in_child

Option = Callable[[str, Any], None]


@pytest.fixture
def option(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Option:
    """Sets an option; the cache on disk is in a folder of its own, and there are no warnings."""
    monkeypatch.setenv("GRAPHC_CACHE", "on")
    monkeypatch.setenv("GRAPHC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GRAPHC_WARN_PROGRAMS", "0")
    return lambda name, value: monkeypatch.setenv(f"GRAPHC_{name}", str(value))


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch):
    """Programs of other tests do not count."""
    monkeypatch.setattr(program_store, "_stores", weakref.WeakSet())


def model() -> nn.Module:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)).eval()


def batch(rows: int) -> gc.Tensor:
    return gc.from_numpy(np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32))


def held_bytes() -> int:
    return program_store._held([program for store in program_store._stores for program in store])


class _Program:
    def __init__(self, nbytes: int = 0, *arrays: np.ndarray):
        self.used, self.is_stale, self.nbytes, self.arrays = 0, False, nbytes, arrays

    def prepacked(self) -> tuple[np.ndarray, ...]:
        return self.arrays


class _Owner:
    def __init__(self) -> None:
        self.forgotten = 0
        self.store: ProgramStore[_Program] = ProgramStore(self.forget)

    def forget(self) -> None:
        self.forgotten += 1


def test_the_program_that_was_not_used_for_the_longest_goes(option: Option):
    option("PROGRAMS", 3)
    owner = _Owner()
    programs = [_Program() for _ in range(5)]
    for key, program in enumerate(programs[:3]):
        owner.store.add(key, program)
    owner.store.use(programs[0])
    owner.store.add(3, programs[3])
    assert set(owner.store) == {programs[0], programs[2], programs[3]} and 1 not in owner.store
    owner.store.use(programs[2])
    owner.store.add(4, programs[4])
    assert set(owner.store) == {programs[2], programs[3], programs[4]} and owner.forgotten == 2


def test_what_was_in_use_until_now_is_younger_than_what_was_not():
    owner, programs = _Owner(), [_Program() for _ in range(3)]
    for key, program in enumerate(programs):
        owner.store.add(key, program)
    owner.store.use(programs[0])
    # Calls of ``last`` say nothing; the next one does.
    other = _Owner()
    other.store.add(0, _Program())
    owner.store.use(programs[1])
    assert programs[0].used > next(iter(other.store)).used


def test_a_program_is_used_while_another_thread_drops_all(monkeypatch: pytest.MonkeyPatch):
    owner = _Owner()
    first, second = _Program(), _Program()
    owner.store.add("a", first)
    owner.store.add("b", second)

    class Meanwhile:
        def __next__(self) -> int:
            owner.store.clear()
            return 100

    monkeypatch.setattr(program_store, "_uses", Meanwhile())
    owner.store.use(first)
    assert owner.store.last is first and second.used == 100


def test_programs_of_the_same_arguments_are_few_and_stale_ones_go_first():
    owner = _Owner()
    programs = [_Program() for _ in range(SAME_KEY)]
    for program in programs:
        owner.store.add("key", program)
    programs[3].is_stale = True
    owner.store.add("key", _Program())
    assert programs[3] not in owner.store.find("key") and len(owner.store) == SAME_KEY
    owner.store.use(programs[0])
    owner.store.add("key", _Program())
    found = owner.store.find("key")
    assert programs[0] in found and programs[1] not in found and len(found) == SAME_KEY
    owner.store.add("key", _Program(), alone=True)
    assert len(owner.store) == 1


def test_a_program_is_made_once_while_calls_with_other_keys_go_on():
    store: ProgramStore[_Program] = ProgramStore(limit=2)
    ready = store.find_or_make("ready", _Program)
    begun, go_on = threading.Event(), threading.Event()
    made: list[_Program] = []

    def slow() -> _Program:
        begun.set()
        assert go_on.wait(60)
        made.append(_Program())
        return made[-1]

    results: list[_Program] = []
    threads = [threading.Thread(target=lambda: results.append(store.find_or_make("slow", slow))) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    assert store.find_or_make("ready", _Program) is ready
    go_on.set()
    for thread in threads:
        thread.join()
    assert results == made * 2 and store.last is made[0]
    store.find_or_make("third", _Program)
    assert "ready" not in store and len(store) == 2


def test_a_program_that_cannot_be_made_is_tried_again():
    store: ProgramStore[_Program] = ProgramStore()

    def failing() -> _Program:
        raise CompileError("not now")

    with pytest.raises(CompileError):
        store.find_or_make(0, failing)
    assert store.find_or_make(0, _Program) is store.last


def test_one_program_for_all_sizes_is_tried_until_it_fails(caplog: pytest.LogCaptureFixture):
    def failing() -> str:
        raise CompileError("too many")

    one_for_all = OneForAll("net")
    assert one_for_all.make(lambda: "general", failing) == "general"
    with pytest.raises(CompileError):  # the error has nothing to do with sizes
        one_for_all.make(failing, failing)
    assert one_for_all.holds and not caplog.text
    assert one_for_all.make(failing, lambda: "alone") == "alone"
    assert one_for_all.make(lambda: "general", lambda: "alone again") == "alone again"
    assert "net is compiled for each size of its dimensions: too many" in caplog.text


def test_a_program_for_all_sizes_is_made_again_once_a_question_has_an_answer(caplog: pytest.LogCaptureFixture):
    answers: list[bool] = []

    def general() -> str:
        if len(answers) < 2:
            raise CompileError("3 <= n depends on the sizes of a call")
        return "general"

    one_for_all = OneForAll("net")
    assert one_for_all.make(general, lambda: "alone", lambda _: not answers.append(True)) == "general"
    assert one_for_all.holds and not caplog.text
    answers.clear()
    assert one_for_all.make(general, lambda: "alone", lambda _: False) == "alone"
    assert not one_for_all.holds


def test_bytes_of_all_functions_are_limited_and_shared_arrays_count_once(option: Option):
    option("PROGRAM_MEMORY", 1000)
    first, second = _Owner(), _Owner()
    shared = np.zeros(500, np.uint8)
    first.store.add(0, _Program(100, shared))
    first.store.add(1, _Program(100, shared))
    second.store.add(0, _Program(100, shared))
    assert held_bytes() == 800
    trim()
    assert len(first.store) == 2 and len(second.store) == 1
    second.store.add(1, _Program(300))
    trim()
    assert 0 not in first.store and len(second.store) == 2 and held_bytes() == 1000
    second.store.add(2, _Program(5000))
    trim()
    assert len(first.store) == 1 and list(second.store) == [second.store.last], "what was used last stays"


@pytest.mark.slow
def test_a_thousand_random_sizes_stay_within_the_limits(option: Option):
    net = model()
    fast = gc.compile(net)
    option("PROGRAMS", 4)
    limit = 64 << 10
    option("PROGRAM_MEMORY", limit)
    most = 0
    with gc.no_grad():
        fast(batch(1))
        largest = held_bytes()
        assert 0 < largest < limit
        for rows in np.random.default_rng(0).integers(1, 40, 1000):
            x = batch(int(rows))
            np.testing.assert_allclose(fast(x).numpy(), net(x).numpy(), rtol=1e-4, atol=1e-5)
            most = max(most, len(fast.variants))
            assert held_bytes() <= limit and len(fast.variants) <= 4
    assert most > 1


def test_a_small_limit_of_bytes_leaves_the_last_program(option: Option):
    option("PROGRAM_MEMORY", 1)
    net = model()
    fast = gc.compile(net)
    with gc.no_grad():
        for rows in (1, 2, 1, 3):
            assert fast(batch(rows)).allclose(net(batch(rows)), atol=1e-5)
            assert len(fast.variants) == 1


def test_programs_that_are_made_for_plans_stay_within_the_limit_of_bytes(option: Option):
    option("PROGRAM_MEMORY", 1)
    fast = gc.compile(model())
    with gc.no_grad():
        for rows in (1, 2, 3):
            assert fast.plan(batch(rows)).signature[0].endswith(f"[{rows},16]")
    assert len(fast.variants) == 1


def test_a_program_that_goes_frees_its_memory_and_its_results_stay(option: Option):
    option("PROGRAMS", 1)
    net = model()
    fast = gc.compile(net)
    with gc.no_grad():
        x = batch(5)
        for _ in range(3):
            result = fast(x)
        view = result[1:3]
        expected = net(x)
        gone = weakref.ref(fast.variants[0])
        fast(batch(6))
        collector.collect()
        assert gone() is None
        assert view.allclose(expected[1:3], atol=1e-5)
        assert fast(x).allclose(expected, atol=1e-5) and len(fast.variants) == 1


def test_gradients_of_a_program_that_has_gone(option: Option):
    option("PROGRAMS", 1)
    net = model()
    fast = gc.compile(net)
    loss = fast(batch(5)).sum()
    fast(batch(6))
    loss.backward()
    found = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(batch(5)).sum().backward()
    assert all(a.allclose(p.grad, atol=1e-4) for a, p in zip(found, net.parameters(), strict=True))


def test_programs_of_a_training_step_are_limited(option: Option):
    option("PROGRAMS", 2)
    net = model()
    step = gc.compile_step(net, F.mse_loss, optim.SGD(net.parameters(), lr=0.01))
    for rows in (1, 2, 3, 1, 2):
        assert np.isfinite(step(batch(rows), gc.zeros(rows, 4)).item())
        assert len(step.graphs) <= 2


def test_a_function_that_calls_itself_while_programs_go(option: Option):
    option("PROGRAMS", 1)
    inner = gc.compile(lambda x: x * 2 + 1)

    def outer(x: gc.Tensor) -> gc.Tensor:
        return inner(x) + inner(x[:1])

    fast = gc.compile(outer)
    for rows in (2, 3, 2):
        x = gc.ones(rows)
        assert fast(x).tolist() == [6.0] * rows and outer(x).tolist() == [6.0] * rows


def test_threads_call_while_programs_go(option: Option):
    option("PROGRAMS", 2)
    net = model()
    fast = gc.compile(net)
    with gc.no_grad():
        expected = {rows: net(batch(rows)).numpy() for rows in range(1, 7)}
    errors: list[BaseException] = []

    def work(first: int) -> None:
        try:
            with gc.no_grad():
                for i in range(60):
                    rows = 1 + (first + i // 3) % 6
                    np.testing.assert_allclose(fast(batch(rows)).numpy(), expected[rows], rtol=1e-4, atol=1e-5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(fast.variants) <= 2


def test_a_child_drops_programs_while_a_thread_of_the_parent_held_the_lock(option: Option):
    option("PROGRAMS", 1)
    net = model()
    fast = gc.compile(net)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with program_store._lock:
            inside.set()
            leave.wait()

    with gc.no_grad():
        fast(batch(2))
        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait()
        try:
            assert in_child(lambda: fast(batch(3)).allclose(net(batch(3)), atol=1e-5) and len(fast.variants) == 1)
        finally:
            leave.set()
            thread.join()
        assert fast(batch(3)).shape == (3, 4)
