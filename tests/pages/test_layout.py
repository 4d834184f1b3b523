"""Layouts: ranks follow lines, nothing overlaps, lines run between neighbouring ranks and cross borders at ports."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphc.pages.diagram import SOURCE, Box, Builder, Diagram
from graphc.pages.layout import GAP, Level, arrange


def grouped(paths: list[str], lines: list[tuple[int, int]]) -> Diagram:
    builder = Builder()
    for i, path in enumerate(paths):
        builder.add(Box(f"box {i}", "x" * (i % 7)), tuple(path.split(".")) if path else ())
    for line in lines:
        builder.connect(*line)
    return builder.finish()


def check(diagram: Diagram) -> None:
    levels = arrange(diagram)
    assert set(levels) == set(diagram.groups())
    for group, level in levels.items():
        items = [e.item for e in level.elements if e.item is not None]
        assert sorted(map(id, items)) == sorted(map(id, group.members))
        check_level(level)
    check_lines(diagram, levels)


def check_level(level: Level) -> None:
    for number, rank in enumerate(level.ranks):
        for left, right in itertools.pairwise(rank):
            a, b = level.elements[left], level.elements[right]
            assert b.x - b.width / 2 >= a.x + a.width / 2 + GAP - 1e-6
        for element in rank:
            found = level.elements[element]
            assert found.rank == number
            assert found.x - found.width / 2 >= 0
            assert found.x + found.width / 2 <= level.width
    for segment in level.segments:
        assert level.elements[segment.end].rank == level.elements[segment.start].rank + 1


def check_lines(diagram: Diagram, levels) -> None:
    """Every line can be followed along segments from its source to its target."""
    for source, target in diagram.lines:
        place, group = source, diagram.homes[source]
        ends = set()
        open_ = [(group, next(i for i, e in enumerate(levels[group].elements) if e.item == source and place == source))]
        seen = set(open_)
        for here, element in open_:
            level = levels[here]
            steps = [(here, s.end) for s in level.segments if s.start == element]
            if level.exits.get(source) == element and here.parent is not None:
                outside = levels[here.parent]
                steps.append((here.parent, next(i for i, e in enumerate(outside.elements) if e.item is here)))
            item = level.elements[element].item
            if hasattr(item, "members") and source in levels[item].entries:
                steps.append((item, levels[item].entries[source]))
            if isinstance(item, int):
                ends.add(item)
            for step in steps:
                if step not in seen and not (isinstance(item, int) and item not in (source,)):
                    seen.add(step)
                    open_.append(step)
        assert target in ends


def test_ranks_follow_lines():
    diagram = grouped(["", "", "", ""], [(0, 1), (1, 2), (0, 3), (2, 3)])
    level = arrange(diagram)[diagram.root]
    ranks = {e.item: e.rank for e in level.elements if e.item is not None}
    assert ranks == {0: 1, 1: 2, 2: 3, 3: 4}
    assert sum(e.item is None for e in level.elements) == 2


def test_sources_stand_right_above_their_reader():
    builder = Builder()
    a, b, c = (builder.add(Box(t)) for t in "abc")
    weight = builder.add(Box("w"), placement=SOURCE)
    for line in ((a, b), (b, c), (weight, c)):
        builder.connect(*line)
    diagram = builder.finish()
    ranks = {e.item: e.rank for e in arrange(diagram)[diagram.root].elements}
    assert ranks[weight] == ranks[c] - 1 == 2


def test_lines_of_one_box_share_ports_and_bends():
    diagram = grouped(["", "", "m", "m", "m"], [(0, 1), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4)])
    levels = arrange(diagram)
    inner = levels[diagram.homes[2]]
    assert sorted(inner.entries) == [0, 1]
    outer = levels[diagram.root]
    assert sum(e.item is None for e in outer.elements) == 1
    check(diagram)


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_anything(count):
    check(grouped([""] * count, []))


PATHS = ["", "a", "a.x", "a.y", "b", "b.z.1", "b.z.2"]


@given(st.data())
def test_any_diagram(data):
    paths = data.draw(st.lists(st.sampled_from(PATHS), min_size=1, max_size=14))
    pairs = [(i, j) for j in range(len(paths)) for i in range(j)]
    lines = data.draw(st.lists(st.sampled_from(pairs), max_size=20, unique=True)) if pairs else []
    check(grouped(paths, lines))
