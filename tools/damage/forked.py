"""Work in child processes forked after all modules are loaded: a crash or a kill ends a child only."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

MOST_SECONDS = 120.0
"""Time limit, after which a process counts as hanging."""


def fork(action: Callable[[], None], log: Path) -> int:
    """Fork a process that runs ``action`` and ends, with its output in the file ``log``; return its id."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(file, stream)
        sys.stdout = sys.stderr = open(file, "w", encoding="utf-8")  # noqa: SIM115  # until the process ends
        if faulthandler.is_enabled():  # pytest enables it, and would print an intended crash among its dots
            faulthandler.enable(sys.stderr)
        action()
        code = 0
    # NOTE: nothing may come out of here, for it would run on as a second parent.
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def has_ended(process: int) -> bool:
    """Return whether a child process has ended; its status is left for `end`."""
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def end(process: int) -> int:
    """Kill a child process unless it has ended, and return its status."""
    if not has_ended(process):
        os.kill(process, signal.SIGKILL)
    return os.waitpid(process, 0)[1]


def finish(action: Callable[[], None], log: Path, seconds: float = MOST_SECONDS) -> str:
    """Run an action to its end in a child process; return the problem, or an empty text."""
    process, last = fork(action, log), time.monotonic() + seconds
    while not has_ended(process):
        if time.monotonic() > last:
            end(process)
            return f"it did not end in {seconds:.0f} s"
        time.sleep(0.005)
    status = end(process)
    return "" if status == 0 else f"status {status}: {log.read_text()[-500:]}"


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in a body that takes longer."""

    def late(*_: object) -> None:
        raise TimeoutError(f"longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def limited(memory: int, seconds: float) -> Iterator[None]:
    """Limit the process to so many bytes beyond its present size, and to a time, in the body."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory, before[1]))
    try:
        with alarm(seconds):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
