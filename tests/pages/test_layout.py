"""Layouts: ranks follow lines, nothing overlaps, lines cross borders at ports, and pages compute the same."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphc.base.module_path import class_names
from graphc.pages.diagram import BoxGroup, Diagram, build, first_open, page_nodes
from graphc.pages.graph_data import GraphCollector
from graphc.pages.layout import GAP, Level, arrange, item_height
from graphc.pages.model_page import graph_page_data
from graphc.pages.text_size import text_width
from tests.pages.nets import traced
from tests.pages.test_diagram import record


def check(diagram: Diagram) -> None:
    levels = arrange(diagram)
    assert set(levels) == set(diagram.groups)
    for group, level in levels.items():
        items = [e.item for e in level.elements if e.item is not None]
        assert sorted(map(id, items)) == sorted(map(id, group.members))
        check_level(level)
    for source, target in diagram.lines:
        assert target in reached(diagram, levels, source)


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
    for above, below in itertools.pairwise(range(len(level.ranks))):
        assert level.tops[below] >= level.tops[above] + level.heights[above]
    for segment in level.segments:
        assert level.elements[segment.end].rank == level.elements[segment.start].rank + 1


def reached(diagram: Diagram, levels: dict[BoxGroup, Level], source: int) -> set[int]:
    """The boxes at which the segments of lines from a box end."""
    home = diagram.homes[source]
    pending = [(home, next(i for i, e in enumerate(levels[home].elements) if e.item == source))]
    ends: set[int] = set()
    for group, element in pending:
        level, item = levels[group], levels[group].elements[element].item
        if isinstance(item, int) and item != source:
            ends.add(item)
            continue
        steps = [(group, s.end) for s in level.segments if s.start == element]
        if level.exits.get(source) == element and group.parent is not None:
            outside = levels[group.parent]
            steps.append((group.parent, next(i for i, e in enumerate(outside.elements) if e.item is group)))
        if isinstance(item, BoxGroup) and source in levels[item].entries:
            steps.append((item, levels[item].entries[source]))
        pending += [step for step in steps if step not in pending]
    return ends


def ranks_of(diagram: Diagram) -> dict[str, int]:
    level = arrange(diagram)[diagram.root]
    return {diagram.boxes[e.item].title: e.rank for e in level.elements if isinstance(e.item, int)}


def test_ranks_follow_lines():
    diagram = build(page_nodes([record("a"), record("b", "", "a"), record("c", "", "b"), record("d", "", "a c")]), [])
    assert ranks_of(diagram) == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert sum(e.item is None for e in arrange(diagram)[diagram.root].elements) == 2


def test_sources_stand_right_above_their_reader():
    nodes = page_nodes([record("w"), record("a"), record("b", "", "a"), record("c", "", "b w")])
    ranks = ranks_of(build(nodes, []))
    assert ranks["w"] == ranks["c"] - 1 == 2


def test_lines_of_one_box_share_ports_and_bends():
    records = [
        record("a"),
        record("b", "", "a"),
        record("c", "m", "b"),
        record("d", "m", "c a"),
        record("e", "m", "d a"),
    ]
    diagram = build(page_nodes(records), ["m"])
    levels = arrange(diagram)
    assert sorted(levels[diagram.groups[1]].entries) == [0, 1]
    assert sum(e.item is None for e in levels[diagram.root].elements) == 1
    check(diagram)


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_anything(count: int):
    check(build(page_nodes([record("a")] * count), []))


@given(st.data())
def test_any_diagram(data):
    paths = data.draw(
        st.lists(st.sampled_from(["", "a", "a/x", "a/y", "b", "b/z/1", "b/z/2"]), min_size=1, max_size=14)
    )
    records = []
    for i, path in enumerate(paths):
        reads = data.draw(st.lists(st.sampled_from(range(i)), max_size=3, unique=True)) if i else []
        records.append(record(f"n{i}", path, " ".join(f"n{j}" for j in reads)))
    nodes = page_nodes(records)
    check(build(nodes, data.draw(st.sets(st.sampled_from(first_open(nodes, detail=True) or [""])))))


# Runs the scripts of a page without a browser and prints the layout. The width of a text comes from a table.
STUB = """
const table = new Map(JSON.parse(require("fs").readFileSync(process.argv[2], "utf8")));
const pen = { measureText: text => ({ width: table.get(`${pen.font.split(" system-ui")[0]} ${text}`) }) };
const document = { createElement: () => ({ getContext: () => pen }),
                   getElementById: () => ({ textContent: require("fs").readFileSync(process.argv[3], "utf8") }) };
const state = { afterGraph: null };
"""
PRINT = """
const graph = state.afterGraph = graphAt(0), diagram = diagramOf(graph, new Set(data.open));
for (const box of diagram.boxes) fillBox(box, new Map());
arrange(diagram);
const item = e => e.item === null ? null : e.item.isGroup ? e.item.key : e.item.id;
console.log(JSON.stringify(diagram.groups.map(({ key, height, level }) => ({
  key, height, width: level.width, tops: level.tops,
  elements: level.elements.map(e => [item(e), e.rank, e.x, e.width, e.item ? heightOf(e.item) : 0]),
  segments: level.segments.map(s => [s.start, s.end, s.out, s.into]) }))));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs a JavaScript engine")
@pytest.mark.parametrize("detail", [False, True])
def test_pages_compute_the_same_layout(tmp_path: Path, detail: bool):
    folder = Path(arrange.__code__.co_filename).parent
    scripts = "".join((folder / name).read_text() for name in ("graph.js", "layout.js", "draw.js"))
    program = tmp_path / "layout.js"
    program.write_text(STUB + scripts.replace("pen = document", "own = document") + PRINT)
    for name, (model, graph) in traced().items():
        collector = GraphCollector()
        collector.add(graph)
        nodes, classes = page_nodes(collector.records), class_names(model)
        opened = first_open(nodes, detail=detail)
        diagram = build(nodes, opened, classes)
        (tmp_path / "widths").write_text(json.dumps(sorted(widths_of(diagram).items())))
        page_data = graph_page_data(name, collector.records, {}, classes, opened)
        (tmp_path / "data").write_text(json.dumps(page_data))
        command = ["node", str(program), str(tmp_path / "widths"), str(tmp_path / "data")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for drawn, own in zip(json.loads(done.stdout), layout_of(diagram), strict=True):
            assert drawn["key"] == own["key"]
            for field in ("elements", "segments", "tops", "height", "width"):
                assert flat(drawn[field]) == pytest.approx(flat(own[field]), abs=1e-6), (name, own["key"], field)


def widths_of(diagram: Diagram) -> dict[str, float]:
    titles = [*(b.title for b in diagram.boxes), *(g.title for g in diagram.groups)]
    texts = [*(line for b in diagram.boxes for line in b.lines), *(b.label for b in diagram.boxes)]
    bold = {f"600 13px {title}": text_width(title, 13, bold=True) for title in titles}
    return bold | {f"11px {text}": text_width(text, 11) for text in texts}


def layout_of(diagram: Diagram) -> list[dict]:
    levels = arrange(diagram)

    def row(element) -> list:
        item = element.item
        height = 0 if item is None else item_height(item, diagram, levels)
        return [item.key if isinstance(item, BoxGroup) else item, element.rank, element.x, element.width, height]

    return [
        {
            "key": group.key,
            "height": level.height,
            "width": level.width,
            "tops": level.tops,
            "elements": [row(e) for e in level.elements],
            "segments": [[s.start, s.end, s.out, s.into] for s in level.segments],
        }
        for group in diagram.groups
        for level in [levels[group]]
    ]


def flat(values) -> list:
    """Numbers of nested lists; a name counts as the sum of its characters, and None as -1."""
    if isinstance(values, list):
        return [n for value in values for n in flat(value)]
    return [-1 if values is None else sum(map(ord, values)) if isinstance(values, str) else values]
