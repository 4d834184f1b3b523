"""SVG drawing of a laid-out diagram: heights of ranks, boxes, groups with labels, and lines."""

from __future__ import annotations

from collections.abc import Container
from html import escape

from graphc.base.records import dataclass
from graphc.pages.diagram import Box, BoxGroup, Diagram
from graphc.pages.layout import Level, arrange

GAP = 30.0
"""Distance between ranks."""
HEADER = 34.0
"""Distance between the upper border of a group and its first rank."""
FOOTER = 12.0
STRAIGHT = 8.0
"""Length of the vertical end of a line, so that its arrow points down."""
CLOSED = 26.0
"""Height of a closed group."""
ONE_LINE, TWO_LINES = 22.0, 36.0

COLOURS = {
    "input": ("#d9ead3", "#38761d"),
    "output": ("#d9ead3", "#38761d"),
    "param": ("#fff2cc", "#b08900"),
    "state": ("#fce5cd", "#b45f06"),
    "weight": ("#fff2cc", "#b08900"),
    "constant": ("#eeeeee", "#777777"),
    "product": ("#cfe2f3", "#1c5a8a"),
    "reduce": ("#d9d2e9", "#5b4a8a"),
    "view": ("#f7f7f7", "#999999"),
    "op": ("#ffffff", "#555555"),
    "module": ("#e8eef7", "#45618a"),
}
"""Fill and border colour by kind of box."""

STYLE = (
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#222}"
    ".d{font-size:10px;fill:#666}.l{font-weight:bold;fill:#45618a}"
    ".b{stroke-width:1}.g{fill:#45618a;fill-opacity:.05;stroke:#45618a;stroke-opacity:.55}"
    ".s{fill:none;stroke:#777;stroke-width:1.1}"
)


@dataclass
class Heights:
    """Vertical layout of a group, from its upper border."""

    tops: list[float]
    """Upper border of each rank."""
    ranks: list[float]
    """Height of each rank."""
    total: float


def box_height(box: Box) -> float:
    """Return the height of a box."""
    return TWO_LINES if box.detail else ONE_LINE


def heights_of(diagram: Diagram, levels: dict[BoxGroup, Level], closed: Container[BoxGroup]) -> dict[BoxGroup, Heights]:
    """Return the heights of every group, including groups inside closed ones."""
    heights: dict[BoxGroup, Heights] = {}
    for group in reversed(diagram.groups()):
        level = levels[group]
        last = len(level.ranks) - 1
        tops, ranks, y = [], [], 0.0
        for number, rank in enumerate(level.ranks):
            items = [level.elements[e].item for e in rank]
            height = max((item_height(i, diagram, heights, closed) for i in items if i is not None), default=0.0)
            tops.append(y)
            ranks.append(height)
            y += height
            if number < last:
                y += GAP if number else HEADER if group.parent else FOOTER
        heights[group] = Heights(tops, ranks, y if level.exits else y + FOOTER)
    return heights


def item_height(
    item: int | BoxGroup, diagram: Diagram, heights: dict[BoxGroup, Heights], closed: Container[BoxGroup]
) -> float:
    """Return the height of a box or group as shown."""
    if isinstance(item, BoxGroup):
        return CLOSED if item in closed else heights[item].total
    return box_height(diagram.boxes[item])


def draw(diagram: Diagram, closed: Container[BoxGroup] = ()) -> str:
    """Return the SVG of a diagram; groups in ``closed`` are drawn as one box each, with their inside hidden."""
    levels = arrange(diagram)
    heights = heights_of(diagram, levels, closed)
    width, height = levels[diagram.root].width, heights[diagram.root].total
    names = {group: f"g{i}" for i, group in enumerate(diagram.groups())}
    body = _Drawing(diagram, levels, heights, closed, names).group(diagram.root)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}"><style>{STYLE}</style><defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#777"/></marker></defs>'
        f"{body}</svg>"
    )


class _Drawing:
    """Data for drawing a diagram."""

    def __init__(
        self,
        diagram: Diagram,
        levels: dict[BoxGroup, Level],
        heights: dict[BoxGroup, Heights],
        closed: Container[BoxGroup],
        names: dict[BoxGroup, str],
    ):
        self.diagram = diagram
        self.levels = levels
        self.heights = heights
        self.closed = closed
        self.names = names

    def group(self, group: BoxGroup) -> str:
        """Draw the inside of a group: lines first, items over them."""
        level, name = self.levels[group], self.names[group]
        elements = []
        for number, segment in enumerate(level.segments):
            arrow = ' marker-end="url(#a)"' if isinstance(level.elements[segment.end].item, int) else ""
            elements.append(f'<path id="{name}s{number}" class="s"{arrow} d="{self.path(group, number)}"/>')
        for number, element in enumerate(level.elements):
            if element.item is None:
                continue
            x, y = element.x - element.width / 2, self.top(group, number)
            inner = self._item(element.item, element.width)
            elements.append(f'<g id="{name}e{number}" transform="translate({x:.1f} {y:.1f})">{inner}</g>')
        return "".join(elements)

    def _item(self, item: int | BoxGroup, width: float) -> str:
        if not isinstance(item, BoxGroup):
            return draw_box(self.diagram.boxes[item], width)
        shut = item in self.closed
        name = self.names[item]
        height = CLOSED if shut else self.heights[item].total
        tip = f"{'.'.join(item.path)}: {self.diagram.count(item)} nodes"
        return (
            f'<rect id="{name}r" class="g" rx="7" width="{width:.1f}" height="{height:.1f}"/>'
            f'<g id="{name}h" class="h"><title>{escape(tip)}</title>'
            f'<rect width="{width:.1f}" height="22" fill="transparent"/>'
            f'<text class="l" x="8" y="16">{escape(item.title)}</text></g>'
            f'<g id="{name}"{" display=" + chr(34) + "none" + chr(34) if shut else ""}>{self.group(item)}</g>'
        )

    def top(self, group: BoxGroup, number: int) -> float:
        """Return the upper border of an element; items are centered in their rank."""
        element, heights = self.levels[group].elements[number], self.heights[group]
        if element.item is None:
            return heights.tops[element.rank]
        height = item_height(element.item, self.diagram, self.heights, self.closed)
        return heights.tops[element.rank] + (heights.ranks[element.rank] - height) / 2

    def path(self, group: BoxGroup, number: int) -> str:
        """Return the path of a line: straight out of its rank, curved between the ranks, straight to its end."""
        level, heights = self.levels[group], self.heights[group]
        segment = level.segments[number]
        start, end = level.elements[segment.start], level.elements[segment.end]
        x1, x2 = start.x + segment.out, end.x + segment.into
        y1 = self.top(group, segment.start)
        if start.item is not None:
            y1 += item_height(start.item, self.diagram, self.heights, self.closed)
        low, high = heights.tops[start.rank] + heights.ranks[start.rank], heights.tops[end.rank] - STRAIGHT
        middle = (low + high) / 2
        return (
            f"M{x1:.1f} {y1:.1f}L{x1:.1f} {low:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {high:.1f}"
            f"L{x2:.1f} {self.top(group, segment.end):.1f}"
        )


def draw_box(box: Box, width: float) -> str:
    """Draw a box with its texts; the upper left corner is the origin."""
    fill, border = COLOURS[box.kind]
    tip = f"<title>{escape(box.tip)}</title>" if box.tip else ""
    detail = f'<text class="d" text-anchor="middle" x="{width / 2:.1f}" y="29">{escape(box.detail)}</text>'
    return (
        f'{tip}<rect class="b" rx="4" width="{width:.1f}" height="{box_height(box):.0f}" fill="{fill}" '
        f'stroke="{border}"/><text text-anchor="middle" x="{width / 2:.1f}" y="15">{escape(box.title)}</text>'
        f"{detail if box.detail else ''}"
    )
