"""HTML page with everything recorded by a monitor; it needs no network and is updated while the program runs."""

from __future__ import annotations

import base64
import json
import math
import os
import re
import time
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.files.container import replacing
from graphc.monitor.chart import histogram_chart, thin
from graphc.monitor.writer import Histogram, Writer, png

_CONTROLS = (
    '<div class="controls"><label>smoothing <input id="smooth" type="range" min="0" max="0.99" step="0.01" value="0">'
    '<output id="smooth-value"></output></label><label><input id="log" type="checkbox"> log scale</label>'
    '<label>beside <input id="beside" type="file" accept=".html"></label><div id="runs"></div></div>'
    "<noscript>The lines are drawn by the script of this page.</noscript>"
)
_STYLE, _SCRIPT = "monitor.css", "monitor.js"
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_MOST_HISTOGRAMS = 240


class HtmlWriter(Writer):
    """Writer of one page to ``path``, written atomically at most every ``seconds`` and at the end.

    While the program runs, the page reloads itself after as many seconds. Lines can be smoothed and have a log scale;
    hovering shows values. It shows the last image of each name. ``beside`` is the page of another run, whose lines are
    drawn with those of this one; the page itself can also open one. Raises ArgumentError for negative ``seconds``, and
    for a page that no HtmlWriter wrote.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        seconds: float = 5.0,
        title: str = "monitor",
        beside: str | os.PathLike[str] | None = None,
    ):
        if seconds < 0:
            raise ArgumentError(f"HtmlWriter: seconds must be at least 0, got {seconds}")
        self._beside = [] if beside is None else [_run_of(beside)]
        self.path = os.fspath(path)
        self.seconds = seconds
        self.title = title
        self._scalars: dict[str, tuple[list[int], list[float]]] = {}
        self._tables: dict[str, tuple[list[int], list[Histogram]]] = {}
        self._images: dict[str, tuple[int, np.ndarray]] = {}
        self._written: float | None = None

    def scalar(self, name: str, value: float, step: int) -> None:
        steps, values = self._scalars.setdefault(name, ([], []))
        steps.append(step)
        values.append(value)

    def histogram(self, name: str, value: Histogram, step: int) -> None:
        """Store one histogram; if there are more than 240 of a name, every other one is dropped."""
        steps, tables = self._tables.setdefault(name, ([], []))
        steps.append(step)
        tables.append(value)
        if len(steps) > _MOST_HISTOGRAMS:
            del steps[1::2], tables[1::2]

    def image(self, name: str, value: np.ndarray, step: int) -> None:
        self._images[name] = (step, value)

    def flush(self) -> None:
        """Write the page, unless the last write was less than ``seconds`` ago."""
        if self._written is None or time.monotonic() - self._written >= self.seconds:
            self._write(running=True)

    def close(self) -> None:
        """Write the final page, which does not reload itself."""
        self._write(running=False)

    def _write(self, running: bool) -> None:
        with replacing(self.path) as file:
            file.write(self.page(running).encode())
        self._written = time.monotonic()

    def page(self, running: bool = False) -> str:
        """Return the page as HTML; if ``running``, it reloads itself."""
        refresh = f'<meta http-equiv="refresh" content="{max(1, round(self.seconds))}">' if running else ""
        groups: dict[str, list[str]] = {}
        for name in self._scalars:
            _card(groups, name, "", f'<div class="chart" data-name="{escape(name)}"></div>')
        for name, (steps, tables) in self._tables.items():
            _card(groups, name, f"{tables[-1].count} values at step {steps[-1]}", histogram_chart(name, steps, tables))
        for name, (step, image) in self._images.items():
            data = base64.b64encode(png(image)).decode()
            _card(groups, name, f"step {step}", f'<img alt="{escape(name)}" src="data:image/png;base64,{data}">')
        body = "".join(
            f'<h2>{escape(group)}</h2><div class="cards">{"".join(cards)}</div>' for group, cards in groups.items()
        )
        # NOTE: "</script>" in the data would end the script element, so "<" is escaped, as JSON permits.
        data = json.dumps([self._run(), *self._beside], separators=(",", ":")).replace("<", "\\u003c")
        style, script = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in (_STYLE, _SCRIPT))
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8">{refresh}'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(self.title)}</title>'
            f"<style>{style}</style></head><body><h1>{escape(self.title)}</h1>{_CONTROLS}{body}"
            f'<script type="application/json" id="data">{data}</script>\n<script>"use strict";(() => {{\n{script}}})();'
            "</script></body></html>\n"
        )

    def _run(self) -> dict[str, Any]:
        """Return the title and the lines of this run; NaN and infinities are null."""
        lines = {
            name: [[step, value if math.isfinite(value) else None] for step, value in thin(steps, values)]
            for name, (steps, values) in self._scalars.items()
        }
        return {"title": self.title, "scalars": lines}


def _run_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the run of a page that an HtmlWriter wrote."""
    data = _DATA.search(Path(path).read_text(encoding="utf-8"))
    if data is None:
        raise ArgumentError(
            f"{os.fspath(path)} is not a page of an HtmlWriter", remedy="pass beside=a page that one wrote"
        )
    return json.loads(data[1])[0]


def _card(groups: dict[str, list[str]], name: str, note: str, content: str) -> None:
    group, _, title = name.rpartition("/")
    card = f'<div class="card"><p>{escape(title)} <span>{escape(note)}</span></p>{content}</div>'
    groups.setdefault(group, []).append(card)
