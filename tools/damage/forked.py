"""Work in child processes forked after all modules are loaded: a crash or a kill ends a child only."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
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


def finish(action: Callable[[], None], log: Path) -> str:
    """Run an action to its end in a child process; return the problem, or an empty text."""
    process, end = fork(action, log), time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return "" if status == 0 else f"status {status}: {log.read_text()[-500:]}"
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return f"it did not end in {MOST_SECONDS:.0f} s"
