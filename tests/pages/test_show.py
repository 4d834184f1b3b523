"""``picture``: files and texts of all kinds, large graphs, notebooks, and wrong arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.pages import notebook, picture


def layers(count: int) -> nn.Module:
    return nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU()) for _ in range(count)]).eval()


def test_files(tmp_path: Path):
    graph = gc.trace(nn.Linear(2, 3), gc.zeros(1, 2))
    text = gc.picture(graph, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == text == picture(graph)
    picture(graph, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert sorted(os.listdir(tmp_path)) == ["a.html", "a.svg"]


def test_layers_are_one_box_unless_asked_for_detail():
    model = layers(2)
    graph = gc.trace(model, gc.zeros(2, 8))
    plain, deep = picture(graph, module=model), picture(graph, module=model, detail=True)
    assert ">0.1: BatchNorm1d<" in plain and ">rsqrt<" not in plain and ">matmul<" not in plain
    assert deep.count(">rsqrt<") == 2 and deep.count(">matmul<") == 2 and ">0.1: BatchNorm1d<" in deep
    assert picture(graph, module=model, depth=1).count('class="box kind-module"') == 2


def test_autograd_graphs(tmp_path: Path):
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    y = model(gc.ones(1, 2))
    text = picture(y.sum(), tmp_path / "a.html", module=model)
    assert text.startswith("<!doctype html>") and '"op":"0.weight"' in text
    assert ">0: Linear<" in picture(y.sum(), module=model) and ">weight  3×2<" in picture(y.sum(), module=model)
    assert picture([y, y.exp()]).count('y="19">result') == 2


@pytest.mark.parametrize("target", [3, gc.zeros(1), [], [3]])
def test_what_has_no_picture(target):
    with pytest.raises(ArgumentError):
        picture(target)


def test_wrong_arguments(tmp_path: Path):
    graph = gc.trace(nn.Linear(2, 3), gc.zeros(1, 2))
    with pytest.raises(ArgumentError, match="no picture of kind"):
        picture(graph, tmp_path / "a.pdf")
    for depth in (0, "deep"):
        with pytest.raises(ArgumentError, match="depth is a whole number"):
            picture(graph, depth=depth)  # type: ignore[arg-type]  # pyright: ignore
    with pytest.raises(ArgumentError, match="module must be the Module of the picture, got int"):
        picture(graph, module=3)
    assert not os.listdir(tmp_path)


def test_graphs_of_compiled_functions_and_steps():
    model = nn.Linear(2, 3)
    compiled = gc.compile(model)
    step = gc.compile_step(model, nn.MSELoss(), gc.optim.SGD(model.parameters(), lr=0.1))
    compiled(gc.ones(1, 2))
    step(gc.ones(1, 2), gc.ones(1, 3))
    for target, said in ((compiled, "function.variants[0].traced.graph"), (step, "step.graphs[0]")):
        with pytest.raises(ArgumentError) as caught:
            picture(target)
        assert caught.value.remedy == f"call picture({said}, path, module=model)"
    assert "weight" in picture(compiled.variants[0].traced.graph, module=compiled)
    assert "weight" in picture(step.graphs[0], module=model)


def test_hundreds_of_nodes():
    graph = gc.trace(layers(25), gc.zeros(2, 8))
    assert len(graph) > 300
    few, all_nodes = picture(graph), picture(graph, detail=True)
    assert few.count('class="box') < 40 < 200 < all_nodes.count('class="box')
    assert float(ElementTree.fromstring(all_nodes).get("width")) < 800


def test_notebooks_show_pictures_without_scripts():
    graph = gc.trace(nn.Linear(2, 3), gc.zeros(1, 2))
    text = graph._repr_html_()
    assert text == notebook(graph)
    assert text.count("<svg") == 2 and "<script" not in text
    assert "graph @Linear" in text


def test_the_same_picture_in_every_process():
    program = "import graphc as gc; m = gc.nn.Linear(2, 3); print(gc.picture(gc.trace(m, gc.zeros(1, 2))))"
    texts = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
        texts.add(done.stdout)
    assert len(texts) == 1
