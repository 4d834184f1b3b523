"""Status queries over TCP, separate from the collectives: a process asks others for their activity in a deadlock."""

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
