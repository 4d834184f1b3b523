"""Figures, ratios and errors without any process."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.harness.measure import Figures, Row, alternate, describe_rows, relative_error
from benchmarks.workers.peer import measure_calls


class Recorder:
    """Stands in for a worker process: answers each question with the next of its times."""

    def __init__(self, name: str, log: list[str], answers: list[dict[str, object]]):
        self.name, self.log, self.answers = name, log, answers

    def ask(self, command: dict[str, object]) -> dict[str, object]:
        assert command == {"cmd": "time", "seconds": 0.5}
        self.log.append(self.name)
        return self.answers.pop(0)


def test_peers_take_turns_and_each_begins_once():
    log: list[str] = []
    times = {"a": [3.0, 1.0, 2.0], "b": [6.0, 6.0, 6.0], "c": [1.0, 1.0, 9.0]}
    processes = {name: Recorder(name, log, [{"ms": ms} for ms in values]) for name, values in times.items()}
    figures = {name: Figures() for name in processes}
    alternate(processes, figures, rounds=3, seconds=0.5)  # type: ignore[arg-type]
    assert "".join(log) == "abcbcacab"
    assert [figures[name].ms for name in "abc"] == [2.0, 6.0, 1.0]


def test_a_peer_that_fails_while_timed_has_no_time_and_is_left_out():
    log: list[str] = []
    processes = {
        "a": Recorder("a", log, [{"ms": 1.0}] * 3),
        "b": Recorder("b", log, [{"ms": 1.0}, {"error": "gone"}]),
        "c": Recorder("c", log, []),
    }
    figures = {"a": Figures(), "b": Figures(), "c": Figures(problem="absent")}
    alternate(processes, figures, rounds=3, seconds=0.5)  # type: ignore[arg-type]
    assert "".join(log) == "abbaa"
    assert figures["b"].ms is None
    assert figures["b"].problem == "gone"


def test_the_best_peer_is_never_graphc():
    row = Row(
        "w",
        {
            "graphc": Figures([2.0]),
            "graphc.compile": Figures([1.0]),
            "torch": Figures([8.0]),
            "jax": Figures([5.0]),
            "openvino": Figures(problem="absent"),
        },
    )
    assert row.best_peer == "jax"
    assert row.ratio == pytest.approx(2.5)
    assert Row("w", {"graphc": Figures([2.0])}).ratio is None
    noisy = Row("w", {"graphc": Figures([2.0, 20.0, 2.0]), "jax": Figures([4.0, 40.0, 8.0])})
    assert noisy.ratio == pytest.approx(2.0)
    assert Row("w", {"graphc": Figures(problem="x"), "jax": Figures([5.0])}).ratio is None
    assert describe_rows([row])[0]["ratio"] == pytest.approx(2.5)


def test_relative_error_is_on_the_scale_of_the_reference():
    reference = np.array([1.0, -4.0])
    assert relative_error(np.array([1.0, -3.0]), reference) == pytest.approx(0.25)
    assert relative_error(reference.astype(np.float32), reference) == 0.0
    assert relative_error(np.array([np.nan, 0.0]), reference) == float("inf")
    assert relative_error(np.zeros(3), reference) == float("inf")


def test_short_calls_are_timed_in_batches():
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1

    answer = measure_calls(call, 0.01)
    assert calls == answer["calls"] + 1
    assert answer["calls"] > 100
    assert 0 < answer["ms"] < 1
