"""Progress bar on a terminal, cleared when the work ends."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from graphc.base.progress import TerminalLine

PERIOD = 0.1
"""Least seconds between two updates of the line."""
WIDTH, LEAST_WIDTH = 24, 6
"""Characters of the bar, and at least so many in narrow terminals."""


class Progress:
    """Progress bar from 0 to ``total``, shown on stderr if that is a terminal and GRAPHC_PROGRESS is on."""

    def __init__(self, doing: str, total: float, unit: str = ""):
        self._doing, self._total, self._unit = doing, max(total, 1e-9), unit
        self._start = self._drawn_at = time.monotonic()
        self._terminal = TerminalLine()

    def line(self, done: float, note: str = "") -> str:
        """Return the text of the line when ``done`` of the total is reached."""
        share = min(max(done / self._total, 0.0), 1.0)
        count = f"{done:.0f}/{self._total:.0f} {self._unit}" if self._unit else f"{share:4.0%}"
        spent = time.monotonic() - self._start
        estimate = f", {spent / share - spent:.0f} s left" if share > 0.02 and spent > 1 else ""
        text = f"{count}{estimate} {note}".rstrip()
        width = max(LEAST_WIDTH, min(WIDTH, self._terminal.width - len(f"{self._doing} [] {text}")))
        return f"{self._doing} [{'#' * round(share * width):<{width}}] {text}"

    def tell(self, done: float, note: str = "") -> None:
        """Show ``done`` of the total, at most once in ``PERIOD`` seconds."""
        now = time.monotonic()
        if self._terminal.is_visible and now - self._drawn_at >= PERIOD:
            self._drawn_at = now
            self._terminal.write(self.line(done, note))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._terminal.clear()
