"""The child process of one peer: reads commands as JSON lines, answers with JSON lines.

``python -m benchmarks.workers.peer PEER_MODULE THREADS``. It says hello with the peer's version or the reason why it is
absent, then answers ``{"cmd": "setup", "workload": name, "folder": path}`` and ``{"cmd": "time", "seconds": s}``.
Stdout belongs to the protocol; whatever a library prints there goes to stderr.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import numpy as np

from benchmarks.harness.prepared import NotProvidedError, Prepared
from benchmarks.workloads import WORKLOADS

BATCH_S = 0.002
"""Approximate seconds of a batch of calls, long enough that the clock costs nothing."""

Answer = dict[str, Any]


def measure_calls(call: Callable[[], object], seconds: float) -> Answer:
    """Call once unmeasured, then in batches for about `seconds`; return the median milliseconds of one call."""
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    size = max(1, int(BATCH_S / max(once, 1e-7)))
    batches: list[float] = []
    end = time.perf_counter() + seconds
    while not batches or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(size):
            call()
        batches.append((time.perf_counter() - start) / size)
    return {"ms": 1000 * statistics.median(batches), "calls": size * len(batches)}


class Worker:
    """The peer's module and its current workload."""

    def __init__(self, peer: ModuleType, threads: int):
        self.peer = peer
        self.threads = threads
        self.prepared: Prepared | None = None

    def answer(self, command: Answer) -> Answer:
        """Carry out one command; any error of the peer becomes its first line."""
        try:
            return self._carry_out(command)
        except NotProvidedError as reason:
            return {"not_provided": str(reason)}
        except Exception as error:  # whatever a peer raises is a result of the measurement
            return {"error": first_line(error)}

    def _carry_out(self, command: Answer) -> Answer:
        if command["cmd"] == "setup":
            self.prepared = None
            gc.collect()
            folder = Path(command["folder"])
            self.prepared = self.peer.prepare(WORKLOADS[command["workload"]], folder, self.threads)
            numbers = folder / f"{self.peer.__name__}.npy"
            np.save(numbers, self.prepared.numbers)
            prepared = self.prepared
            return {
                "numbers": str(numbers),
                "first_call_s": prepared.first_call_s,
                "unlimited": prepared.unlimited,
            }
        if command["cmd"] == "time" and self.prepared is not None:
            return measure_calls(self.prepared.call, command["seconds"])
        raise ValueError(f"no such command now: {command['cmd']!r}")


def first_line(error: BaseException) -> str:
    """Return ``Type: first line of the message``, for a wrapped error of a torch.compile backend that of its cause."""
    error = getattr(error, "inner_exception", error)
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def serve(commands: TextIO, answers: TextIO, peer_module: str, threads: int) -> None:
    """Say hello, then answer each line of `commands` until the end of the stream."""

    def send(answer: Answer) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        peer = importlib.import_module(peer_module)
    except Exception as error:  # a library may be missing or broken; both are told
        send({"absent": first_line(error)})
        return
    send({"version": str(peer.VERSION)})
    worker = Worker(peer, threads)
    for line in commands:
        send(worker.answer(json.loads(line)))


def main(argv: list[str]) -> int:
    """Serve stdin; return the exit status."""
    warnings.simplefilter("ignore")
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        serve(sys.stdin, answers, argv[0], int(argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
