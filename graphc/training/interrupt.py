"""Ctrl-C in a training: the first one finishes the current step, the second one interrupts at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphc.distributed.group import group


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Catch the first Ctrl-C in the block, and yield a function that returns whether there was one.

    Of several processes, all call the function after the same step, and it returns True in all of them if one was
    interrupted. Outside of the main thread Python delivers no signals.
    """
    requested = threading.Event()

    def is_requested() -> bool:
        return in_any_process(requested.is_set())

    if threading.current_thread() is not threading.main_thread():
        yield is_requested
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(*_: Any) -> None:
        requested.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, stop)
    try:
        yield is_requested
    finally:
        signal.signal(signal.SIGINT, before)


def in_any_process(flag: bool) -> bool:
    """Return whether a flag is set in any process of the group; all of them call it."""
    here = group()
    return flag if here.size == 1 else bool(here.all_reduce(np.array([flag], np.int64), "max")[0])
