"""Guard of a group: end all processes if one of them raises an uncaught error, deadlocks, or ends early."""

from __future__ import annotations

import atexit
import contextlib
import hmac
import io
import json
import os
import secrets
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from socket import gethostname
from typing import Any

from graphc.distributed.mpi import Mpi
from graphc.distributed.watchdog import Status, Watchdog
from graphc.distributed.watched import WatchedCommunicator

KEY_BYTES = 32
"""Length of the secret key of a group."""
_NONCE_BYTES = 16
_ANSWER_TIMEOUT = 3.0
"""Seconds to wait for an answer. A live process answers in milliseconds; one that is stopped or holds the GIL does not
answer at all."""
_MOST_BYTES = 1 << 20
"""Largest size of an answer."""


class StatusServer:
    """Server thread that sends the result of ``status`` as JSON to each caller who knows the key."""

    def __init__(self, status: Callable[[], Any], key: bytes, near: bool):
        """Start the server; with ``near``, all processes are on this machine, and it accepts local connections only.

        Raises OSError.
        """
        self._status, self._key, self._process = status, key, os.getpid()
        self._socket = socket.create_server(("127.0.0.1" if near else "", 0), backlog=64)
        host = "127.0.0.1" if near else socket.gethostname()
        self.address: tuple[str, int] = (host, self._socket.getsockname()[1])
        """Address for ``ask``."""
        threading.Thread(target=self._serve, name="graphc status", daemon=True).start()

    def close(self) -> None:
        """Stop answering; this also works in a forked process, which has no server thread."""
        if os.getpid() == self._process:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # otherwise the waiting thread would accept one more caller
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            with caller:
                try:
                    self._answer(caller)
                # NOTE: a caller may disconnect or send anything; the server goes on with the next one.
                except OSError:
                    continue

    def _answer(self, caller: socket.socket) -> None:
        caller.settimeout(_ANSWER_TIMEOUT)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        caller.sendall(nonce)
        if hmac.compare_digest(_received(caller, KEY_BYTES), hmac.digest(self._key, nonce, "sha256")):
            caller.sendall(json.dumps(self._status()).encode())


def ask(address: tuple[str, int], key: bytes) -> Any:
    """Return the status of the process at an address, or None without an answer."""
    try:
        with socket.create_connection(address, timeout=_ANSWER_TIMEOUT) as connection:
            connection.sendall(hmac.digest(key, _received(connection, _NONCE_BYTES), "sha256"))
            return json.loads(_received(connection, _MOST_BYTES))
    except (OSError, ValueError):
        return None


def _received(connection: socket.socket, count: int) -> bytes:
    """Receive ``count`` bytes, or fewer if the connection ends earlier."""
    received = b""
    while len(received) < count and (chunk := connection.recv(count - len(received))):
        received += chunk
    return received


class Interrupts:
    """Receiver of signal numbers, which Python's C handler writes to a socket at once (``signal.set_wakeup_fd``)."""

    def __init__(self) -> None:
        """Register the socket, unless another one is registered or this is not the main thread."""
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        with contextlib.suppress(ValueError):
            previous = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
            if previous >= 0:
                signal.set_wakeup_fd(previous, warn_on_full_buffer=False)

    def was_pressed(self) -> bool:
        """Check whether Ctrl-C was pressed since the last call."""
        try:
            return signal.SIGINT in self._reader.recv(1024)
        except OSError:
            return False

    def close(self) -> None:
        """Unregister and close the socket; this also works in a forked process."""
        with contextlib.suppress(ValueError):
            current = signal.set_wakeup_fd(-1)
            if current not in (-1, self._writer.fileno()):
                signal.set_wakeup_fd(current, warn_on_full_buffer=False)
        self._reader.close()
        self._writer.close()


_POLL = 0.005
"""Seconds between two checks whether all scripts have ended."""
_guards: weakref.WeakSet[Guard] = weakref.WeakSet()


class Guard:
    """Guard of one process of a group; all processes create it together.

    It prints an uncaught error, in the script or in a thread, with the rank, and ends all processes with exit status 1.
    It does the same for a collective that some processes do not enter within ``timeout`` seconds, and for a script that
    ends while others wait for it. It does nothing in processes forked later.
    """

    def __init__(self, communicator: Mpi, timeout: float, check: bool):
        self._mpi = communicator
        self._end = communicator.duplicate()
        key = communicator.gather_objects(secrets.token_bytes(KEY_BYTES))[0]
        hosts = communicator.gather_objects(gethostname())
        self._communicators: list[WatchedCommunicator] = []
        self.watched = WatchedCommunicator(communicator, self._communicators, check)
        """Communicator whose collectives are watched."""
        self._status_server = StatusServer(lambda: self._watchdog.status(), key, near=len(set(hosts)) == 1)
        addresses = communicator.gather_objects(self._status_server.address)

        def ask_rank(rank: int) -> Status | None:
            return ask(addresses[rank], key)

        self._interrupts = Interrupts()
        self._watchdog = Watchdog(self._communicators, timeout, ask_rank, self.abort, self._interrupts.was_pressed)
        self._is_on = True
        self._hook, self._before = self._failed, sys.excepthook
        self._thread_hook, self._thread_before = self._thread_failed, threading.excepthook
        sys.excepthook, threading.excepthook = self._hook, self._thread_hook
        atexit.register(self._leave)
        _guards.add(self)

    def close(self) -> None:
        """Leave the group, and stop guarding."""
        if self._is_on:
            self._stop()
            self._watchdog.close()
            atexit.unregister(self._leave)

    def abort(self, message: str) -> None:
        """End all processes with a message."""
        if self._is_on:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
            self._mpi.abort(message)

    def _stop(self) -> None:
        self._is_on = False
        self._status_server.close()
        self._interrupts.close()
        if sys.excepthook is self._hook:
            sys.excepthook = self._before
        if threading.excepthook is self._thread_hook:
            threading.excepthook = self._thread_before

    def become_child(self) -> None:
        """Disable the guard in a forked process, which does not belong to the group."""
        self._stop()
        for watched in self._communicators:
            watched.become_child()

    # ---- ends

    def _failed(self, kind: Any, value: Any, trace: Any) -> None:
        """Handle an uncaught error of the script."""
        self._print_with_rank(lambda: self._before(kind, value, trace))
        self.abort(f"rank {self._mpi.rank} failed with {kind.__name__}: all {self._mpi.size} processes end")

    def _thread_failed(self, args: Any) -> None:
        """Handle an uncaught error of a thread; SystemExit is not a failure."""
        self._print_with_rank(lambda: self._thread_before(args))
        if not issubclass(args.exc_type, SystemExit):
            kind = args.exc_type.__name__
            self.abort(f"rank {self._mpi.rank} failed with {kind} in a thread: all {self._mpi.size} processes end")

    def _print_with_rank(self, hook: Callable[[], object]) -> None:
        """Print the output of the previous hook with the rank, in one write, since others may write too.

        Errors of the hook are ignored, so that all processes end in any case.
        """
        output = io.StringIO()
        with contextlib.suppress(Exception), contextlib.redirect_stderr(output):
            hook()
        sys.stderr.write((f"rank {self._mpi.rank}: " if self._is_on and output.tell() else "") + output.getvalue())

    def _leave(self) -> None:
        """Wait at the end of the script until all scripts have ended, while the watchdog looks for deadlocks."""
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
