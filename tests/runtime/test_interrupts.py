"""Ctrl-C during long native calls: a step happened or did not, and what waits for other signals still gets them."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.base.host_function import HostFunction
from graphc.runtime import host_calls, interrupts
from graphc.runtime.interrupts import armed, interruptible, run_interruptibly

_libc = ctypes.PyDLL(None)
"""Its functions run without a chance for Python's handlers of signals, as they would inside of a program."""


class Program:
    """A program of some polls, which sends itself a signal at one of them in its first runs."""

    def __init__(self, number: int = signal.SIGINT, cuts: int = 1):
        self.word = ctypes.c_size_t(7)
        self.number, self.cuts, self.runs = number, cuts, 0

    def __call__(self, result: int) -> int:
        self.runs += 1
        if self.runs <= self.cuts:
            # NOTE: the handler runs when the next bytecode does; the list is made first.
            before = (interrupts._signals.word, self.word)
            getattr(_libc, "raise")(self.number)
            if before[0].value.to_bytes(8, "little").count(signal.SIGINT) and before[1].value == interrupts.ARMED:
                before[1].value = 5
        return result


@pytest.fixture
def counted() -> Iterator[list[int]]:
    """Handlers of SIGINT and SIGUSR1 that raise nothing, and the signals that they got."""
    results: list[int] = []
    before = {n: signal.signal(n, lambda number, _: results.append(number)) for n in (signal.SIGINT, signal.SIGUSR1)}
    yield results
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_program_that_was_cut_runs_again(counted: list[int]):
    program = Program(cuts=2)
    assert run_interruptibly(program, program.word, 3) == 3
    assert (program.runs, counted) == (3, [signal.SIGINT] * 2)


def test_other_signals_cut_nothing(counted: list[int]):
    program = Program(signal.SIGUSR1)
    assert run_interruptibly(program, program.word, 3) == 3
    assert (program.runs, counted) == (1, [signal.SIGUSR1])


def test_what_the_handler_raises_ends_the_call():
    program = Program()
    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(program, program.word, 3)
    assert program.runs == 1


def test_other_threads_are_not_interrupted():
    results: list[Any] = []

    def work() -> None:
        with armed() as expected:
            results.append(expected)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == [False]


def test_who_waits_for_signals_gets_them(counted: list[int]):
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write)
    try:
        with armed() as expected:
            assert expected
            os.kill(os.getpid(), signal.SIGUSR1)
        assert os.read(read, 8) == bytes([signal.SIGUSR1])
        os.kill(os.getpid(), signal.SIGUSR1)
        assert os.read(read, 8) == bytes([signal.SIGUSR1])
    finally:
        assert signal.set_wakeup_fd(before) == write
        os.close(read)
        os.close(write)


def test_a_child_has_signals_of_its_own(counted: list[int]):
    with armed():
        pid = os.fork()
        if not pid:
            os.kill(os.getpid(), signal.SIGUSR1)
            with armed() as expected:
                os.kill(os.getpid(), signal.SIGUSR1)
                os._exit(0 if expected and interrupts._signals.word.value == signal.SIGUSR1 else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert interrupts._signals.word.value == 0


def test_a_program_that_lends_memory_is_not_ended_early():
    word, seen = ctypes.c_size_t(7), []
    lending = HostFunction("f", lambda state: None, (), (), lends=True)
    for functions in ([lending], [lending._replace(lends=False)]):
        with host_calls.running(functions, {}):
            run_interruptibly(lambda: seen.append(word.value), word)
    assert seen == [0, interrupts.ARMED]


def test_a_call_inside_of_a_call_takes_the_other_way(counted: list[int]):
    word = ctypes.c_size_t()
    calls: list[str] = []

    def call(depth: int, scale: int = 1) -> int:
        calls.append("native")
        return scale * (run(depth - 1) + 1 if depth else 0)

    def fallback(depth: int) -> int:
        calls.append("python")
        return 10 * depth

    run = interruptible(call, fallback, word)
    assert run(3) == 21 and run(2, scale=2) == 22
    assert calls == ["native", "python"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_happened_or_did_not(threads: int):
    gc.set_num_threads(threads)
    try:
        model = nn.Sequential(*[layer for _ in range(10) for layer in (nn.Linear(512, 512), nn.Tanh())])
        step = gc.compile_step(model, nn.functional.mse_loss, gc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
        x, y = gc.rand(512, 512), gc.rand(512, 512)
        start = time.perf_counter()
        step(x, y)
        step(x, y)
        interrupted = 0
        for part in (0.05, 0.1, 0.2, 0.5, 0.9):
            before = [p.detach().numpy().copy() for p in model.parameters()]
            start = time.perf_counter()
            step(x, y)
            length = time.perf_counter() - start
            after = [p.detach().numpy().copy() for p in model.parameters()]
            assert all((a != b).any() for a, b in zip(before, after, strict=True))
            timer = threading.Timer(part * length, os.kill, (os.getpid(), signal.SIGINT))
            try:
                timer.start()
                step(x, y)
                timer.join()
                time.sleep(0.01)
            except KeyboardInterrupt:
                interrupted += 1
            now = [p.detach().numpy() for p in model.parameters()]
            same = [np.array_equal(a, b) for a, b in zip(after, now, strict=True)]
            assert all(same) or not any(same)
        assert interrupted
    finally:
        gc.set_num_threads(1)
