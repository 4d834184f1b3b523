"""Commands in a pseudo-terminal, where Ctrl-C comes from the keyboard."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from typing import Any

CTRL_C, CTRL_D = "\x03", "\x04"
LIMIT = 120.0
"""Seconds within which a command must write what a test waits for."""


class Terminal:
    """A ``graphc`` command whose input and output are a terminal."""

    def __init__(self, *words: Any):
        self._keyboard, end = pty.openpty()
        command = [sys.executable, "-m", "graphc", *map(str, words)]
        environment = os.environ | {"GRAPHC_PROGRESS": "off"}
        self._process = subprocess.Popen(
            command, stdin=end, stdout=end, stderr=end, env=environment, preexec_fn=_take_terminal
        )
        os.close(end)
        self._bytes = b""

    @property
    def text(self) -> str:
        """Everything on the screen so far; the terminal also shows what is typed, and Ctrl-C as ^C."""
        return self._bytes.decode(errors="replace").replace("\r\n", "\n")

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._keyboard, text.encode())

    def wait(self, is_reached: Callable[[str], bool]) -> None:
        """Read the screen until its text has a property. Raise AssertionError if the command ends before."""
        end = time.monotonic() + LIMIT
        while not is_reached(self.text):
            assert time.monotonic() < end and self._read(), f"not reached: {self.text!r}"

    def code(self) -> int:
        """Read the rest, and return the exit code."""
        end = time.monotonic() + LIMIT
        while self._read():
            assert time.monotonic() < end, self.text
        return self._process.wait(LIMIT)

    def close(self) -> None:
        """End the command."""
        self._process.kill()
        self._process.wait()
        os.close(self._keyboard)

    def _read(self) -> bool:
        """Read what there is, within a second. Return False after the end."""
        if select.select([self._keyboard], [], [], 1.0)[0]:
            try:
                piece = os.read(self._keyboard, 1 << 16)
            except OSError:  # Linux reports the end of the last process as an error
                return False
            self._bytes += piece
            return bool(piece)
        return self._process.poll() is None


def _take_terminal() -> None:
    """Make the terminal that of a new session, so that its Ctrl-C reaches the process."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
