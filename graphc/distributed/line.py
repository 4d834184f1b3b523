"""A line beside the collectives, over TCP, by which one process asks another what it is doing when messages stop."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

KEY_BYTES = 32
"""Length of the key that the processes of one group share."""
_NONCE_BYTES = 16
_PATIENCE = 3.0
"""Seconds for which a process waits for another one's answer: a computer answers in milliseconds, a process that was
stopped or that holds Python's lock not at all."""
_MOST_BYTES = 1 << 20
"""No answer is longer."""


class Line:
    """A socket and a thread that answers each caller who knows the key with what ``status`` gives, as JSON."""

    def __init__(self, status: Callable[[], Any], key: bytes, near: bool):
        """``near``: all processes are on this machine, so that nobody else need reach it. Raises OSError."""
        self._status, self._key, self._process = status, key, os.getpid()
        self._socket = socket.create_server(("127.0.0.1" if near else "", 0), backlog=64)
        host = "127.0.0.1" if near else socket.gethostname()
        self.address: tuple[str, int] = (host, self._socket.getsockname()[1])
        """Where the others ask."""
        threading.Thread(target=self._serve, name="graphc status", daemon=True).start()

    def close(self) -> None:
        """Answers no more; also in a process that was forked, to which the thread did not come."""
        if os.getpid() == self._process:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # else the thread that waits would take one more caller
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
                # NOTE: whoever calls may break off, or say anything; the next one is answered.
                except OSError:
                    continue

    def _answer(self, caller: socket.socket) -> None:
        caller.settimeout(_PATIENCE)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        caller.sendall(nonce)
        if hmac.compare_digest(_received(caller, KEY_BYTES), hmac.digest(self._key, nonce, "sha256")):
            caller.sendall(json.dumps(self._status()).encode())


def ask(address: tuple[str, int], key: bytes) -> Any:
    """What the process at an address says; None where it does not answer."""
    try:
        with socket.create_connection(address, timeout=_PATIENCE) as line:
            line.sendall(hmac.digest(key, _received(line, _NONCE_BYTES), "sha256"))
            return json.loads(_received(line, _MOST_BYTES))
    except (OSError, ValueError):
        return None


def _received(line: socket.socket, count: int) -> bytes:
    """So many bytes, or fewer where the other one ends before."""
    found = b""
    while len(found) < count and (part := line.recv(count - len(found))):
        found += part
    return found
