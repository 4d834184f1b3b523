"""``picture``: files and texts of both kinds, large graphs, notebooks, and wrong arguments."""

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
from graphc.pages.show import autograd_diagram
from graphc.tensors import repeated


def test_files(tmp_path: Path):
    graph = gc.trace(nn.Linear(2, 3), gc.zeros(1, 2))
    text = gc.picture(graph, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == text == picture(graph)
    picture(graph, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert sorted(os.listdir(tmp_path)) == ["a.html", "a.svg"]


def test_autograd_graphs():
    model = nn.Linear(2, 3)
    y = model(gc.ones(1, 2))
    text = picture(y.sum(), module=model)
    assert ">weight<" in text
    assert picture([y, y.exp()]).count(">result") == 2


@pytest.mark.parametrize("target", [3, gc.zeros(1), [], [3]])
def test_what_has_no_picture(target):
    with pytest.raises(ArgumentError):
        picture(target)


def test_wrong_arguments(tmp_path: Path):
    graph = gc.trace(nn.Linear(2, 3), gc.zeros(1, 2))
    with pytest.raises(ArgumentError, match="no picture of kind"):
        picture(graph, tmp_path / "a.png")
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
    layers = [nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU()) for _ in range(25)]
    graph = gc.trace(nn.Sequential(*layers).eval(), gc.zeros(2, 8))
    assert len(graph) > 300
    tree = ElementTree.fromstring(picture(graph))
    assert float(tree.get("width")) < 800


def test_notebooks_show_pictures():
    graph = gc.trace(nn.Linear(2, 3), gc.zeros(1, 2))
    text = graph._repr_html_()
    assert text == notebook(graph)
    assert "<svg" in text
    assert "graph @Linear" in text


def test_the_same_picture_in_every_process():
    program = "import graphc as gc; m = gc.nn.Linear(2, 3); print(gc.picture(gc.trace(m, gc.zeros(1, 2))))"
    texts = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
        texts.add(done.stdout)
    assert len(texts) == 1


@pytest.fixture(autouse=True)
def operations_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that earlier tests have called often are programs with one operation for all that they compute."""
    monkeypatch.setattr(repeated, "is_watched", lambda: True)


def test_operations_and_leaves():
    x = gc.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).exp().sum()
    diagram = autograd_diagram([y])
    assert [b.title for b in diagram.boxes] == ["leaf", "Mul", "Exp", "Sum", "result"]
    assert diagram.boxes[0].detail == "f32[2]"
    assert diagram.boxes[3].kind == "reduce"
    assert diagram.lines == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_parameters_are_named_and_group_operations():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)))
    diagram = autograd_diagram([model(gc.ones(5, 3)).sum()], model)
    homes = {b.title: diagram.homes[i].path for i, b in enumerate(diagram.boxes)}
    assert homes["0.weight"] == ("0",)
    assert homes["2.2.bias"] == ("2", "2")
    assert homes["Tanh"] == ("2",)
    assert homes["Where"] == ()
    matmuls = [diagram.homes[i].path for i, b in enumerate(diagram.boxes) if b.title == "Matmul"]
    assert matmuls == [("0",), ("2", "0"), ("2", "2")]


def test_an_operation_without_gradient_of_its_input_is_not_taken_for_a_parameter():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 3))
    diagram = autograd_diagram([model(gc.ones(1, 1, 8, 8)).sum()], model)
    assert [diagram.homes[i].path for i, b in enumerate(diagram.boxes) if b.title == "Where"] == [()]


def test_several_results_and_custom_functions():
    class Double(gc.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = gc.tensor([1.0], requires_grad=True)
    y = Double.apply(x)
    diagram = autograd_diagram([y, y.exp(), gc.zeros(1)])
    titles = [b.title for b in diagram.boxes]
    assert "DoubleBackward" in titles
    assert titles[-2:] == ["result 0", "result 1"]


def test_tensors_without_a_graph():
    with pytest.raises(ArgumentError, match="no autograd graph"):
        autograd_diagram([gc.zeros(1)])
