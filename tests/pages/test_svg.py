"""SVG: boxes, titles and lines are measured in the drawing itself, which is well-formed, and light and dark."""

from __future__ import annotations

import functools
import itertools
import math
import re
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from graphc.base.module_path import class_names
from graphc.pages.diagram import build, first_open, page_nodes
from graphc.pages.graph_data import GraphCollector
from graphc.pages.svg import draw
from graphc.pages.text_size import text_width
from tests.pages.nets import traced
from tests.pages.test_diagram import record

SVG = "{http://www.w3.org/2000/svg}"
NETS = ("Convolutions", "Residual", "Loop", "Many")


class Area(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float
    name: str

    def meets(self, other: Area, slack: float = 0.1) -> bool:
        return (
            min(self.right, other.right) - max(self.left, other.left) > slack
            and min(self.bottom, other.bottom) - max(self.top, other.top) > slack
        )

    def holds(self, other: Area, slack: float = 0.1) -> bool:
        return (
            self.left - slack <= other.left
            and self.top - slack <= other.top
            and other.right <= self.right + slack
            and other.bottom <= self.bottom + slack
        )


class Measured(NamedTuple):
    whole: Area
    boxes: list[Area]
    frames: list[Area]
    texts: list[tuple[Area, Area | None]]
    """Each text, with the box or title bar around it; None for the types below a box."""
    lines: list[list[tuple[float, float]]]


def measure(text: str) -> Measured:
    root = ElementTree.fromstring(text)
    width, height = (float(n) for n in root.get("viewBox").split()[2:])
    found = Measured(Area(0, 0, width, height, "all"), [], [], [], [])
    for element in root:
        if element.tag == f"{SVG}g":
            measure_group(element, found)
        elif element.tag == f"{SVG}text":
            found.texts.append((text_area(element, 0, 0), None))
        elif element.tag == f"{SVG}path":
            found.lines.append(points(element.get("d")))
    return found


def measure_group(group: ElementTree.Element, found: Measured) -> None:
    x, y = map(float, re.findall(r"[-\d.]+", group.get("transform")))
    texts = [text_area(t, x, y) for t in group.iter(f"{SVG}text")]
    rect = next(group.iter(f"{SVG}rect"))
    left, top = x + float(rect.get("x", 0)), y + float(rect.get("y", 0))
    name = texts[0].name if texts else ""
    area = Area(left, top, left + float(rect.get("width")), top + float(rect.get("height")), name)
    kind = group.get("class").split()[0]
    if kind in ("box", "open"):
        (found.boxes if kind == "box" else found.frames).append(area)
    found.texts.extend((t, area) for t in texts)


def text_area(text: ElementTree.Element, x: float, y: float) -> Area:
    """The area of a text by its estimated width; titles are bold."""
    is_title = text.get("class") in ("title", "name")
    size = 13 if is_title else 11
    width = text_width(text.text, size, bold=is_title)
    left = x + float(text.get("x")) - (0 if text.get("class") == "name" else width / 2)
    base = y + float(text.get("y"))
    return Area(left, base - 0.8 * size, left + width, base + 0.2 * size, text.text)


def points(path: str) -> list[tuple[float, float]]:
    """Points on a path of straight pieces and one curve, a pixel or two apart."""
    numbers = [float(n) for n in re.findall(r"[-\d.]+", path)]
    assert re.sub(r"[-\d. ]", "", path) == "MLCL"
    start, low, a, b, high, end = zip(numbers[::2], numbers[1::2], strict=True)
    return [*straight(start, low), *curve(low, a, b, high), *straight(high, end)]


def straight(a, b) -> list[tuple[float, float]]:
    count = max(1, math.ceil(math.dist(a, b)))
    return [(a[0] + (b[0] - a[0]) * i / count, a[1] + (b[1] - a[1]) * i / count) for i in range(count + 1)]


def curve(a, b, c, d) -> list[tuple[float, float]]:
    count = max(1, math.ceil(math.dist(a, d)))
    weights = [
        ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3) for t in (i / count for i in range(count + 1))
    ]
    return [tuple(sum(w * p[axis] for w, p in zip(ws, (a, b, c, d), strict=True)) for axis in (0, 1)) for ws in weights]


@functools.cache
def graphs() -> dict[str, tuple]:
    return traced()


def drawing(name: str, **options: int | bool) -> str:
    model, graph = graphs()[name]
    collector = GraphCollector()
    collector.add(graph)
    nodes = page_nodes(collector.records)
    return draw(build(nodes, first_open(nodes, **options), class_names(model)))


@pytest.mark.parametrize("options", [{}, {"depth": 1}, {"depth": 2}, {"detail": True}], ids=str)
@pytest.mark.parametrize("name", NETS)
def test_nothing_overlaps(name: str, options: dict[str, int | bool]):
    found = measure(drawing(name, **options))
    assert len(found.boxes) > 3
    for a, b in itertools.combinations(found.boxes, 2):
        assert not a.meets(b), (a, b)
    for a, b in itertools.combinations(found.frames, 2):
        assert not a.meets(b) or a.holds(b) or b.holds(a), (a, b)
    for frame, box in itertools.product(found.frames, found.boxes):
        assert not frame.meets(box) or frame.holds(box), (frame, box)
    for (a, _), (b, _) in itertools.combinations(found.texts, 2):
        assert not a.meets(b), (a, b)


@pytest.mark.parametrize("options", [{}, {"detail": True}], ids=str)
@pytest.mark.parametrize("name", NETS)
def test_texts_lie_within_their_boxes_and_lines_cross_none(name: str, options: dict[str, int | bool]):
    found = measure(drawing(name, **options))
    for text, around in found.texts:
        assert found.whole.holds(text) and (around is None or around.holds(text)), (text, around)
    bars = [around for text, around in found.texts if around is not None and around not in found.boxes]
    shut = [*found.boxes, *bars, *(text for text, around in found.texts if around is None)]
    for line in found.lines:
        for area in shut:
            # A line may touch the border of the box that it begins or ends at.
            inner = Area(area.left + 1, area.top + 1, area.right - 1, area.bottom - 1, area.name)
            inside = [p for p in line if inner.left < p[0] < inner.right and inner.top < p[1] < inner.bottom]
            assert not inside, (area.name, inside[:3])


@pytest.mark.parametrize("name", NETS)
def test_the_drawing_fills_its_view_box(name: str):
    found = measure(drawing(name))
    areas = [*found.boxes, *found.frames]
    assert 10 <= min(a.left for a in areas) <= 20 and 10 <= min(a.top for a in areas) <= 20
    assert 10 <= found.whole.right - max(a.right for a in areas) <= 20
    assert 10 <= found.whole.bottom - max(a.bottom for a in areas) <= 20


def test_readers_stand_below_what_they_read():
    tops = {box.name: box.top for box in measure(drawing("Convolutions")).boxes}
    names = ("x", "conv: Conv2d", "bn: BatchNorm2d", "relu", "head.0: Linear", "head.1: ReLU", "log_softmax", "output")
    heights = [tops[name] for name in names]
    assert heights == sorted(set(heights))


def test_it_needs_no_script_and_has_colours_for_light_and_dark():
    text = drawing("Convolutions")
    assert not re.search(r"<script|<foreignObject|href|url\((?!#)|var\(|@import", text)
    light, _, dark = text.partition("@media (prefers-color-scheme: dark)")
    colours = [re.search(r"[.]page { fill: (#\w+); }", style)[1] for style in (light, dark)]
    assert [sum(int(c[i : i + 2], 16) for i in (1, 3, 5)) > 384 for c in colours] == [True, False]
    kinds = set(re.findall(r"kind-(\w+)\"", text))
    assert kinds >= {"input", "output", "module"} and all(f".kind-{kind}" in light for kind in kinds - {"op"})


def test_texts_are_escaped():
    odd = record('<&">', "a<b", "") | {"line": "x<y"}
    tree = ElementTree.fromstring(draw(build(page_nodes([odd]), ["a<b"])))
    assert '<&">' in [t.text for t in tree.iter(f"{SVG}text")]
    assert "a<b" in [t.text for t in tree.iter(f"{SVG}text")]


def test_an_empty_diagram():
    ElementTree.fromstring(draw(build([], [])))
