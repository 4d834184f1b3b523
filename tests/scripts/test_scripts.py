"""Scripts of PyTorch run with graphc in their import lines, and their curves are those that PyTorch computed."""

from __future__ import annotations

import math

import pytest

from tests.scripts.compare import FOLDER, TOLERANCE, names, recorded, run, with_graphc, worst

# What stops a script so far.
STOPPED: dict[str, str] = {}


def _marked(name: str) -> object:
    marks = [pytest.mark.xfail(reason=STOPPED[name], strict=False)] if name in STOPPED else []
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [_marked(name) for name in names()])
def test_a_script_gives_the_curve_that_pytorch_gave(name):
    assert worst(run(name, "graphc"), recorded()[name]) <= TOLERANCE


def test_every_script_has_a_recorded_curve_that_says_something():
    curves = recorded()
    assert sorted(curves) == names()
    assert len(names()) == 25
    for curve in curves.values():
        assert len(curve) > 10
        assert len(set(curve)) > 5
        assert all(math.isfinite(x) for x in curve)


@pytest.mark.parametrize("name", names())
def test_only_import_lines_are_replaced(name):
    before = (FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines()
    after = with_graphc("\n".join(before)).splitlines()
    changed = [(a.strip(), b.strip()) for a, b in zip(before, after, strict=True) if a != b]
    assert changed
    for a, b in changed:
        assert a.startswith(("import torch", "from torch"))
        assert b in (a.replace("torch", "graphc", 1), a.replace("import torch", "import graphc as torch"))


def test_import_lines_are_told_from_others():
    lines = ["import torch", "import torch.nn as nn", "from torch import nn", "import torchvision", "x = torch.ones(1)"]
    assert with_graphc("\n".join(lines)).splitlines() == [
        "import graphc as torch",
        "import graphc.nn as nn",
        "from graphc import nn",
        "import torchvision",
        "x = torch.ones(1)",
    ]


def test_curves_are_compared_by_their_worst_number():
    assert worst([1.0, 200.0], [1.0, 100.0]) == 1.0
    assert worst([0.5], [0.25]) == 0.25
    assert worst([1.0], [1.0, 2.0]) == math.inf
    assert worst([float("nan")], [1.0]) == math.inf
