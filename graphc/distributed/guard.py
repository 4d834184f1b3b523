"""What ends all processes of a group where one of them fails: errors that nobody catches, waits in vain, early ends."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Callable
from socket import gethostname
from typing import Any

from graphc.distributed.interrupts import Interrupts
from graphc.distributed.line import KEY_BYTES, Line, ask
from graphc.distributed.mpi import Mpi
from graphc.distributed.watchdog import Status, Watchdog
from graphc.distributed.watched import Watched

_POLL = 0.005
"""Seconds between two looks whether all scripts have ended."""
_guards: weakref.WeakSet[Guard] = weakref.WeakSet()


class Guard:
    """Guards one process of a group; all processes make it together.

    An error that nobody catches, in the script or in a thread, is printed with the number of the process and ends all
    of them with exit status 1, as does a collective that some processes do not come to within ``timeout`` seconds, and
    a script that ends while others wait for it. Processes that are forked afterwards do nothing of this.
    """

    def __init__(self, communicator: Mpi, timeout: float, check: bool):
        self._mpi = communicator
        self._end = communicator.duplicate()
        key = communicator.gather_objects(secrets.token_bytes(KEY_BYTES))[0]
        hosts = communicator.gather_objects(gethostname())
        self._family: list[Watched] = []
        self.watched = Watched(communicator, self._family, check)
        """The communicator whose collectives are watched."""
        self._line = Line(lambda: self._watchdog.status(), key, near=len(set(hosts)) == 1)
        addresses = communicator.gather_objects(self._line.address)

        def ask_rank(rank: int) -> Status | None:
            return ask(addresses[rank], key)

        self._interrupts = Interrupts()
        self._watchdog = Watchdog(self._family, timeout, ask_rank, self.abort, self._interrupts.have_come)
        self._is_on = True
        self._hook, self._before = self._failed, sys.excepthook
        self._thread_hook, self._thread_before = self._thread_failed, threading.excepthook
        sys.excepthook, threading.excepthook = self._hook, self._thread_hook
        atexit.register(self._leave)
        _guards.add(self)

    def close(self) -> None:
        """The process is by itself from now on."""
        if self._is_on:
            self._stop()
            self._watchdog.close()
            atexit.unregister(self._leave)

    def abort(self, message: str) -> None:
        """Ends all processes with a message."""
        if self._is_on:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
            self._mpi.abort(message)

    def _stop(self) -> None:
        self._is_on = False
        self._line.close()
        self._interrupts.close()
        if sys.excepthook is self._hook:
            sys.excepthook = self._before
        if threading.excepthook is self._thread_hook:
            threading.excepthook = self._thread_before

    def become_child(self) -> None:
        """In a process that was forked: it is none of the group."""
        self._stop()
        for watched in self._family:
            watched.become_child()

    # ---- ends

    def _failed(self, kind: Any, value: Any, trace: Any) -> None:
        """An error that the script does not catch."""
        self._tell(lambda: self._before(kind, value, trace))
        self.abort(f"rank {self._mpi.rank} has failed with {kind.__name__}: all {self._mpi.size} processes end")

    def _thread_failed(self, args: Any) -> None:
        """An error that a thread does not catch; one that ends by SystemExit has not failed."""
        self._tell(lambda: self._thread_before(args))
        if not issubclass(args.exc_type, SystemExit):
            kind = args.exc_type.__name__
            self.abort(f"rank {self._mpi.rank} has failed with {kind} in a thread: all {self._mpi.size} processes end")

    def _tell(self, hook: Callable[[], object]) -> None:
        """What the hook of before says, in one piece: others may write too. Whatever it raises, all processes end."""
        said = io.StringIO()
        with contextlib.suppress(Exception), contextlib.redirect_stderr(said):
            hook()
        sys.stderr.write((f"rank {self._mpi.rank}: " if self._is_on and said.tell() else "") + said.getvalue())

    def _leave(self) -> None:
        """The script has ended: waits until all have, and the watchdog looks whether one waits in vain."""
        if not self._is_on:
            return
        self._watchdog.leave()
        try:
            have_all_ended = self._end.begin_barrier()
            while not have_all_ended():
                time.sleep(_POLL)
        except KeyboardInterrupt:
            self.abort(f"rank {self._mpi.rank} was interrupted while it waited for the others to end")
        self.close()


def _in_child() -> None:
    for guard in [*_guards]:
        guard.become_child()


os.register_at_fork(after_in_child=_in_child)
