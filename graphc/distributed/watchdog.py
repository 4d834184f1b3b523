"""A thread that looks now and then whether this process waits for others in vain, and says what each of them does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from graphc.base.errors import DistributedError
from graphc.base.location import line_of_thread
from graphc.distributed.watched import Call, Watched, listed

_LOOKS = 1.0
"""Seconds between two looks, or a quarter of the timeout where that is less."""
_ENDED = 3.0
"""Seconds after which it is sure that nothing of a script that has ended is on its way any more."""
_ASKING = 30.0
"""Seconds after which no further process is asked."""
_GRACE = 5.0
"""Seconds for which a process leaves the message to one with a smaller number, beside those in which that one asks."""

Status = Mapping[str, Any]
"""What a process says of itself: ``ended``, whether its script has; ``at``, the line that its main thread is at;
``calls``, for each communicator the number and the text of the last collective, whether it is in it, and for how many
seconds."""


class Watchdog:
    """Watches the collectives of one process."""

    def __init__(
        self,
        family: list[Watched],
        timeout: float,
        ask: Callable[[int], Status | None],
        abort: Callable[[str], None],
        interrupted: Callable[[], bool] = lambda: False,
    ):
        """``ask`` gives the status of another process, or None where it does not answer; ``interrupted`` tells whether
        Ctrl-C has come since it was asked last."""
        self._family, self._timeout, self._ask, self._abort = family, timeout, ask, abort
        self._interrupted = interrupted
        self.rank, self.size = family[0].rank, family[0].size
        self._main = threading.main_thread().ident or 0
        self._left: float | None = None
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="graphc watchdog", daemon=True).start()

    def status(self) -> Status:
        """What this process does."""
        calls = []
        for watched in [*self._family]:
            call = watched.last
            calls.append(None if call is None else [call.number, str(call), watched.is_in, _age(call)])
        return {"ended": self._left is not None, "at": str(line_of_thread(self._main)), "calls": calls}

    def leave(self) -> None:
        """The script has ended: there will be no collective any more."""
        self._left = time.monotonic()

    def close(self) -> None:
        """Ends the thread, soon."""
        self._closed.set()

    def _watch(self) -> None:
        pause = min(_LOOKS, self._timeout / 4)
        while not self._closed.wait(pause):
            if self._interrupted():
                self._end_interrupted(pause)
            for channel, watched in enumerate([*self._family]):
                call = watched.last
                if call is not None and watched.is_in and _age(call) > self._timeout:
                    self._overdue(channel, call)
            if self._left is not None and time.monotonic() - self._left > _ENDED:
                self._look_back()

    def _end_interrupted(self, pause: float) -> None:
        """After Ctrl-C: ends all processes where the script goes on waiting, and so sees nothing of it."""
        waiting = [
            (c, w.last) for c, w in enumerate(self._family) if w.last and w.is_in and w.last.thread == self._main
        ]
        self._closed.wait(pause)
        for channel, call in waiting:
            if self._is_in(channel, call):
                self._abort(f"rank {self.rank} was interrupted in collective {call.number}, {call}")

    # ---- a collective that takes too long

    def _overdue(self, channel: int, call: Call) -> None:
        """Ends all processes with a message, unless the collective comes to its end, or another process does so."""
        answers: dict[int, Status | None] = {}
        start = time.monotonic()
        for rank in range(self.size):
            if rank != self.rank and time.monotonic() - start < _ASKING:
                answers[rank] = self._ask(rank)
                if rank < self.rank and self._is_with(answers[rank], channel, call) and self._ends(channel, call):
                    return
        if self._is_in(channel, call):
            self._abort(f"rank {self.rank}: {self._message(answers, channel, call)}")

    def _is_in(self, channel: int, call: Call) -> bool:
        watched = self._family[channel]
        return watched.is_in and watched.last is call and not self._closed.is_set()

    def _ends(self, channel: int, call: Call) -> bool:
        """Whether the collective ends while another process asks around."""
        self._closed.wait(_GRACE + _ASKING)
        return not self._is_in(channel, call)

    def _is_with(self, status: Status | None, channel: int, call: Call) -> bool:
        found = _call(status, channel)
        return found is not None and found[:3] == [call.number, str(call), True]

    def _message(self, answers: Mapping[int, Status | None], channel: int, call: Call) -> DistributedError:
        here = [rank for rank, status in answers.items() if self._is_with(status, channel, call)]
        said = [f"rank {rank} {_does(status, channel)}" for rank, status in sorted(answers.items()) if rank not in here]
        unasked = [rank for rank in range(self.size) if rank not in answers and rank != self.rank]
        said += [f"{listed(unasked)} {'were' if len(unasked) > 1 else 'was'} not asked"] if unasked else []
        here = sorted([*here, self.rank])
        return DistributedError(
            f"collective {call.number}, {call}, has waited for {_age(call):.0f} s: {listed(here)} "
            f"{'are' if len(here) > 1 else 'is'} in it" + "".join(f"; {one}" for one in said),
            origin=_place(call, self._main),
            remedy="the same collectives in the same order on all ranks (GRAPHC_DISTRIBUTED_CHECK=1 compares them), "
            "or a longer init(timeout=) where one rank works for long",
        )

    # ---- a script that has ended before the others

    def _look_back(self) -> None:
        """Ends all processes with a message where one waits for a collective that this one has not come to."""
        for rank in range(self.size):
            status = None if rank == self.rank else self._ask(rank)
            if status is None:
                continue
            if rank < self.rank and status["ended"]:
                return
            for channel, found in enumerate(status["calls"]):
                if found is not None and found[2] and found[3] > _ENDED and found[0] > self._done(channel):
                    error = DistributedError(
                        f"the script of rank {self.rank} has ended after collective {self._done(channel)}; rank {rank} "
                        f"waits in collective {found[0]}, {found[1]}, at {status['at']}",
                        remedy="as many batches on all ranks, as a DistributedSampler gives them",
                    )
                    self._abort(str(error))

    def _done(self, channel: int) -> int:
        call = self._family[channel].last if channel < len(self._family) else None
        return 0 if call is None else call.number


def _age(call: Call) -> float:
    return time.monotonic() - call.begun


def _call(status: Status | None, channel: int) -> list[Any] | None:
    return None if status is None or channel >= len(status["calls"]) else status["calls"][channel]


def _place(call: Call, main: int) -> str:
    """The line of the user that waits: that of the thread of the call, or else of the script."""
    return (line_of_thread(call.thread) if call.thread == main else line_of_thread(main)).describe()


def _does(status: Status | None, channel: int) -> str:
    """What a process does that is not in the collective."""
    if status is None:
        return "does not answer: it is dead, or stopped, or in code that does not let Python run"
    if status["ended"]:
        return "has ended its script"
    busy = [f for f in [_call(status, channel), *status["calls"]] if f is not None and f[2]]
    if busy:
        number, text, _, _ = busy[0]
        return f"is in another one, {text}, number {number}, at {status['at']}"
    found = _call(status, channel)
    before = "it was in none before" if found is None else f"the last one was {found[0]}, {found[1]}"
    return f"is in none ({before}), but at {status['at'] or 'no line of its script'}"
