"""Isolation of Python signal handlers from the current trace, so that their ops are not recorded."""

from __future__ import annotations

import signal
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
