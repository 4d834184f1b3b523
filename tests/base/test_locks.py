"""Locks and forks: the child may do whatever the parent may, whatever other threads were doing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import graphc
from graphc import nn
from graphc.base import locks
from graphc.base.locks import Lock, cached_property, section
from graphc.guards import attributes

ROOT = Path(__file__).parent.parent


def in_child(work: Callable[[], bool]) -> bool:
    """Forks; what ``work`` returned in the child, False where it did not return within 20 seconds."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status == 0
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return False


def holding(context: Callable[[], object]) -> tuple[threading.Thread, threading.Event]:
    """A thread that is inside of a context until the event is set."""
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with context():  # type: ignore[attr-defined]
            inside.set()
            leave.wait()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    return thread, leave


def take(lock: Lock) -> bool:
    with lock, lock:
        return True


def test_a_lock_that_another_thread_holds_is_open_in_the_child():
    lock = Lock()
    thread, leave = holding(lambda: lock)
    try:
        assert in_child(lambda: take(lock))
    finally:
        leave.set()
        thread.join()


def test_a_child_traces_and_calls_whatever_the_parent_was_doing():
    model = nn.Linear(3, 2).eval()
    fast, x = graphc.compile(model), graphc.ones(2, 3)
    with graphc.no_grad():
        fast(x)
        held = [attributes._lock, fast._lock, *[v.binding._lock for v in fast.variants if hasattr(v.binding, "_lock")]]
        assert len(held) == 3
        threads = [holding(lambda lock=lock: lock) for lock in held]

        def work() -> bool:
            model.weight.mul_(2)
            return bool(fast(x).allclose(model(x))) and fast(graphc.ones(5, 3)).shape == (5, 2)

        try:
            assert in_child(work)
        finally:
            for thread, leave in threads:
                leave.set()
                thread.join()


def test_a_lock_that_the_forking_thread_holds_is_still_held():
    lock = Lock()

    def work() -> bool:
        taken: list[bool] = []
        thread = threading.Thread(target=lambda: taken.append(lock._inner.acquire(blocking=False)))
        thread.start()
        thread.join()
        return taken == [False] and take(lock)

    with lock:
        assert in_child(work)
    assert take(lock)


def test_a_fork_waits_for_sections_of_others():
    thread, leave = holding(section)
    started = time.monotonic()
    threading.Timer(0.2, leave.set).start()
    assert in_child(lambda: True)
    assert time.monotonic() - started >= 0.2
    thread.join()


def test_a_fork_inside_of_a_section_does_not_wait_for_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(locks, "FORK_TIMEOUT", 60.0)

    def work() -> bool:
        with section():
            return True

    with section():
        assert in_child(work)
    assert in_child(work)


def test_a_fork_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(locks, "FORK_TIMEOUT", 0.05)
    thread, leave = holding(section)
    try:
        assert in_child(lambda: True)
    finally:
        leave.set()
        thread.join()


def test_cached_properties_are_computed_once_and_share_no_lock():
    class Slow:
        calls = 0

        @cached_property
        def value(self) -> int:
            self.calls += 1
            return 5

        @cached_property
        def other(self) -> object:
            assert in_child(lambda: Slow().value == 5)
            return self

    slow = Slow()
    assert (slow.value, slow.value, slow.calls) == (5, 5, 1)
    assert slow.other is slow
    assert isinstance(Slow.value, cached_property)


PROGRAM = """
import os, random, sys, threading, time
import graphc as gc
from graphc import nn
late = sys.argv[1] == "late"
if not late:
    gc.compile(nn.Linear(3, 2))(gc.ones(1, 3))
shared = gc.compile(nn.Linear(7, 3))
def work():
    n = 1
    while True:
        n += 1
        gc.compile(nn.Sequential(nn.Linear(4, n % 50 + 3), nn.ReLU(), nn.Linear(n % 50 + 3, 2)))(gc.ones(2, 4))
        shared(gc.ones(n, 7))
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
random.seed(7)
for number in range(1 if late else 8):
    time.sleep(random.random() * (0.4 if late else 0.1))
    if not (pid := os.fork()):
        model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
        same = gc.compile(model)(gc.ones(2, 4)).allclose(model(gc.ones(2, 4)), atol=1e-5)
        os._exit(0 if same and shared(gc.ones(number + 1, 7)).shape == (number + 1, 3) else 3)
    end = time.monotonic() + 60
    while not (found := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(pid, 9)
            os._exit(4)
        time.sleep(0.01)
    if found[1]:
        os._exit(5)
os._exit(0)
"""


@pytest.mark.parametrize("when", ["late", "warm"])
def test_children_compile_while_threads_of_the_parent_do(when: str):
    """``late``: in the middle of the parent's first compile, which imports what compiling needs."""
    run = subprocess.run([sys.executable, "-c", PROGRAM, when], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
