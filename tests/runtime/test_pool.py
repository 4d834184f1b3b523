"""The pool of a process: loaded once, alive after fork, silent at the end of the interpreter, deaf to signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from graphc.runtime import pool
from tests.architecture.scan import ROOT
from tests.runtime.threaded import model, thread_count

START = "from tests.runtime.threaded import model, thread_count\nimport os, signal, sys, threading, time\n"


def python(program: str, **options) -> subprocess.CompletedProcess:
    """A fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", START + program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def test_it_is_loaded_once():
    model()
    addresses, workers = dict(pool._pool), pool.workers()
    assert set(addresses) == {pool.RUN, pool.RESET, pool.SIZE}
    pool.install(lambda: pytest.fail("there is a pool already"))
    assert pool._pool == addresses and pool.workers() == workers


def in_child(check) -> None:
    """Runs ``check`` in a forked child; it must return True, within a minute."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            os._exit(0 if check() else 2)
        finally:
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_a_child_computes_again():
    program, arrays = model()
    with thread_count(3):
        expected = program.run(arrays)
        workers = pool.workers()

        def check() -> bool:
            before = pool.workers()
            good = all(np.array_equal(a, b) for a, b in zip(program.run(arrays), expected, strict=True))
            return good and before == 0 and pool.workers() == 2 <= workers

        for _ in range(3):
            in_child(check)
        assert pool.workers() == workers
        assert all(np.array_equal(a, b) for a, b in zip(program.run(arrays), expected, strict=True))


def test_a_fork_in_the_middle_of_a_call():
    """Another thread has the pool while the process forks; the child, in which that thread is gone, gets its own."""
    program, arrays = model()
    with thread_count(2):
        expected = program.run(arrays)
        stop = threading.Event()

        def call() -> None:
            while not stop.is_set():
                program.run(arrays)

        caller = threading.Thread(target=call)
        caller.start()
        try:
            for _ in range(10):
                in_child(
                    lambda: (
                        all(np.array_equal(a, b) for a, b in zip(program.run(arrays), expected, strict=True))
                        and pool.workers() == 1
                    )
                )
        finally:
            stop.set()
            caller.join()


@pytest.mark.parametrize("wait", [0, 0.05])
@pytest.mark.parametrize("end", ["", "sys.exit(0)", "os._exit(0)"])
def test_the_interpreter_ends(end: str, wait: float):
    """While the workers still look for work, and while they sleep."""
    done = python(f"""
program, arrays = model()
with thread_count(4):
    program.run(arrays)
time.sleep({wait})
{end}
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_interpreter_ends_after_the_program_is_gone():
    done = python("""
import gc
with thread_count(4):
    for _ in range(3):
        program, arrays = model()
        program.run(arrays)
        del program
        gc.collect()
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_interrupt_is_not_lost(tmp_path: Path):
    """Ctrl-C during calls raises KeyboardInterrupt in the main thread."""
    started = tmp_path / "started"
    program = f"""
program, arrays = model()
try:
    with thread_count(3):
        program.run(arrays)
        open({str(started)!r}, "w").close()
        while True:
            program.run(arrays)
except KeyboardInterrupt:
    program.run(arrays)
    print("interrupted")
"""
    running = subprocess.Popen([sys.executable, "-c", START + program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    assert running.communicate(timeout=60)[0] == "interrupted\n"
    assert running.returncode == 0


def test_workers_take_no_signals():
    done = python(
        """
program, arrays = model()
with thread_count(3):
    program.run(arrays)
main = threading.get_native_id()
for task in sorted(map(int, os.listdir("/proc/self/task"))):
    lines = open(f"/proc/self/task/{task}/status").read().splitlines()
    blocked = int(next(l for l in lines if l.startswith("SigBlk")).split()[1], 16)
    if task != main:
        print(all(blocked >> (s - 1) & 1 for s in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD)),
              any(blocked >> (s - 1) & 1 for s in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)))
    else:
        assert blocked == 0
""",
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert (done.stderr, done.stdout) == ("", "True False\n" * 2)


@pytest.mark.parametrize("spin", ["0", "100000"])
def test_workers_spin_for_the_time_asked_for_and_then_sleep(spin: str):
    done = python(
        """
program, arrays = model()
with thread_count(3):
    for _ in range(20):
        program.run(arrays)
        time.sleep(0.002)
time.sleep(0.5)
before = time.process_time()
time.sleep(0.3)
print(time.process_time() - before < 0.1)
""",
        env={**os.environ, "GRAPHC_SPIN_US": spin},
    )
    assert (done.stderr, done.stdout) == ("", "True\n")
