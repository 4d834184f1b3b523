"""A progress line on a terminal during a long compilation, erased at its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from graphc.base.progress import TerminalLine, listening

DELAY, PERIOD = 1.0, 0.25
"""Seconds before the line appears, and between its updates."""


class CompilationProgress:
    """The name and the present stage of a compilation."""

    def __init__(self, name: str):
        self.name = name
        self.stage = ""
        """The present stage."""
        self.counts = (0, 0)
        """Kernels of the stage that are done, and all of them; 0 and 0 where the stage does not count them."""
        self._start = time.perf_counter()
        self._done = threading.Event()

    def line(self) -> str:
        """Return the present line."""
        done, count = self.counts
        kernels = f", kernel {done + 1} of {count}" if count else ""
        return f"graphc: compiling {self.name}: {self.stage}{kernels} ({time.perf_counter() - self._start:.0f} s)"

    def tell(self, stage: str) -> None:
        """Set the present stage."""
        self.stage, self.counts = stage, (0, 0)

    def count(self, done: int, count: int) -> None:
        """Set the kernels of the stage that are done, and the number of all."""
        self.counts = done, count

    def run(self, line: TerminalLine) -> None:
        """Show the line until ``stop`` is called, but not during the first second."""
        wait = DELAY
        while line.is_visible and not self._done.wait(wait):
            line.write(self.line())
            wait = PERIOD
        if wait == PERIOD:
            line.clear()

    def stop(self) -> None:
        """Make ``run`` return."""
        self._done.set()


@contextmanager
def shown(name: str) -> Iterator[CompilationProgress]:
    """Show the progress of the block on stderr, if it is a terminal and GRAPHC_PROGRESS is on."""
    progress, line = CompilationProgress(name), TerminalLine()
    if not line.is_visible:
        yield progress
        return
    thread = threading.Thread(target=progress.run, args=(line,), name="graphc-progress", daemon=True)
    thread.start()
    try:
        with listening(progress.count):
            yield progress
    finally:
        progress.stop()
        thread.join()
