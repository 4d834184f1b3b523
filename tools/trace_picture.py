"""Flame view of a Chrome trace as SVG: time from left to right, and calls below their callers.

    python -m tools.trace_picture trace.json -o trace.svg
    python -m tools.trace_picture trace.json -o trace.svg --begin 12 --end 20   # milliseconds of the trace

The drawing runs no script and follows the reader's light or dark scheme.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from graphc.monitor.chart import ticks

WIDTH = 1400
"""Width of the drawing by default."""
MARGIN, TOP = 12, 52
"""Space on the left and on the right, and above the bars for the legend and the axis."""
ROW, GAP = 22, 14
"""Height of a bar, and of the space above the name of a thread."""
LETTER = 6.8
"""Width of a letter, for texts that must fit into their bar."""
NARROWEST = 0.4
"""Shortest bar that is drawn."""
COLORS = {
    "python_function": ("#b9d4f1", "#27496b"),
    "cpu_op": ("#c3e2c4", "#2a5230"),
    "compiled": ("#d9cdf2", "#483a70"),
    "kernel": ("#f7cfa8", "#7a4a1c"),
    "compile": ("#f3c3cf", "#6f2f42"),
    "pass": ("#f0dcab", "#665219"),
    "profiler": ("#d5d8dd", "#454b55"),
}
"""Light and dark colour of each category; other categories look like the profiler's."""
_STYLE = (
    "text{font:11.5px system-ui,sans-serif;fill:#222}.note{fill:#555}.paper{fill:#fff}.axis{stroke:#8886;fill:none}"
    "rect{stroke-width:0.5}.bar{stroke:#fff}"
)
_DARK = "text{fill:#eee}.note{fill:#aab}.paper{fill:#0d1117}.bar{stroke:#0d1117}"


class Bar(NamedTuple):
    """Event of the trace, with its depth below the other events of its thread."""

    event: dict[str, Any]
    depth: int

    @property
    def begin(self) -> float:
        """Microseconds."""
        return self.event["ts"]

    @property
    def end(self) -> float:
        """Microseconds."""
        return self.event["ts"] + self.event["dur"]


class Scale(NamedTuple):
    """Positions of times on a drawing."""

    first: float
    """Microseconds at the left end."""
    last: float
    """Microseconds at the right end."""
    width: float

    def x(self, time: float) -> float:
        """Return the position of a time; one outside of the drawing is at its end."""
        share = (min(max(time, self.first), self.last) - self.first) / (self.last - self.first)
        return MARGIN + (self.width - 2 * MARGIN) * share

    def length(self, bar: Bar) -> float:
        """Return the visible length of a bar."""
        return self.x(bar.end) - self.x(bar.begin)


def bars_of(events: Iterable[dict[str, Any]]) -> dict[tuple[int, int], list[Bar]]:
    """Return the complete events of each process and thread, in the order of their begin."""
    threads: dict[tuple[int, int], list[Bar]] = {}
    open_bars: dict[tuple[int, int], list[Bar]] = {}
    complete = [event for event in events if event["ph"] == "X"]
    for event in sorted(complete, key=lambda e: (e["ts"], -e["dur"])):
        thread = event["pid"], event["tid"]
        around = open_bars.setdefault(thread, [])
        # NOTE: events have nanoseconds, so two of them may overlap by the rounding.
        while around and around[-1].end <= event["ts"] + 0.002:
            around.pop()
        around.append(Bar(event, len(around)))
        threads.setdefault(thread, []).append(around[-1])
    return threads


def svg(trace: dict[str, Any], begin: float | None = None, end: float | None = None, width: float = WIDTH) -> str:
    """Return the picture of a trace between two times in milliseconds (default: all of it).

    Raises ValueError for a trace without events in that time.
    """
    events = trace["traceEvents"]
    threads = bars_of(events)
    times = [time for bars in threads.values() for bar in bars for time in (bar.begin, bar.end)]
    first = 1000.0 * begin if begin is not None else min(times, default=0.0)
    last = 1000.0 * end if end is not None else max(times, default=0.0)
    visible = {t: [b for b in bars if b.end > first and b.begin < last] for t, bars in threads.items()}
    visible = {thread: bars for thread, bars in visible.items() if bars}
    if not visible:
        raise ValueError("the trace has no events in this time")
    scale = Scale(first, last, width)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    parts, top = [], float(TOP)
    for thread, bars in visible.items():
        name = escape(names.get(thread, f"thread {thread[1]}"))
        parts.append(f'<text class="note" x="{MARGIN}" y="{top + 12:g}">{name}</text>')
        parts += [_bar(bar, scale, top + 18) for bar in bars if scale.length(bar) >= NARROWEST]
        top += 18 + ROW * (1 + max(bar.depth for bar in bars)) + GAP
    categories = dict.fromkeys(b.event.get("cat", "") for bars in visible.values() for b in bars)
    return _page(width, top, [*_legend(list(categories)), *_axis(scale, top), *parts])


def _bar(bar: Bar, scale: Scale, top: float) -> str:
    x, width, y = scale.x(bar.begin), scale.length(bar), top + ROW * bar.depth
    name, category = bar.event["name"], bar.event.get("cat", "")
    room = int((width - 8) / LETTER)
    module = bar.event.get("args", {}).get("module", "")
    texts = [text for text in (f"{name} {module}".strip(), name) if len(text) <= room]
    label = texts[0] if texts else f"{name[: room - 1]}…" if room >= 4 else ""
    title = escape(f"{name} ({category}), {bar.event['dur']:,.1f} µs")
    drawn = f'<rect class="bar {_class(category)}" x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{ROW - 2}">'
    drawn += f"<title>{title}</title></rect>"
    return drawn + (f'<text x="{x + 4:.2f}" y="{y + 14:g}">{escape(label)}</text>' if label else "")


def _class(category: str) -> str:
    return category if category in COLORS else "profiler"


def _legend(categories: Sequence[str]) -> list[str]:
    parts, x = [], float(MARGIN)
    for category in categories:
        parts.append(f'<rect class="bar {_class(category)}" x="{x:g}" y="8" width="14" height="14"/>')
        parts.append(f'<text x="{x + 19:g}" y="19">{escape(category)}</text>')
        x += 40 + LETTER * len(category)
    return parts


def _axis(scale: Scale, bottom: float) -> list[str]:
    parts = []
    for time in ticks(scale.first / 1000, scale.last / 1000, max(2, round(scale.width / 150))):
        x = scale.x(1000 * time)
        parts.append(f'<path class="axis" d="M{x:.1f} 44V{bottom:g}"/>')
        anchor = "end" if x > scale.width - 60 else "start"
        parts.append(f'<text class="note" x="{x:.1f}" y="40" text-anchor="{anchor}">{time:g} ms</text>')
    return parts


def _page(width: float, height: float, parts: Sequence[str]) -> str:
    light, dark = ("".join(f".{name}{{fill:{colors[i]}}}" for name, colors in COLORS.items()) for i in (0, 1))
    style = f"{_STYLE}{light}@media(prefers-color-scheme:dark){{{_DARK}{dark}}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" style="max-width:100%;height:auto" role="img" aria-label="trace"><style>{style}</style>'
        f'<rect class="paper" width="{width:g}" height="{height:g}"/>{"".join(parts)}</svg>\n'
    )


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.trace_picture", description="Draw a Chrome trace as SVG.")
    parser.add_argument("trace", type=Path, help="file of gc.profile, or another Chrome trace")
    parser.add_argument("-o", "--output", type=Path, required=True, help="SVG file to write")
    parser.add_argument("--begin", type=float, metavar="MS", help="first millisecond of the picture")
    parser.add_argument("--end", type=float, metavar="MS", help="last millisecond of the picture")
    parser.add_argument("--width", type=float, default=WIDTH, help="width of the picture (default: %(default)s)")
    options = parser.parse_args(words)
    trace = json.loads(options.trace.read_text(encoding="utf-8"))
    options.output.write_text(svg(trace, options.begin, options.end, options.width), encoding="utf-8")


if __name__ == "__main__":
    main()
