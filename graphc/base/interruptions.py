"""Isolation of signal handlers from the current trace, whose graph has none of their ops; profile functions."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]


class _Outside:
    """Signal handler that runs in the context in which the trace was started."""

    def __init__(self, handler: Handler, context: Context):
        self.handler = handler
        self._context = context

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        return self._context.copy().run(self.handler, number, frame)


OUTSIDE = _Outside.__call__.__code__
"""Code object that runs the isolated handlers."""


@contextmanager
def kept_outside() -> Iterator[None]:
    """Run Python's signal handlers in the caller's context while the block runs: eagerly, without its dispatcher, grad
    mode or recording. Enter this block before any of them is set."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    context = copy_context()
    wrappers = {}
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if callable(handler) and not isinstance(handler, _Outside) and handler is not signal.default_int_handler:
            wrappers[number] = _Outside(handler, context)
            signal.signal(number, wrappers[number])
    try:
        yield
    finally:
        for number, wrapper in wrappers.items():
            if signal.getsignal(number) is wrapper:  # The block may have installed another one.
                signal.signal(number, wrapper.handler)


PROFILE_TRIES = 1000
"""Limit on the attempts to install a profile function."""


def set_profile(function: Any) -> None:
    """Install the profile function of this thread; None removes it.

    CPython 3.11 marks the installation in a flag that all threads share, and raises RuntimeError in a thread that
    finds it set, which happens while an audit hook or a destructor of the first thread waits for the interpreter lock.
    The error clears the flag, so another try succeeds.
    """
    for _ in range(PROFILE_TRIES):
        try:
            return sys.setprofile(function)
        except RuntimeError:
            continue
    sys.setprofile(function)
