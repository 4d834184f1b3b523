"""The examples in docstrings run and print what they show; each public entry point has one."""

from __future__ import annotations

import ast
import doctest
import inspect
import io
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import graphc
from graphc.utils.data import DataLoader

ROOT = Path(__file__).resolve().parents[2]
_NAMES = """
    compile compile_step trace export load check debug compare from_torch from_onnx from_pt2 build_library Dim Entry
    func.grad func.vjp scan while_loop cond checkpoint tensor Tensor.backward nn.Module nn.Parameter autograd.Function
    define_op autocast save distributed.init utils.data.DataLoader
"""
ENTRY_POINTS = _NAMES.split()
"""The names by which a user begins."""
LEAST = 110
"""Docstrings with an example."""
MOST_SUMMARY_LINES = 3
SECTIONS = ("Args:", "Returns:", "Raises:", "Example:")
OPTIONAL = {"import torch": "torch", "import jax": "jax", "from_onnx(": "onnx"}
"""Packages that an example needs where it holds a text."""
_COMPARE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Docstring(NamedTuple):
    """A docstring with an example."""

    name: str
    """File and qualified name, as a test id."""
    file: Path
    line: int
    text: str


def documented(body: list[ast.stmt], name: str) -> Iterator[tuple[str, ast.Constant]]:
    """Yield the strings that stand as statements in a module, its classes and its functions, by qualified names."""
    for statement in body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            yield from documented(statement.body, f"{name}.{statement.name}".lstrip("."))
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield name, statement.value


@cache
def docstrings_with_examples() -> list[Docstring]:
    """Return the docstrings of graphc that contain ``>>>``, without importing their modules."""
    docstrings = []
    for file in sorted((ROOT / "graphc").rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if ">>>" not in source:
            continue
        for name, constant in documented(ast.parse(source).body, ""):
            if isinstance(constant.value, str) and ">>>" in constant.value:
                path = file.relative_to(ROOT / "graphc").as_posix()
                docstrings.append(Docstring(f"{path}::{name}", file, constant.lineno, constant.value))
    return docstrings


@pytest.mark.parametrize("docstring", [pytest.param(d, id=d.name) for d in docstrings_with_examples()])
@pytest.mark.usefixtures("own_ops")
def test_prints_what_the_docstring_shows(docstring, tmp_path, monkeypatch):
    for text, package in OPTIONAL.items():
        if text in docstring.text and find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    graphc.manual_seed(0)
    names = {"__name__": "__main__"}
    file = str(docstring.file)
    test = doctest.DocTestParser().get_doctest(docstring.text, names, docstring.name, file, docstring.line - 1)
    report = io.StringIO()
    results = doctest.DocTestRunner(optionflags=_COMPARE).run(test, out=report.write)
    assert results.attempted
    assert not results.failed, report.getvalue()


def test_many_docstrings_have_an_example():
    assert len(docstrings_with_examples()) >= LEAST


def _section(docstring: str, title: str) -> str:
    """Return the lines below a title."""
    return re.split(r"^\w+:$", docstring.partition(f"\n{title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_entry_point_has_a_summary_and_sections_in_order(name):
    docstring = inspect.getdoc(attrgetter(name)(graphc)) or ""
    summary = docstring.partition("\n\n")[0]
    assert len(summary.splitlines()) <= MOST_SUMMARY_LINES
    titles = [line for line in docstring.splitlines() if line in SECTIONS]
    assert titles == list(SECTIONS)
    assert ">>>" in _section(docstring, "Example:")


def _parameters(entry_point: Any) -> list[str]:
    function = entry_point.__init__ if inspect.isclass(entry_point) else entry_point
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize("name", sorted({*ENTRY_POINTS} - {"autograd.Function"}))
def test_entry_point_describes_each_argument(name):
    entry_point = attrgetter(name)(graphc)
    section = _section(inspect.getdoc(entry_point) or "", "Args:")
    described = re.findall(r"^    (\w+(?:, \w+)*): ", section, re.MULTILINE)
    names = [each for listed in described for each in listed.split(", ")]
    assert sorted(names) == sorted(_parameters(entry_point))


def test_entry_points_are_those_of_the_package():
    assert graphc.utils.data.DataLoader is DataLoader
    assert len(ENTRY_POINTS) == len(set(ENTRY_POINTS)) == 30
