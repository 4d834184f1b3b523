"""The command that runs the conformance suite of the array API standard, on a small suite of the same form."""

from __future__ import annotations

from pathlib import Path

import pytest

import graphc.array_api as xp
from tools import array_api
from tools.array_api import SuiteOutcome, exclusions, judged, missing_types, table

CONFTEST = """
def pytest_addoption(parser):
    parser.addoption("--max-examples", type=int)
    parser.addoption("--disable-deadline", action="store_true")
"""
TESTS = """
import importlib, os, pytest

xp = importlib.import_module(os.environ["ARRAY_API_TESTS_MODULE"])

def test_sum(pytestconfig):
    assert float(xp.sum(xp.ones(3))) == pytestconfig.getoption("--max-examples") == 3

@pytest.mark.parametrize("name", ["fourier", "sum"])
def test_names(name):
    assert hasattr(xp, name), name

def test_types():
    assert os.environ["ARRAY_API_TESTS_SKIP_DTYPES"] == ""

@pytest.mark.skip(reason="no extension")
def test_linalg():
    pass
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    (folder / "array_api_tests").mkdir(parents=True)
    files = {"conftest.py": CONFTEST, "array_api_tests/__init__.py": "", "array_api_tests/test_names.py": TESTS}
    for name, text in (files | {"array_api_tests/dtype_helpers.py": ""}).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def excluded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "exclusions.txt"
    monkeypatch.setattr(array_api, "EXCLUSIONS", path)
    return path


def test_what_passes_is_printed(suite, excluded, capsys):
    excluded.write_text("# No such name.\ntest_names.py::test_names[f*\n", encoding="utf-8")
    before = sorted(p.name for p in suite.rglob("*"))
    assert array_api.main(["--suite", str(suite), "--max-examples", "3"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["passed", "failed", "excluded", "excluded,", "passed", "skipped"]
    assert [line.split() for line in shown[1:]] == [["test_names.py", *"30101"], ["all", *"30101"]]
    assert sorted(p.name for p in suite.rglob("*")) == before


def test_what_fails_is_named(suite, excluded, capsys):
    excluded.write_text("# It passes.\ntest_names.py::test_types\n", encoding="utf-8")
    assert array_api.main(["--suite", str(suite), "--max-examples", "3"]) == 1
    shown = capsys.readouterr().out
    assert "failed: test_names.py::test_names[fourier]\n  AssertionError: fourier" in shown
    assert "excluded, passed: test_names.py::test_types\n" in shown


def test_a_part_is_run(suite, excluded, capsys):
    excluded.write_text("", encoding="utf-8")
    assert array_api.main(["--suite", str(suite), "--max-examples", "3", "--only", "test_sum"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", *"10000"]


def test_a_suite_that_cannot_be_run_is_no_success(suite, excluded, tmp_path):
    excluded.write_text("", encoding="utf-8")
    with pytest.raises(SystemExit, match="not a checkout"):
        array_api.main(["--suite", str(tmp_path)])
    (suite / "conftest.py").write_text("raise ImportError\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="no report"):
        array_api.main(["--suite", str(suite)])


def test_the_reason_stands_above_a_group():
    text = "# Head.\n\n# One\n# two.\na[1]\n\nb\n# Three.\n\nc\n"
    assert exclusions(text) == {"a[1]": "One two.", "b": "One two.", "c": "Three."}


def test_every_exclusion_has_a_reason():
    reasons = exclusions(array_api.EXCLUSIONS.read_text(encoding="utf-8"))
    assert reasons and all(reason.endswith(".") for reason in reasons.values())


def test_a_star_stands_for_anything_and_nothing_else_does():
    outcomes = [
        SuiteOutcome("a[x(1) -> 2]", "failed", ""),
        SuiteOutcome("ab", "failed", ""),
        SuiteOutcome("b", "skipped", ""),
    ]
    kinds = [o.kind for o in judged(outcomes, ["a[x*2]", "b"])]
    assert kinds == ["excluded", "failed", "skipped"]
    assert judged([SuiteOutcome("a.b", "passed", "")], ["a*"])[0].kind == "excluded, passed"
    assert judged([SuiteOutcome("axb", "failed", "")], ["a.b"])[0].kind == "failed"


def test_tests_are_counted_by_file():
    lines = table([SuiteOutcome("a.py::x", "passed", ""), SuiteOutcome("b.py::y", "failed", "")]).splitlines()
    assert [line.split() for line in lines[1:]] == [["a.py", *"10000"], ["b.py", *"01000"], ["all", *"11000"]]


def test_the_types_that_are_missing_are_those_of_the_namespace():
    assert missing_types() == []
    assert all(hasattr(xp, name) for name in array_api.TYPES)
