"""Whether Ctrl-C has come: a script that waits inside of MPI does not see it."""

from __future__ import annotations

import contextlib
import signal
import socket


class Interrupts:
    """Notes of signals, which Python's handler writes at once, whatever the script is doing."""

    def __init__(self) -> None:
        """Notes nothing where another one is told of signals already, or outside of the main thread."""
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        with contextlib.suppress(ValueError):
            before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
            if before >= 0:
                signal.set_wakeup_fd(before, warn_on_full_buffer=False)

    def have_come(self) -> bool:
        """Whether Ctrl-C was pressed since the last question."""
        try:
            return signal.SIGINT in self._reader.recv(1024)
        except OSError:
            return False

    def close(self) -> None:
        """Notes nothing any more; also in a process that was forked."""
        with contextlib.suppress(ValueError):
            present = signal.set_wakeup_fd(-1)
            if present not in (-1, self._writer.fileno()):
                signal.set_wakeup_fd(present, warn_on_full_buffer=False)
        self._reader.close()
        self._writer.close()
