"""Scripts of PyTorch run with graphc in their import lines, and their curves are those that PyTorch computed."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from tests.scripts.compiled import LINES, with_compiled
from tests.scripts.run import FOLDER, TOLERANCE, curve, names, recorded, with_graphc, worst

PAGE = Path(__file__).parents[2] / "docs" / "scripts.md"

# What is compiled here; `python -m tests.scripts.run --compiled` compiles all of them.
SAMPLE = random.Random(18).sample(names(), 5)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", names())
def test_a_script_gives_the_curve_that_pytorch_gave(name):
    assert worst(curve(name, "graphc"), recorded()[name]) <= TOLERANCE


@pytest.mark.parametrize("name", SAMPLE)
def test_with_compiled_models_the_curve_is_the_same(name):
    assert worst(curve(name, "graphc", compiled=True), recorded()[name]) <= TOLERANCE


@pytest.mark.parametrize("name", names())
def test_every_script_has_a_line_that_compiles(name):
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    added = with_compiled(name, source).count("compile(") - source.count("compile(")
    assert added == LINES[name][1].count("compile(") > 0
    compile(with_compiled(name, source), name, "exec")


def test_the_page_lists_every_script():
    text = PAGE.read_text(encoding="utf-8")
    for name in names():
        lines = (FOLDER / f"{name}.py").read_text(encoding="utf-8").count("\n")
        assert f"| `{name}` | {lines} |" in text


def test_every_script_has_a_recorded_curve_that_says_something():
    curves = recorded()
    assert sorted(curves) == names()
    assert len(names()) == 25
    for numbers in curves.values():
        assert len(numbers) > 10
        assert len(set(numbers)) > 5
        assert all(math.isfinite(x) for x in numbers)


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
