"""Pages: complete without network, groups closed until little is visible, the script agrees with the drawing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import graphc as gc
from graphc import nn
from graphc.pages.diagram import Box, Builder
from graphc.pages.diagram_page import MOST_BOXES, first_closed, fragment, page
from graphc.pages.from_graph import graph_diagram
from graphc.pages.layout import arrange
from graphc.pages.svg import heights_of


def deep(count: int):
    layers = [nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()) for _ in range(count)]
    return graph_diagram(gc.trace(nn.Sequential(*layers).eval(), gc.zeros(2, 4)))


def data_of(text: str) -> dict:
    start = text.index("), {", text.index("document.getElementById")) + 3
    return json.JSONDecoder().raw_decode(text[start:])[0]


def test_nothing_is_loaded_from_elsewhere():
    text = page(deep(2), "a <title>")
    assert "<title>a &lt;title&gt;</title>" in text
    assert not re.findall(r"""(?:src|href)=["']|@import|fetch\(|url\(["']?http""", text)
    assert re.findall(r"https?://[^\"' ]+", text) == ["http://www.w3.org/2000/svg"]


def test_texts_cannot_end_the_script():
    builder = Builder()
    builder.add(Box("</script><script>alert(1)</script>"), ("</script>",))
    text = fragment(builder.finish(), "p")
    assert text.count("</script>") == 1


def test_groups_close_until_little_is_visible():
    small, large = deep(1), deep(9)
    assert not first_closed(small)
    closed = first_closed(large)
    assert closed
    assert all(g.depth == 2 for g in closed)
    heights = heights_of(large, arrange(large), closed)
    assert heights[large.root].total < heights_of(large, arrange(large), ())[large.root].total / 2
    assert len(large.boxes) > MOST_BOXES


def test_the_data_describe_every_group():
    diagram = deep(3)
    data = data_of(fragment(diagram, "p"))
    assert len(data["order"]) == len(diagram.groups())
    assert data["order"][-1] == "g0"
    assert sum(isinstance(e[2], (int, float)) for g in data["groups"].values() for e in g["elements"]) == len(
        diagram.boxes
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="needs a JavaScript engine")
def test_the_script_computes_the_heights_of_the_drawing(tmp_path: Path):
    diagram = deep(4)
    text = fragment(diagram, "p")
    script = text[text.index("<script>") + 8 : text.index("</script>")]
    stub = """
const set = {};
const element = id => ({ setAttribute(k, v) { (set[id] = set[id] || {})[k] = v; }, addEventListener() {} });
const svg = { querySelector: s => element(s.slice(1)), setAttribute(k, v) { (set.svg = set.svg || {})[k] = v; } };
const box = { querySelector: s => s === 'svg' ? svg : { clientWidth: 100 }, addEventListener(n, f) { box.click = f; } };
globalThis.document = { getElementById: () => box };
"""
    out = """
const first = JSON.parse(JSON.stringify(set));
const press = act => box.click({ target: { getAttribute: () => act } });
press('open'); const open = JSON.parse(JSON.stringify(set));
press('close'); const shut = JSON.parse(JSON.stringify(set));
console.log(JSON.stringify([first, open, shut]));
"""
    path = tmp_path / "a.js"
    path.write_text(stub + script + out)
    done = subprocess.run(["node", str(path)], capture_output=True, text=True, check=True)
    states = json.loads(done.stdout)
    levels = arrange(diagram)
    groups = diagram.groups()
    for state, closed in zip(states, (first_closed(diagram), set(), set(groups[1:])), strict=True):
        heights = heights_of(diagram, levels, closed)
        assert float(state["svg"]["height"]) == pytest.approx(heights[diagram.root].total)
        for number, group in enumerate(groups[1:], 1):
            shown = state[f"g{number}"]["display"]
            assert shown == ("none" if group in closed else "inline")
    drawn = dict(re.findall(r'<path id="(g\d+s\d+)"[^>]* d="([^"]+)"', text))
    for name, d in drawn.items():
        wanted = [float(n) for n in re.findall(r"[-\d.]+", d)]
        found = [float(n) for n in re.findall(r"[-\d.]+", states[0][name]["d"])]
        assert found == pytest.approx(wanted, abs=0.11)
