"""Diagrams: boxes find their groups, groups follow calls, and deep groups become one box."""

from __future__ import annotations

from graphc.pages.diagram import SINK, SOURCE, Box, BoxGroup, Builder, Diagram


def labels(diagram: Diagram, group: BoxGroup | None = None) -> list[object]:
    """Nested lists of titles, each group's after its label."""
    group = diagram.root if group is None else group
    return [
        [m.label, *labels(diagram, m)] if isinstance(m, BoxGroup) else diagram.boxes[m].title for m in group.members
    ]


def chain(*boxes: tuple[str, str]) -> Builder:
    """Boxes of (title, path) that read each other in turn."""
    builder = Builder()
    for i, (title, path) in enumerate(boxes):
        builder.add(Box(title), tuple(path.split(".")) if path else ())
        if i:
            builder.connect(i - 1, i)
    return builder


def test_consecutive_boxes_form_groups():
    diagram = chain(("a", "m.0"), ("b", "m.0"), ("c", "m.1"), ("d", ""), ("e", "n")).finish()
    assert labels(diagram) == [["m", ["m.0", "a", "b"], ["m.1", "c"]], "d", ["n", "e"]]
    assert [g.label for g in diagram.groups()] == ["", "m", "n", "m.0", "m.1"]
    assert diagram.count(diagram.root) == 5


def test_a_module_that_is_called_twice_gives_two_groups():
    diagram = chain(("a", "relu"), ("b", "conv"), ("c", "relu")).finish()
    assert labels(diagram) == [["relu", "a"], ["conv", "b"], ["relu", "c"]]


def test_sources_stand_with_their_first_reader_and_sinks_with_what_they_read():
    builder = Builder()
    weight = builder.add(Box("w"), placement=SOURCE)
    unread = builder.add(Box("unread"), placement=SOURCE)
    a = builder.add(Box("a"), ("m",))
    b = builder.add(Box("b"), ("n",))
    write = builder.add(Box("write"), placement=SINK)
    for line in ((weight, b), (weight, a), (a, b), (b, write)):
        builder.connect(*line)
    diagram = builder.finish()
    assert labels(diagram) == [["m", "a", "w"], ["n", "b", "write"], "unread"]
    assert diagram.homes[unread] is diagram.root


def test_lines_are_unique():
    builder = chain(("a", ""), ("b", ""))
    builder.connect(0, 1)
    assert builder.finish().lines == [(0, 1)]


def test_deep_groups_become_one_box():
    builder = chain(("a", "m.0"), ("b", "m.0"), ("c", "m.1"), ("d", ""))
    builder.connect(0, 2)
    one = builder.finish(depth=1)
    assert labels(one) == ["m", "d"]
    module = next(b for b in one.boxes if b.title == "m")
    assert (module.kind, module.detail) == ("module", "3 nodes")
    assert [(one.boxes[a].title, one.boxes[b].title) for a, b in one.lines] == [("m", "d")]
    two = builder.finish(depth=2)
    assert sorted(str(x) for x in labels(two)) == ["['m', 'm.0', 'm.1']", "d"]
    assert len(two.lines) == 2
    assert len(builder.finish(depth=9).boxes) == 4
