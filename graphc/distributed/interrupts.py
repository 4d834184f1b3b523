"""Detection of Ctrl-C while a script waits inside MPI, where Python's handler does not run."""

from __future__ import annotations

import contextlib
import signal
import socket


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
