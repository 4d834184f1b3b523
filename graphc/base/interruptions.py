"""Signal handlers that run while a function is traced: what they compute is none of the trace's business."""

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
    """A handler of a signal that runs in the context that the trace was started from."""

    def __init__(self, handler: Handler, context: Context):
        self.handler = handler
        self._context = context

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        return self._context.copy().run(self.handler, number, frame)


OUTSIDE = _Outside.__call__.__code__
"""The code that runs handlers outside."""


@contextmanager
def kept_outside() -> Iterator[None]:
    """While the block runs, Python's handlers of signals run as if they had been called before it: eagerly, with no
    dispatcher, grad mode or recording of the block. To be entered before any of these is set."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    context = copy_context()
    placed = {}
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if callable(handler) and not isinstance(handler, _Outside) and handler is not signal.default_int_handler:
            placed[number] = _Outside(handler, context)
            signal.signal(number, placed[number])
    try:
        yield
    finally:
        for number, outside in placed.items():
            if signal.getsignal(number) is outside:  # The block may have installed another one.
                signal.signal(number, outside.handler)
