"""A peer without any framework: returns the reference numbers, or misbehaves as an environment variable says."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.harness.framework import NUMBERS
from benchmarks.harness.prepared import NotProvidedError, Prepared
from benchmarks.workloads import Workload


def leave() -> None:
    """End the process with a message."""
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)


def prepare(workload: Workload, folder: Path, threads: int, variant: str) -> Prepared:
    """Prepare a call that sleeps a millisecond, unless STEADY_PEER names a fault."""
    assert threads == 1 and variant == ""
    print("noise that a library writes to stdout")
    fault = os.environ.get("STEADY_PEER", "")
    if fault == "raise":
        raise RuntimeError("first line\nsecond line")
    if fault == "lack":
        raise NotProvidedError(f"no {workload.name} here")
    if fault == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if fault == "hang":
        time.sleep(60)
    numbers = np.load(folder / NUMBERS)
    return Prepared(lambda: time.sleep(0.001), numbers + (1 if fault == "wrong" else 0), 0.25)
