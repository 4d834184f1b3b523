"""Messages about processes that wait without success."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from graphc.distributed import watchdog
from graphc.distributed.communicator import Alone
from graphc.distributed.watchdog import Watchdog
from graphc.distributed.watched import CollectiveCall, WatchedCommunicator


class Stuck(Alone):
    """Rank ``rank`` of ``size``, whose reductions end when it is let go."""

    def __init__(self, rank: int, size: int):
        self.rank, self.size = rank, size
        self.let = threading.Event()

    def all_reduce(self, source: np.ndarray, result: np.ndarray, op: str) -> None:
        self.let.wait(20)


def status(number: int, text: str, is_in: bool, seconds: float = 9.0, ended: bool = False, at: str = "a.py:7") -> Any:
    return {"ended": ended, "at": at, "calls": [[number, text, is_in, seconds]]}


SAME = status(1, "all_reduce of f32[2] (sum)", True)


@contextmanager
def watch(answers: dict[int, Any], rank: int = 0, timeout: float = 0.1) -> Iterator[tuple[Watchdog, list[str], Stuck]]:
    """A watchdog of a process, what the others answer, and the messages with which it has ended all."""
    stuck, said, family = Stuck(rank, len(answers) + 1), [], []
    watched = WatchedCommunicator(stuck, family)
    dog: Watchdog

    def end(message: str) -> None:
        said.append(message)
        dog.close()

    dog = Watchdog(family, timeout, answers.get, end)
    one = np.ones(2, np.float32)
    thread = threading.Thread(target=watched.all_reduce, args=(one, one, "sum"))
    thread.start()
    try:
        yield dog, said, stuck
    finally:
        dog.close()
        stuck.let.set()
        thread.join()


def first(said: list[str]) -> str:
    end = time.monotonic() + 15
    while not said and time.monotonic() < end:
        time.sleep(0.01)
    return said[0]


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ({1: SAME, 2: None}, "ranks 0, 1 are in it; rank 2 does not answer: it has died, is stopped"),
        (
            {1: status(1, "barrier", True)},
            "rank 0 is in it; rank 1 is in another collective, barrier, number 1, at a.py:7",
        ),
        ({1: status(1, "barrier", False)}, "rank 1 is in no collective (its last one was 1, barrier), but at a.py:7"),
        (
            {1: {"ended": False, "at": "a.py:7", "calls": [None]}},
            "rank 1 is in no collective (it has called none), but at a.py:7",
        ),
        ({1: status(0, "barrier", False, ended=True)}, "rank 1 has ended its script"),
    ],
)
def test_the_message_says_who_is_in_it_and_what_the_others_do(answers: dict[int, Any], text: str):
    with watch(answers) as (_, said, _):
        found = first(said)
    assert "rank 0: collective 1, all_reduce of f32[2] (sum), has waited for" in found
    assert text in found


def test_the_message_names_the_line_of_the_thread_that_waits():
    code, line = inspect.getsourcelines(Stuck.all_reduce)
    with watch({1: None}) as (_, said, _):
        assert f"test_watchdog.py:{line + len(code) - 1}" in first(said)


def test_the_message_names_the_line_of_the_script_where_a_thread_has_none():
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)  # All of its lines are Python's own.
    thread.start()
    call = CollectiveCall(1, "barrier", "", None, None, "", 0.0, thread.ident or 0)
    line = watchdog._user_line(call, threading.get_ident())
    ended.set()
    thread.join()
    assert "test_watchdog.py" in line


def test_a_collective_that_ends_in_time_is_no_matter():
    with watch({1: None}, timeout=5.0) as (_, said, stuck):
        stuck.let.set()
        time.sleep(0.3)
    assert not said


def test_the_message_is_left_to_the_process_with_the_smallest_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watchdog, "_GRACE", 0.5)
    monkeypatch.setattr(watchdog, "_ASK_TIMEOUT", 0.5)
    with watch({0: SAME, 2: None}, rank=1) as (_, said, _):
        time.sleep(0.5)
        assert not said
        assert "rank 1: collective 1" in first(said)  # that one has not said it


def test_a_script_that_has_ended_looks_for_others_that_wait(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watchdog, "_DRAIN_TIME", 0.1)
    answers = {1: status(7, "all_gather of i8[3]", True)}
    with watch(answers, timeout=50.0) as (dog, said, _):
        dog.leave()
        found = first(said)
    assert "the script of rank 0 ended after collective 1; rank 1 waits in collective 7, all_gather of i8[3]" in found


@pytest.mark.parametrize(
    "other", [status(7, "barrier", False), status(1, "barrier", True), status(7, "barrier", True, 0.0)]
)
def test_a_script_that_has_ended_waits_for_others_that_go_on(other: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watchdog, "_DRAIN_TIME", 0.1)
    monkeypatch.setattr(watchdog, "_POLL_INTERVAL", 0.05)
    with watch({1: other}, timeout=50.0) as (dog, said, _):
        dog.leave()
        time.sleep(0.5)
    assert not said


def test_the_status_names_the_line_of_the_script_and_each_communicator():
    family: list[WatchedCommunicator] = []
    whole = WatchedCommunicator(Alone(), family)
    whole.barrier()
    whole.duplicate()
    dog = Watchdog(family, 600.0, lambda rank: None, lambda message: None)
    found = dog.status()
    dog.close()
    assert found["at"].startswith("tests/distributed/test_watchdog.py:")
    assert not found["ended"]
    assert [call and call[:3] for call in found["calls"]] == [[2, "duplicate", False], None]


def test_ctrl_c_ends_a_script_that_waits_and_so_does_not_see_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watchdog, "_POLL_INTERVAL", 0.05)
    stuck, said, family, presses = Stuck(0, 2), [], [], [True]
    watched = WatchedCommunicator(stuck, family)

    def end(message: str) -> None:
        said.append(message)
        stuck.let.set()

    dog = Watchdog(family, 600.0, lambda rank: None, end, lambda: bool(presses) and watched.is_in and presses.pop())
    one = np.ones(2, np.float32)
    watched.all_reduce(one, one, "sum")
    dog.close()
    assert said == ["rank 0 was interrupted in collective 1, all_reduce of f32[2] (sum)"]
