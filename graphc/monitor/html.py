"""HTML page with everything recorded by a monitor; it needs no network and is updated while the program runs."""

from __future__ import annotations

import base64
import os
import time
from html import escape

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.files.container import replacing
from graphc.monitor.chart import histogram_chart, line_chart
from graphc.monitor.writer import Histogram, Writer, png

_STYLE = (
    "body{font:14px system-ui,sans-serif;color:#222;background:#fafafa;margin:16px}h1{font-size:18px}"
    "h2{font-size:15px;margin:18px 0 6px}.cards{display:flex;flex-wrap:wrap;gap:10px}"
    ".card{background:#fff;border:1px solid #ddd;border-radius:6px;padding:8px;width:420px}"
    ".card p{margin:0 0 4px;font-weight:600;overflow-wrap:anywhere}.card span{font-weight:400;color:#666}"
    "svg{width:100%;height:auto}svg text{font-size:10px;fill:#666}.grid{stroke:#eee;fill:none}"
    ".line{stroke:#1c5a8a;fill:none;stroke-width:1.5}circle,.map{fill:#1c5a8a}"
    "img{image-rendering:pixelated;width:100%;max-height:300px;object-fit:contain}"
)
_MOST_HISTOGRAMS = 240


class HtmlWriter(Writer):
    """Writer of one page to ``path``, written atomically at most every ``seconds`` and at the end.

    While the program runs, the page reloads itself after as many seconds. It shows the last image of each name. Raises
    ArgumentError for negative ``seconds``.
    """

    def __init__(self, path: str | os.PathLike[str], seconds: float = 5.0, title: str = "monitor"):
        if seconds < 0:
            raise ArgumentError(f"HtmlWriter: seconds must be at least 0, got {seconds}")
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
        for name, (steps, values) in self._scalars.items():
            note = f"{values[-1]:.5g} at step {steps[-1]}"
            _card(groups, name, note, line_chart(name, steps, values))
        for name, (steps, tables) in self._tables.items():
            _card(groups, name, f"{tables[-1].count} values at step {steps[-1]}", histogram_chart(name, steps, tables))
        for name, (step, image) in self._images.items():
            data = base64.b64encode(png(image)).decode()
            _card(groups, name, f"step {step}", f'<img alt="{escape(name)}" src="data:image/png;base64,{data}">')
        body = "".join(
            f'<h2>{escape(group)}</h2><div class="cards">{"".join(cards)}</div>' for group, cards in groups.items()
        )
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8">{refresh}<title>{escape(self.title)}</title>'
            f"<style>{_STYLE}</style></head><body><h1>{escape(self.title)}</h1>{body}</body></html>\n"
        )


def _card(groups: dict[str, list[str]], name: str, note: str, content: str) -> None:
    group = name.rpartition("/")[0]
    card = f'<div class="card"><p>{escape(name)} <span>{escape(note)}</span></p>{content}</div>'
    groups.setdefault(group, []).append(card)
