"""Pictures of a training: a chart for each measure over the epochs, as SVG, or by the ``matplotlib`` package."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.files.container import replacing
from graphc.monitor.chart import thin, ticks

Chart = dict[str, list[float]]
"""Lines of a chart by label; a value that is not finite interrupts its line."""
COLORS = {"train": "#2f6fb7", "valid": "#d9730d"}
"""Colours of the lines, readable on white and on black."""
WIDTH, HEIGHT = 360, 220
"""Size of a chart."""
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 40, 34
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#444}.title{font-weight:600;fill:#222}.grid{stroke:#8884;fill:none}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}.best{stroke:#888;stroke-dasharray:3 3;fill:none}"
    ".paper{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#bbb}.title{fill:#eee}.paper{fill:#0d1117}}"
)


class Picture(str):
    """Text of an SVG image, which notebooks show."""

    def _repr_svg_(self) -> str:
        return str(self)


def draw(
    charts: Mapping[str, Chart], epochs: Sequence[int], best: int | None, path: str | os.PathLike[str] | None
) -> Any:
    """Draw charts by title; see ``History.plot``."""
    if path is None:
        pyplot = _pyplot()
        return Picture(svg(charts, epochs, best)) if pyplot is None else _figure(pyplot, charts, epochs, best)
    check_path(path)
    if _is_svg(path):
        with replacing(path) as file:
            file.write(svg(charts, epochs, best).encode())
        return None
    pyplot = _pyplot()
    figure = _figure(pyplot, charts, epochs, best)
    figure.savefig(path)
    pyplot.close(figure)
    return None


def check_path(path: str | os.PathLike[str]) -> None:
    """Raise ArgumentError for a file that cannot be drawn: without its folder, or without matplotlib."""
    if not Path(path).resolve().parent.is_dir():
        raise ArgumentError(f"{os.fspath(path)!r} is in no existing folder", remedy="create the folder first")
    if not _is_svg(path) and _pyplot() is None:
        raise ArgumentError(
            f"{os.fspath(path)!r} needs matplotlib, which is not installed",
            remedy="name a .svg file, or install it: pip install matplotlib",
        )


def _is_svg(path: str | os.PathLike[str]) -> bool:
    return Path(path).suffix.lower() == ".svg"


def _pyplot() -> Any:
    """Return ``matplotlib.pyplot``; None if it is not installed."""
    try:
        return importlib.import_module("matplotlib.pyplot")
    except ImportError:
        return None


def _figure(pyplot: Any, charts: Mapping[str, Chart], epochs: Sequence[int], best: int | None) -> Any:
    columns = min(len(charts), 2)
    rows = -(-len(charts) // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(4.5 * columns, 3 * rows), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(charts) :]:
        axis.remove()
    for axis, (title, lines) in zip(axes.flat, charts.items(), strict=False):
        for label, values in lines.items():
            mark = "o" if len(epochs) == 1 else None
            axis.plot(epochs, values, label=label, color=COLORS[label], marker=mark)
        if best is not None:
            axis.axvline(best, color="#888888", linestyle=":", linewidth=1, label=f"best epoch, {best}")
        axis.set_title(title, loc="left")
        axis.set_xlabel("epoch")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    return figure


def svg(charts: Mapping[str, Chart], epochs: Sequence[int], best: int | None) -> str:
    """Return the charts as one SVG image, two beside each other."""
    columns = min(len(charts), 2)
    width, height = columns * WIDTH, -(-len(charts) // columns) * HEIGHT
    panels = [
        f'<g transform="translate({i % columns * WIDTH} {i // columns * HEIGHT})">'
        f"{_panel(title, lines, epochs, best)}</g>"
        for i, (title, lines) in enumerate(charts.items())
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{escape(", ".join(charts))} over epochs"><style>{_STYLE}</style>'
        f'<rect class="paper" width="{width}" height="{height}"/>{"".join(panels)}</svg>\n'
    )


def _panel(title: str, lines: Chart, epochs: Sequence[int], best: int | None) -> str:
    finite = [v for values in lines.values() for v in values if math.isfinite(v)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    first, last = epochs[0], epochs[-1]

    def x(epoch: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * ((epoch - first) / (last - first) if last > first else 0.5)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ((value - low) / (high - low) if high > low else 0.5)

    shapes = [f'<text class="title" x="{LEFT}" y="16">{escape(title)}</text>']
    for value in ticks(low, high):
        shapes.append(f'<path class="grid" d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}"/>')
        shapes.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    for epoch in sorted({round(t) for t in ticks(first, last)}):
        shapes.append(f'<text x="{x(epoch):.1f}" y="{HEIGHT - 18}" text-anchor="middle">{epoch}</text>')
    shapes.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 4}" text-anchor="middle">epoch</text>')
    if best is not None:
        shapes.append(f'<path class="best" d="M{x(best):.1f} {TOP - 4}V{HEIGHT - BOTTOM}"/>')
    shapes += [_line(label, epochs, values, x, y) for label, values in lines.items()]
    return "".join([*shapes, _legend(lines, best)])


def _line(label: str, epochs: Sequence[int], values: Sequence[float], x: Any, y: Any) -> str:
    """Return a line through the finite values, interrupted at the others; a dot for a value between two others."""
    runs: list[list[tuple[float, float]]] = [[]]
    for epoch, value in thin(epochs, values):
        if math.isfinite(value):
            runs[-1].append((x(epoch), y(value)))
        elif runs[-1]:
            runs.append([])
    paths = ["L".join(f"{px:.1f} {py:.1f}" for px, py in run) for run in runs if len(run) > 1]
    dots = [run[0] for run in runs if len(run) == 1]
    return "".join(
        [f'<path class="line" stroke="{COLORS[label]}" d="M{path}"/>' for path in paths]
        + [f'<circle r="3" fill="{COLORS[label]}" cx="{px:.1f}" cy="{py:.1f}"/>' for px, py in dots]
    )


def _legend(lines: Chart, best: int | None) -> str:
    marks = [(f'class="line" stroke="{COLORS[label]}"', label) for label in lines]
    marks += [('class="best"', f"best epoch, {best}")] if best is not None else []
    shapes, left = [], LEFT
    for attributes, label in marks:
        shapes.append(f'<path {attributes} d="M{left} 28H{left + 16}"/><text x="{left + 21}" y="32">{label}</text>')
        left += 32 + 7 * len(label)
    return "".join(shapes)
