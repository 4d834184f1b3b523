"""SVG: well-formed, every box drawn once inside of its group, texts escaped, closed groups hidden."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from graphc.pages.diagram import Box, Builder, Diagram
from graphc.pages.layout import arrange
from graphc.pages.svg import CLOSED, COLOURS, ONE_LINE, box_height, draw, draw_box, heights_of

NAMESPACE = "{http://www.w3.org/2000/svg}"


def sample() -> Diagram:
    builder = Builder()
    x = builder.add(Box("x <&>", "f32[1]", "input", 'tip "<b>"'))
    a, b = builder.add(Box("a"), ("m",)), builder.add(Box("b"), ("m", "n"))
    c = builder.add(Box("c"))
    for line in ((x, a), (a, b), (b, c), (x, c)):
        builder.connect(*line)
    return builder.finish()


def test_it_is_well_formed_and_complete():
    tree = ElementTree.fromstring(draw(sample()))
    texts = [t.text for t in tree.iter(f"{NAMESPACE}text")]
    assert sorted(texts) == sorted(["x <&>", "f32[1]", "a", "b", "c", "m", "n"])
    assert 'tip "<b>"' in [t.text for t in tree.iter(f"{NAMESPACE}title")]
    width, height = float(tree.get("width")), float(tree.get("height"))
    assert width > 50 and height > 150
    for path in tree.iter(f"{NAMESPACE}path"):
        assert "nan" not in path.get("d")


def places(node, x=0.0, y=0.0):
    """(title, x, y) of every text, in the coordinates of the whole picture."""
    match = re.match(r"translate\(([-\d.]+) ([-\d.]+)\)", node.get("transform", ""))
    if match:
        x, y = x + float(match[1]), y + float(match[2])
    if node.tag == f"{NAMESPACE}text":
        yield node.text, x + float(node.get("x")), y + float(node.get("y"))
    for child in node:
        yield from places(child, x, y)


def test_readers_stand_below_what_they_read():
    found = {text: (x, y) for text, x, y in places(ElementTree.fromstring(draw(sample())))}
    heights = [found[name][1] for name in ("x <&>", "m", "a", "n", "b", "c")]
    assert heights == sorted(heights)


def test_lines_end_at_boxes():
    diagram = sample()
    levels = arrange(diagram)
    text = draw(diagram)
    root = levels[diagram.root]
    heights = heights_of(diagram, levels, ())[diagram.root]
    for number, segment in enumerate(root.segments):
        d = re.search(rf'id="g0s{number}"[^>]* d="([^"]+)"', text)[1]
        x, y = map(float, d.rpartition("L")[2].split())
        end = root.elements[segment.end]
        assert abs(x - end.x - segment.into) < 0.06
        top = heights.tops[end.rank]
        assert top - 0.06 <= y <= top + heights.ranks[end.rank]


def test_closed_groups_are_small_and_hide_their_inside():
    diagram = sample()
    levels = arrange(diagram)
    group = diagram.groups()[1]
    shut, whole = heights_of(diagram, levels, {group}), heights_of(diagram, levels, ())
    assert whole[diagram.root].total - shut[diagram.root].total == whole[group].total - CLOSED
    tree = ElementTree.fromstring(draw(diagram, {group}))
    hidden = [g for g in tree.iter(f"{NAMESPACE}g") if g.get("display") == "none"]
    assert [g.get("id") for g in hidden] == ["g1"]
    assert {t for t, _, _ in places(hidden[0])} == {"a", "b", "n"}


def test_every_kind_has_colours():
    for kind in COLOURS:
        box = Box("t", kind=kind)
        assert COLOURS[kind][0] in draw_box(box, 40.0)
        assert box_height(box) == ONE_LINE


def test_an_empty_diagram():
    ElementTree.fromstring(draw(Builder().finish()))
