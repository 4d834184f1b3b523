"""Times, ratios and differences without any process."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.harness import timing
from benchmarks.harness.results import Result, arrays_of, difference, format_ms, format_results
from benchmarks.harness.timing import Call, alternate, first_call, measure, measure_calls

Answers = dict[str, list[dict[str, object]]]


def alternated(answers: Answers, result: Result, rounds: int = 3) -> str:
    """Return the order of the turns in which contenders gave their answers."""
    log: list[str] = []

    def time_one(name: str) -> dict[str, object]:
        log.append(name)
        return answers[name].pop(0)

    alternate(result, list(answers), rounds, time_one)
    return "".join(log)


def test_peers_take_turns_and_each_begins_once():
    times = {"a": [3.0, 1.0, 2.0], "b": [6.0, 6.0, 6.0], "c": [1.0, 1.0, 9.0]}
    result = Result("x")
    assert alternated({n: [{"ms": ms} for ms in values] for n, values in times.items()}, result) == "abcbcacab"
    assert [result.ms(name) for name in "abc"] == [2.0, 6.0, 1.0]


def test_a_peer_that_fails_while_timed_has_no_time_and_is_left_out():
    result = Result("x", problems={"c": "absent"})
    answers: Answers = {"a": [{"ms": 1.0}] * 3, "b": [{"ms": 1.0}, {"error": "gone"}], "c": []}
    assert alternated(answers, result) == "abbaa"
    assert result.ms("b") is None and result.problems["b"] == "gone"


def test_the_best_peer_is_never_graphc():
    times = {"graphc": [2.0], "graphc.compile": [1.0], "torch": [8.0], "jax": [5.0]}
    row = Result("w", {}, times, {"openvino": "absent"})
    assert row.best_peer == "jax"
    assert row.ratio == row.as_json()["ratio"] == pytest.approx(2.5)
    assert Result("w", {}, {"graphc": [2.0]}).ratio is None
    assert Result("w", {}, {"jax": [5.0]}, {"graphc": "x"}).ratio is None
    noisy = Result("w", {}, {"graphc": [2.0, 20.0, 2.0], "jax": [4.0, 40.0, 8.0]})
    assert noisy.ratio == pytest.approx(2.0) and noisy.over("graphc", "jax") == pytest.approx(0.5)


def test_differences_are_on_the_scale_of_the_reference():
    a = [np.array([1.0, 2.0])]
    assert difference(a, [np.array([1.0, 4.0])]) == 0.5
    assert difference([np.array([1.0, -3.0])], [np.array([1.0, -4.0])]) == pytest.approx(0.25)
    assert difference(a, [np.zeros(3)]) == difference(a, [*a, *a]) == float("inf")


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_a_difference_unless_both_have_it(odd: float):
    plain, other = [np.array([1.0, 2.0])], [np.array([odd, 2.0])]
    assert difference(other, plain) == difference(plain, other) == float("inf")
    assert difference(other, other) == 0 and difference([np.array([odd, 4.0])], other) == 1


def test_arrays_of_nested_results_are_found():
    arrays = arrays_of({"a": (np.ones(2), None), "b": [np.zeros(3)]})
    assert [a.tolist() for a in arrays] == [[1.0, 1.0], [0.0, 0.0, 0.0]]


def test_short_calls_are_timed_in_batches():
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1

    answer = measure_calls(call, 0.01)
    assert calls == answer["calls"] + 1
    assert answer["calls"] > 100
    assert 0 < answer["ms"] < 1


def test_what_fails_is_told():
    def broken():
        raise ValueError("no such thing\nmore")

    result = measure(Result("x"), {"graphc": lambda: lambda: np.ones(2), "torch": broken}, 2, 0.001)
    assert result.problems == {"torch": "ValueError: no such thing"}
    assert len(result.rounds_ms["graphc"]) == 2 and result.ratio is None
    assert "torch: ValueError: no such thing: x" in format_results([result], ["graphc", "torch"])


def test_the_first_call_is_timed_with_the_preparation(monkeypatch: pytest.MonkeyPatch):
    clock, result = [2.0], Result("x")

    def wait() -> None:
        clock[0] += 1.5

    def make() -> Call:
        wait()
        return wait

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    assert first_call(result, "a", make)() is wait
    assert result.facts == {"a compile s": "3.00"}


def test_the_table_has_facts_times_and_the_best_peer_in_bold():
    result = Result(
        "x", {"n": 1}, {"graphc": [1.0, 2.0, 4.0], "a": [3.0, 3.0, 3.0], "b": [2.0, 2.0, 2.0]}, {}, {"a": 1}
    )
    table = format_results([result], ["graphc", "a", "b"], ["n", "m"])
    assert "| x | 1 | 2.00 | 3.00! | **2.00** | 1.00 |" in table and "1 compared, 0 behind" in table
    assert "| x | 2000 | **2000** | 1.00 |" in format_results([result], ["graphc", "b"], unit_ms=1e-3)


@pytest.mark.parametrize(
    ("ms", "text"), [(0.00512, "0.0051"), (0.2284, "0.228"), (4.364, "4.36"), (27.51, "27.5"), (1315.4, "1315")]
)
def test_milliseconds_keep_about_three_digits(ms: float, text: str):
    assert format_ms(ms) == text
