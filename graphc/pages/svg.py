"""SVG drawing of a laid-out diagram: boxes, groups with titles, and lines, as ``draw.js`` draws them on a page."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from graphc.pages.diagram import Box, BoxGroup, Diagram, PageNode
from graphc.pages.layout import HEADER, Level, arrange, item_height

STYLE = "drawing.css"
STRAIGHT = 7.0
"""Length of the vertical end of a line, so that its arrow points down."""


def draw(diagram: Diagram) -> str:
    """Return the SVG of a diagram: it runs no script, loads nothing, and follows the reader's light or dark scheme."""
    levels = arrange(diagram)
    root = levels[diagram.root]
    width, height = root.width, root.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graphc" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" '
        f'style="display:block;margin:auto;max-width:100%;height:auto"><style>{_style()}</style>'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0.5L8 4L0 7.5z"/></marker></defs>'
        f'<rect class="page" width="{width:.0f}" height="{height:.0f}" rx="8"/>'
    ]
    _Drawing(diagram, levels, parts).group(diagram.root, 0.0, 0.0)
    return "".join(parts) + "</svg>"


@cache
def _style() -> str:
    """Return the style of drawings for light and dark pages. Colours replace variables, which not all viewers know."""
    text = Path(__file__).with_name(STYLE).read_text(encoding="utf-8")
    rules = "".join(re.findall(r"^[.]graphc .*$", text, re.MULTILINE))
    light, dark = (
        re.sub(r"var\(--([\w-]+)\)", lambda variable, colours=colours: colours[variable[1]], rules)
        for colours in (dict(re.findall(r"--([\w-]+): (#\w+)", palette)) for palette in text.split("data-theme"))
    )
    return f"{light}@media (prefers-color-scheme: dark) {{{dark}}}".replace('"', "'")


class _Drawing:
    """Data for drawing a diagram."""

    def __init__(self, diagram: Diagram, levels: dict[BoxGroup, Level], parts: list[str]):
        self.diagram = diagram
        self.levels = levels
        self.parts = parts

    def group(self, group: BoxGroup, left: float, top: float) -> None:
        """Draw the inside of a group: lines first, items over them."""
        level = self.levels[group]
        for number in range(len(level.segments)):
            self.parts.append(self.line(group, number, left, top))
        for element in level.elements:
            if element.item is None:
                continue
            y = top + self.top(level, element)
            if isinstance(element.item, BoxGroup):
                self.open_group(element.item, left + element.x - element.width / 2, y)
            else:
                self.parts.append(_box(self.diagram.boxes[element.item], left + element.x, y))

    def open_group(self, group: BoxGroup, x: float, y: float) -> None:
        """Draw a group with its title."""
        level = self.levels[group]
        self.parts.append(
            f'<g class="open depth-{group.depth % 2}" transform="translate({x:.1f} {y:.1f})">'
            f'<rect class="frame" rx="9" width="{level.width:.1f}" height="{level.height:.1f}"/></g>'
        )
        self.group(group, x, y)
        tip = f"{group.key.replace('/', '.')}: {len(group.nodes)} nodes"
        self.parts.append(
            f'<g class="header" transform="translate({x:.1f} {y:.1f})"><title>{escape(tip)}</title><rect class="bar" '
            f'rx="8" x="1" y="1" width="{level.width - 2:.1f}" height="24"/>'
            f'<text class="name" x="12" y="17">{escape(group.title)}</text></g>'
        )

    def top(self, level: Level, element: Any) -> float:
        """Return the upper border of an element; items are centered in their rank."""
        if element.item is None:
            return level.tops[element.rank]
        free = level.heights[element.rank] - item_height(element.item, self.diagram, self.levels)
        return level.tops[element.rank] + free / 2

    def line(self, group: BoxGroup, number: int, left: float, top: float) -> str:
        """Draw a line: straight out of its rank, curved between the ranks, straight to its end.

        It begins below the label of a box, and inside of a group below the title.
        """
        level = self.levels[group]
        segment = level.segments[number]
        start, end = level.elements[segment.start], level.elements[segment.end]
        x1, x2 = left + start.x + segment.out, left + end.x + segment.into
        low = top + level.tops[start.rank] + level.heights[start.rank]
        y1 = top + self.top(level, start)
        if start.item is not None:
            y1 += item_height(start.item, self.diagram, self.levels)
        elif not start.rank and group.parent:
            y1 = low = low + HEADER - 4
        high = top + level.tops[end.rank] - STRAIGHT
        middle = (low + high) / 2
        arrow = ' marker-end="url(#arrow)"' if isinstance(end.item, int) else ""
        return (
            f'<path class="line"{arrow} d="M{x1:.1f} {y1:.1f}L{x1:.1f} {low:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} '
            f'{middle:.1f} {x2:.1f} {high:.1f}L{x2:.1f} {top + self.top(level, end):.1f}"/>'
        )


def _box(box: Box, x: float, y: float) -> str:
    """Draw a box around the middle ``x`` below ``y``, and its label below it."""
    width, height = box.width, box.height
    stripe = f'<rect class="stripe" rx="2" width="4" height="{height:.0f}"/>' if isinstance(box.item, PageNode) else ""
    lines = "".join(
        f'<text class="sub" x="{width / 2:.1f}" y="{33 + 15 * i}">{escape(line)}</text>'
        for i, line in enumerate(box.lines)
    )
    label = f'<text class="label" x="{x:.1f}" y="{y + height + 14:.1f}">{escape(box.label)}</text>' if box.label else ""
    return (
        f'<g class="box kind-{box.kind}" transform="translate({x - width / 2:.1f} {y:.1f})">'
        f"<title>{escape(_tip(box))}</title>"
        f'<rect class="body" rx="6" width="{width:.1f}" height="{height:.0f}"/>{stripe}'
        f'<text class="title" x="{width / 2:.1f}" y="19">{escape(box.title)}</text>{lines}</g>{label}'
    )


def _tip(box: Box) -> str:
    """Return the tooltip of a box: values, attributes and source line of a node, the size of a group."""
    if isinstance(box.item, BoxGroup):
        return f"{box.item.key.replace('/', '.')}: {len(box.item.nodes)} nodes"
    record = box.item.record
    lines = [f"%{name}: {type_text}" for name, type_text in record["results"]]
    lines += [f"{name} = {value}" for name, value in record.get("attrs", ())]
    return "\n".join([record["op"], *lines, *([record["line"]] if record.get("line") else [])])
