"""Live table of numbers in the terminal, drawn by the ``rich`` package (extra ``monitor``)."""

from __future__ import annotations

from collections import deque
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.installation import install_command
from graphc.monitor.writer import Histogram, Writer

_BARS = "▁▂▃▄▅▆▇█"


class TerminalWriter(Writer):
    """Writer of a table: last, smallest and largest value of every scalar, its recent course, and histograms as bars.

    ``width`` is the number of recent values in the course. ``console`` is a rich console, by default on stderr, since
    stdout is for data. On a terminal the table is updated in place; otherwise it is printed once at the end. Raises
    ArgumentError without the package.
    """

    def __init__(self, width: int = 24, console: Any = None):
        package = _package()
        self._table = package.table.Table
        self._console = console or package.console.Console(stderr=True)
        self._live = package.live.Live(console=self._console, auto_refresh=False, transient=False)
        self._width = width
        self._courses: dict[str, deque[float]] = {}
        self._limits: dict[str, tuple[float, float]] = {}
        self._bars: dict[str, str] = {}
        self._step = 0
        self._closed = False

    def scalar(self, name: str, value: float, step: int) -> None:
        low, high = self._limits.get(name, (value, value))
        self._limits[name] = (min(low, value), max(high, value))
        self._courses.setdefault(name, deque(maxlen=self._width)).append(value)
        self._step = step

    def histogram(self, name: str, value: Histogram, step: int) -> None:
        size = -(-len(value.counts) // self._width)
        groups = [float(value.counts[i : i + size].sum()) for i in range(0, len(value.counts), size)]
        self._bars[name] = f"{value.edges[0]:.3g} {bars(groups, 0.0)} {value.edges[-1]:.3g}"

    def flush(self) -> None:
        if self._closed or not self._console.is_terminal:
            return
        self._live.start()
        self._live.update(self.render(), refresh=True)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._console.is_terminal:
            self._live.stop()
        else:
            self._console.print(self.render())

    def render(self) -> Any:
        """Return the current table as a rich renderable."""
        table = self._table(title=f"step {self._step}")
        for title in ("", "last", "min", "max"):
            table.add_column(title, justify="right" if title else "left", no_wrap=True)
        table.add_column("course", no_wrap=True)
        for name, course in self._courses.items():
            low, high = self._limits[name]
            table.add_row(name, f"{course[-1]:.3g}", f"{low:.3g}", f"{high:.3g}", bars(list(course)))
        for name, bar_text in self._bars.items():
            table.add_row(name, "", "", "", bar_text)
        return table


def bars(values: list[float], low: float | None = None) -> str:
    """Draw values as one line of bars from the smallest value (or ``low``) to the largest; NaN and infinity are
    spaces."""
    numbers = [v for v in values if abs(v) < float("inf")]
    bottom = min(numbers, default=0.0) if low is None else low
    height = max(numbers, default=0.0) - bottom
    last = len(_BARS) - 1
    marks = []
    for value in values:
        finite = abs(value) < float("inf")
        marks.append(_BARS[round((value - bottom) / height * last) if height > 0 else 0] if finite else " ")
    return "".join(marks)


def _package() -> Any:
    try:
        import rich.console
        import rich.live
        import rich.table
    except ImportError:
        remedy = f"install rich: {install_command('monitor')}"
        raise ArgumentError("the live table needs the package rich", remedy=remedy) from None
    return rich
