"""Releases of llvmlite that graphc admits, and the command that tests them."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import llvmlite
import pytest

from tools import llvmlite_versions
from tools.child import Ended
from tools.llvmlite_versions import ROOT, SUBSET, VERSIONS, ReleaseOutcome

PAGE = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")


def test_the_project_admits_the_releases_that_are_tested():
    assert llvmlite_versions.required() == llvmlite_versions.admitted()


def test_the_releases_have_no_gap():
    minors = [int(version.removeprefix("0.")) for version in VERSIONS]
    assert minors == list(range(minors[0], minors[-1] + 1))


def test_the_release_that_is_installed_is_one_of_them():
    assert llvmlite.__version__.rpartition(".")[0] in VERSIONS


def test_the_page_has_a_row_for_each_release():
    passing = re.findall(r"^\| (0\.\d+)\.\d+ \| [\d.]+ \| passes", PAGE, re.MULTILINE)
    assert tuple(passing) == VERSIONS
    assert llvmlite_versions.required() in PAGE


def test_the_tests_of_the_subset_exist():
    assert [name for name in SUBSET if not (ROOT / name).exists()] == []


def test_the_examples_of_the_documentation_are_right():
    assert doctest.testmod(llvmlite_versions).failed == 0


@pytest.mark.parametrize("failing", ["", "install", "pytest"])
def test_an_environment_is_made_probed_and_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str):
    commands = []

    def run(command: list[str]) -> Ended:
        commands.append(command)
        output = "0.49.3 20.1.8\n" if "-c" in command else "3 passed in 1.0s\n"
        return Ended(int(bool(failing) and failing in command), output, 1.0, False)

    monkeypatch.setattr(llvmlite_versions.venv, "create", lambda folder, **_: None)
    monkeypatch.setattr(llvmlite_versions.child, "run", run)
    outcome = llvmlite_versions.check("0.49", tmp_path, ["tests/runtime"])
    assert outcome.passed == (not failing)
    assert len(commands) == {"": 4, "install": 1, "pytest": 4}[failing]
    if not failing:
        assert (outcome.version, outcome.llvm, outcome.summary) == ("0.49.3", "20.1.8", "3 passed in 1.0s")
        assert "llvmlite==0.49.*" in commands[1] and commands[3][-1] == "tests/runtime"


def test_the_status_and_the_records_say_which_release_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def check(version: str, folder: Path) -> ReleaseOutcome:
        return ReleaseOutcome(f"{version}.0", "20.1.8", version != "0.48", "1 failed", 2.0)

    monkeypatch.setattr(llvmlite_versions, "check", check)
    assert llvmlite_versions.main(["--versions", "0.49"]) == 0
    assert capsys.readouterr().out == "| 0.49.0 | 20.1.8 | passes: 1 failed |\n"
    assert llvmlite_versions.main(["--versions", "0.48,0.49", "--json"]) == 1
    output = capsys.readouterr()
    assert [record["passed"] for record in json.loads(output.out)] == [False, True]
    assert "2 of 2: llvmlite 0.49: installing and testing" in output.err
