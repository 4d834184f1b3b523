"""A bar of progress on stderr: tqdm's where it is installed, else a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from benchmarks.harness.timing import find_library

_SECONDS = 5.0
"""Seconds between two lines where tqdm is not installed."""


class ProgressBar:
    """Counts steps of some kind up to a total."""

    def __init__(self, total: int, unit: str):
        library = find_library("tqdm")
        self._bar: Any = None if library is None else library.tqdm(total=total, unit=f" {unit}", file=sys.stderr)
        self._total, self._unit = total, unit
        self._done, self._note, self._told = 0, "", time.monotonic()

    def step(self, count: int = 1) -> None:
        """Count ``count`` more as done."""
        self._done += count
        if self._bar is not None:
            self._bar.update(count)
        elif time.monotonic() - self._told >= _SECONDS:
            self._told = time.monotonic()
            print(f"{self._done} of {self._total} {self._unit} {self._note}".rstrip(), file=sys.stderr)

    def note(self, text: str) -> None:
        """Show a text beside the count."""
        self._note = text
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()


def progress_bar(total: int, unit: str) -> ProgressBar:
    """Return a bar of ``total`` steps."""
    return ProgressBar(total, unit)
