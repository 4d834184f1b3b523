"""Charts over steps: histograms as a heat map in SVG, and thinned points of lines, which the page draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from graphc.monitor.writer import Histogram

WIDTH, HEIGHT = 420, 180
LEFT, RIGHT, TOP, BOTTOM = 58, 10, 10, 22
MOST_POINTS = 400
_ROWS = 40


def thin(steps: Sequence[int], values: Sequence[float], most: int = MOST_POINTS) -> list[tuple[int, float]]:
    """Reduce the points to about ``most`` at most: keep the smallest and largest of each segment."""
    points = list(zip(steps, values, strict=True))
    if len(points) <= most:
        return points
    size = -(-len(points) * 2 // most)
    thinned: list[tuple[int, float]] = []
    for start in range(0, len(points), size):
        segment = points[start : start + size]
        extremes = {segment.index(min(segment, key=lambda p: p[1])), segment.index(max(segment, key=lambda p: p[1]))}
        thinned.extend(segment[i] for i in sorted(extremes))
    return thinned


def ticks(low: float, high: float, count: int = 4, whole: bool = False) -> list[float]:
    """Return round numbers, or ``whole`` numbers, between two limits; one if the limits are equal up to rounding."""
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        return [low]
    rough = (high - low) / count
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough * (1 - 1e-9))
    step = max(1.0, float(round(step))) if whole else step
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


class _Axes:
    """Mapping from steps and values to chart coordinates."""

    def __init__(self, steps: tuple[float, float], values: tuple[float, float]):
        self.steps = steps
        self.values = values

    def x(self, step: float) -> float:
        low, high = self.steps
        return LEFT + (WIDTH - LEFT - RIGHT) * ((step - low) / (high - low) if high > low else 0.5)

    def y(self, value: float) -> float:
        low, high = self.values
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ((value - low) / (high - low) if high > low else 0.5)

    def draw(self) -> str:
        shapes = []
        for value in ticks(*self.values):
            y = self.y(value)
            shapes.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            shapes.append(f'<text x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{value:.5g}</text>')
        for step in ticks(*self.steps, whole=True):
            shapes.append(f'<text x="{self.x(step):.1f}" y="{HEIGHT - 6}" text-anchor="middle">{step:.7g}</text>')
        return "".join(shapes)


def _svg(content: str, label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{content}</svg>'


def histogram_chart(name: str, steps: Sequence[int], tables: Sequence[Histogram]) -> str:
    """Draw one column for each step; a darker cell holds more of the step's values."""
    chosen = range(0, len(tables), -(-len(tables) // 60))
    low, high = min(float(t.edges[0]) for t in tables), max(float(t.edges[-1]) for t in tables)
    axes = _Axes((steps[chosen[0]], steps[chosen[-1]]), (low, high))
    width = (WIDTH - LEFT - RIGHT) / len(chosen)
    rows = np.linspace(low, high, _ROWS + 1)
    cell = (HEIGHT - TOP - BOTTOM) / _ROWS
    shapes = []
    for column, index in enumerate(chosen):
        shares = _resample(tables[index], rows)
        for row in np.flatnonzero(shares):
            shapes.append(
                f'<rect x="{LEFT + column * width:.1f}" y="{HEIGHT - BOTTOM - (row + 1) * cell:.1f}" '
                f'width="{width + 0.3:.1f}" height="{cell + 0.3:.1f}" fill-opacity="{shares[row]:.2f}"/>'
            )
    return _svg(f'<g class="map">{"".join(shapes)}</g>{axes.draw()}', name)


def _resample(table: Histogram, rows: np.ndarray) -> np.ndarray:
    """Resample the counts of a histogram to other edges, as fractions of the largest count."""
    below = np.concatenate([[0], np.cumsum(table.counts)]).astype(float)
    counts = np.diff(np.interp(rows, table.edges, below))
    return np.round(counts / max(float(counts.max()), 1.0), 2)
