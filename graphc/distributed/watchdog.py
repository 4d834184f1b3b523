"""Watchdog thread: detect collectives that hang, and report what every process is doing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from graphc.base.errors import DistributedError
from graphc.base.location import UNKNOWN, line_of_thread
from graphc.distributed.watched import CollectiveCall, WatchedCommunicator, format_ranks

_POLL_INTERVAL = 1.0
"""Seconds between two checks, or a quarter of the timeout if that is less."""
_DRAIN_TIME = 3.0
"""Seconds after the end of a script within which all its messages have arrived."""
_ASK_TIMEOUT = 30.0
"""Seconds after which no further process is queried."""
_GRACE = 5.0
"""Seconds, in addition to ``_ASK_TIMEOUT``, for which a process leaves the report to one with a smaller rank."""

Status = Mapping[str, Any]
"""Status of a process. ``ended``: whether its script has ended; ``at``: the line of its main thread; ``calls``: for
each communicator the number and description of the last collective, whether it is in progress, and its age in
seconds."""


class Watchdog:
    """Watchdog of the collectives of one process."""

    def __init__(
        self,
        communicators: list[WatchedCommunicator],
        timeout: float,
        ask: Callable[[int], Status | None],
        abort: Callable[[str], None],
        interrupted: Callable[[], bool] = lambda: False,
    ):
        """Start the thread.

        ``ask`` returns the status of another rank, or None without an answer; ``interrupted`` checks whether Ctrl-C was
        pressed since its last call.
        """
        self._communicators, self._timeout, self._ask, self._abort = communicators, timeout, ask, abort
        self._interrupted = interrupted
        self.rank, self.size = communicators[0].rank, communicators[0].size
        self._main = threading.main_thread().ident or 0
        self._ended_at: float | None = None
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="graphc watchdog", daemon=True).start()

    def status(self) -> Status:
        """Return the status of this process."""
        calls = []
        for watched in [*self._communicators]:
            call = watched.last
            calls.append(None if call is None else [call.number, str(call), watched.is_in, _age(call)])
        return {"ended": self._ended_at is not None, "at": str(line_of_thread(self._main)), "calls": calls}

    def leave(self) -> None:
        """Note that the script has ended and will call no more collectives."""
        self._ended_at = time.monotonic()

    def close(self) -> None:
        """Tell the thread to end."""
        self._closed.set()

    def _watch(self) -> None:
        pause = min(_POLL_INTERVAL, self._timeout / 4)
        while not self._closed.wait(pause):
            if self._interrupted():
                self._end_interrupted(pause)
            for channel, watched in enumerate([*self._communicators]):
                call = watched.last
                if call is not None and watched.is_in and _age(call) > self._timeout:
                    self._overdue(channel, call)
            if self._ended_at is not None and time.monotonic() - self._ended_at > _DRAIN_TIME:
                self._look_back()

    def _end_interrupted(self, pause: float) -> None:
        """End all processes after Ctrl-C if the script keeps waiting in a collective, where it cannot see the
        signal."""
        waiting = [
            (c, w.last) for c, w in enumerate(self._communicators) if w.last and w.is_in and w.last.thread == self._main
        ]
        self._closed.wait(pause)
        for channel, call in waiting:
            if self._is_in(channel, call):
                self._abort(f"rank {self.rank} was interrupted in collective {call.number}, {call}")

    # ---- a collective that takes too long

    def _overdue(self, channel: int, call: CollectiveCall) -> None:
        """End all processes with a message, unless the collective ends or a process with a smaller rank does so."""
        answers: dict[int, Status | None] = {}
        start = time.monotonic()
        for rank in range(self.size):
            if rank != self.rank and time.monotonic() - start < _ASK_TIMEOUT:
                answers[rank] = self._ask(rank)
                if rank < self.rank and self._is_with(answers[rank], channel, call) and self._ends(channel, call):
                    return
        if self._is_in(channel, call):
            self._abort(f"rank {self.rank}: {self._message(answers, channel, call)}")

    def _is_in(self, channel: int, call: CollectiveCall) -> bool:
        watched = self._communicators[channel]
        return watched.is_in and watched.last is call and not self._closed.is_set()

    def _ends(self, channel: int, call: CollectiveCall) -> bool:
        """Check whether the collective ends while a process with a smaller rank queries the others."""
        self._closed.wait(_GRACE + _ASK_TIMEOUT)
        return not self._is_in(channel, call)

    def _is_with(self, status: Status | None, channel: int, call: CollectiveCall) -> bool:
        other = _call(status, channel)
        return other is not None and other[:3] == [call.number, str(call), True]

    def _message(self, answers: Mapping[int, Status | None], channel: int, call: CollectiveCall) -> DistributedError:
        waiting = [rank for rank, status in answers.items() if self._is_with(status, channel, call)]
        others = [
            f"rank {rank} {_activity(status, channel)}"
            for rank, status in sorted(answers.items())
            if rank not in waiting
        ]
        not_asked = [rank for rank in range(self.size) if rank not in answers and rank != self.rank]
        others += (
            [f"{format_ranks(not_asked)} {'were' if len(not_asked) > 1 else 'was'} not asked"] if not_asked else []
        )
        waiting = sorted([*waiting, self.rank])
        return DistributedError(
            f"collective {call.number}, {call}, has waited for {_age(call):.0f} s: {format_ranks(waiting)} "
            f"{'are' if len(waiting) > 1 else 'is'} in it" + "".join(f"; {text}" for text in others),
            origin=_user_line(call, self._main),
            remedy="call the same collectives in the same order on all ranks (GRAPHC_DISTRIBUTED_CHECK=1 compares "
            "them), "
            "or pass a longer init(timeout=) if one rank computes for long",
        )

    # ---- a script that has ended before the others

    def _look_back(self) -> None:
        """End all processes with a message if one waits for a collective that this script has not called."""
        for rank in range(self.size):
            status = None if rank == self.rank else self._ask(rank)
            if status is None:
                continue
            if rank < self.rank and status["ended"]:
                return
            for channel, other in enumerate(status["calls"]):
                if other is not None and other[2] and other[3] > _DRAIN_TIME and other[0] > self._done(channel):
                    error = DistributedError(
                        f"the script of rank {self.rank} ended after collective {self._done(channel)}; rank {rank} "
                        f"waits in collective {other[0]}, {other[1]}, at {status['at']}",
                        remedy="use the same number of batches on all ranks, for example with DistributedSampler",
                    )
                    self._abort(str(error))

    def _done(self, channel: int) -> int:
        call = self._communicators[channel].last if channel < len(self._communicators) else None
        return 0 if call is None else call.number


def _age(call: CollectiveCall) -> float:
    return time.monotonic() - call.started


def _call(status: Status | None, channel: int) -> list[Any] | None:
    return None if status is None or channel >= len(status["calls"]) else status["calls"][channel]


def _user_line(call: CollectiveCall, main: int) -> str:
    """Return the user's line that waits: in the thread of the call, or in the main thread where a thread of graphc
    calls for it."""
    line = line_of_thread(call.thread)
    return (line_of_thread(main) if line == UNKNOWN else line).describe()


def _activity(status: Status | None, channel: int) -> str:
    """Describe the activity of a process outside the collective."""
    if status is None:
        return "does not answer: it has died, is stopped, or runs code that holds Python's GIL"
    if status["ended"]:
        return "has ended its script"
    busy = [f for f in [_call(status, channel), *status["calls"]] if f is not None and f[2]]
    if busy:
        number, text, _, _ = busy[0]
        return f"is in another collective, {text}, number {number}, at {status['at']}"
    last = _call(status, channel)
    history = "it has called none" if last is None else f"its last one was {last[0]}, {last[1]}"
    return f"is in no collective ({history}), but at {status['at'] or 'no line of its script'}"
