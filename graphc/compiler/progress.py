"""A progress line on a terminal during a long compilation, erased at its end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from graphc.base import config

DELAY, PERIOD = 1.0, 0.25
"""Seconds before the line appears, and between its updates."""
_CLEAR = "\r\x1b[K"


class CompilationProgress:
    """The name and the present stage of a compilation."""

    def __init__(self, name: str):
        self.name = name
        self.stage = ""
        """The present stage."""
        self._start = time.perf_counter()
        self._done = threading.Event()

    def line(self) -> str:
        """Return the present line."""
        return f"graphc: compiling {self.name}: {self.stage} ({time.perf_counter() - self._start:.0f} s)"[:100]

    def tell(self, stage: str) -> None:
        """Set the present stage."""
        self.stage = stage

    def run(self) -> None:
        """Show the line until ``stop`` is called, but not during the first second."""
        wait = DELAY
        while not self._done.wait(wait):
            self._write(_CLEAR + self.line())
            wait = PERIOD
        if wait == PERIOD:
            self._write(_CLEAR)

    def stop(self) -> None:
        """Make ``run`` return."""
        self._done.set()

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # the terminal was closed
            self._done.set()


@contextmanager
def shown(name: str) -> Iterator[CompilationProgress]:
    """Show the progress of the block on stderr, if it is a terminal and GRAPHC_PROGRESS is on."""
    progress = CompilationProgress(name)
    if not (config.read().progress and sys.stderr is not None and sys.stderr.isatty()):
        yield progress
        return
    thread = threading.Thread(target=progress.run, name="graphc-progress", daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        progress.stop()
        thread.join()
