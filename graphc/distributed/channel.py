"""Background thread that reduces arrays in order while the main thread computes."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.base.errors import DistributedError
from graphc.base.progress import note
from graphc.distributed import spans
from graphc.distributed.group import Group
from graphc.runtime.host_calls import OPEN


class Pending:
    """Handle of a reduction in progress."""

    def __init__(self, name: str, nbytes: int = 0):
        self.name, self.nbytes = name, nbytes
        self._done = threading.Event()
        self._error: BaseException | None = None

    def run(self, work: Callable[[], None]) -> None:
        """Run the reduction and record its end."""
        begin = time.perf_counter()
        try:
            work()
        except BaseException as error:  # NOTE: `wait` raises it
            self._error = error
        finally:
            note(spans.REDUCE, self.name, begin, self.nbytes)
            self._done.set()

    def wait(self) -> None:
        """Wait for the result. Raises DistributedError if the reduction failed."""
        self.settle()
        self.check()

    def settle(self) -> None:
        """Wait until the reduction no longer uses the arrays, whether it succeeded or failed."""
        begin = time.perf_counter()
        self._done.wait()
        note(spans.WAIT, self.name, begin, self.nbytes)

    def check(self) -> None:
        """Raise DistributedError if the reduction failed."""
        if self._error is not None:
            raise _failure(self.name, self._error) from self._error


def _failure(name: str, error: BaseException) -> DistributedError:
    return DistributedError(f"the reduction of {name} failed: {error}")


class Channel:
    """Queue of reductions with its own communicator. All processes create it together and use it in the same order."""

    def __init__(self, group: Group):
        self.group = group
        self._communicator = group.communicator.duplicate()
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def reduce(self, name: str, source: np.ndarray, result: np.ndarray) -> Pending:
        """Start ``result = sum of all sources``; neither array may be used until the end."""
        pending = Pending(name, source.nbytes)
        note(spans.START, name, time.perf_counter(), source.nbytes)
        work = self._communicator.all_reduce, (source, result, "sum")
        if self.group.size == 1:
            pending.run(lambda: work[0](*work[1]))
            return pending
        if self._thread is None or not self._thread.is_alive():  # a forked process has no threads
            self._thread = threading.Thread(target=self._serve, name="graphc reductions", daemon=True)
            self._thread.start()
        self._queue.put((pending, work))
        return pending

    def reduce_now(self, name: str, source: np.ndarray, result: np.ndarray) -> None:
        """Reduce in this thread, which has nothing else to do. All reductions started before must be done."""
        self._communicator.purpose = name
        begin = time.perf_counter()
        note(spans.START, name, begin, source.nbytes)
        try:
            self._communicator.all_reduce(source, result, "sum")
        except Exception as error:  # NOTE: the backend can raise any error
            raise _failure(name, error) from error
        finally:
            for kind in (spans.REDUCE, spans.WAIT):
                note(kind, name, begin, source.nbytes)

    def _serve(self) -> None:
        while True:
            pending, (function, arguments) = self._queue.get()
            self._communicator.purpose = pending.name
            pending.run(lambda: function(*arguments))  # noqa: B023 (runs at once)


class LentStart:
    """Starts a reduction in memory that compiled code lends."""

    def __init__(self, title: str, channel: Channel):
        self.title, self.channel = title, channel

    def __call__(self, state: dict[Any, Any], flat: np.ndarray, reduced: np.ndarray) -> None:
        state.setdefault(OPEN, []).append(self.channel.reduce(self.title, flat, reduced))


class LentEnd:
    """Runs the last reduction in memory that compiled code lends, after all pending ones, and raises their errors."""

    def __init__(self, title: str, channel: Channel):
        self.title, self.channel = title, channel

    def __call__(self, state: dict[Any, Any], flat: np.ndarray, *buffers: np.ndarray) -> None:
        open_reductions = state.get(OPEN, ())
        for pending in open_reductions:
            pending.settle()
        # Even if a reduction failed: the other processes wait for this one.
        self.channel.reduce_now(self.title, flat, buffers[-1])
        for pending in open_reductions:
            pending.check()
        state.pop(OPEN, None)
