"""Commands in process groups of their own: limits of time, processor time and memory, and output of all together."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Ended(NamedTuple):
    """Way in which a command ended."""

    status: int
    """Exit status, or minus the number of the signal."""
    output: str
    """Standard output and errors, in order."""
    seconds: float
    is_late: bool
    """Whether the group was killed because its time was over, or its processor time."""


def run(
    words: Sequence[str],
    seconds: float | None = None,
    *,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    cpu_s: int | None = None,
    memory: int | None = None,
) -> Ended:
    """Run a command in a folder, with further environment variables, and kill its group when its time is over.

    Raises OSError where there is no such program.
    """

    def limit() -> None:
        if cpu_s is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    start = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out:
        process = subprocess.Popen(
            list(words),
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdout=out,
            stderr=subprocess.STDOUT,
            preexec_fn=limit if cpu_s is not None or memory is not None else None,
            start_new_session=True,
        )
        is_late = False
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            is_late = True
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        out.seek(0)
        is_late = is_late or (cpu_s is not None and status in (-signal.SIGKILL, -signal.SIGXCPU))
        return Ended(status, out.read(), time.monotonic() - start, is_late)
