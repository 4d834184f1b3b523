"""The warning about another distribution of the name graphc."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import graphc
from graphc.base.installation import reinstall_command
from graphc.base.name_clash import other_distributions, warn_of_other_distributions
from tests.architecture.scan import ROOT

SUMMARY = "Summary: query graph databases via an interactive console"
FORMER = "Summary: Compiles PyTorch-style modules to native code"


def packages(tmp_path: Path, name: str, summary: str = SUMMARY) -> Path:
    """Return a folder of packages with the metadata of one distribution."""
    folder = tmp_path / "site-packages"
    (folder / name).mkdir(parents=True)
    (folder / name / "METADATA").write_text(f"Metadata-Version: 2.4\nName: graphc\n{summary}\n")
    return folder


@pytest.mark.parametrize("name", ["graphc-0.1.3.dist-info", "graphc-0.1.3-py3.12.egg-info"])
def test_another_project_is_named_with_what_helps(tmp_path: Path, name: str):
    folder = packages(tmp_path, name)
    with pytest.warns(UserWarning) as caught:
        warn_of_other_distributions([str(folder)])
    message = str(caught[0].message)
    assert message.startswith(f"the distribution graphc 0.1.3 in {folder} is another project, not this package: ")
    assert message.endswith(f"\n  try    pip uninstall graphc, then restore what it removes: {reinstall_command()}")


def test_this_package_under_its_former_name_is_told_apart(tmp_path: Path):
    folder = packages(tmp_path, "graphc-0.1.0.dist-info", FORMER)
    with pytest.warns(UserWarning, match=f"^graphc 0.1.0 in {re.escape(str(folder))} is this package under its former"):
        warn_of_other_distributions([str(folder)])


def test_metadata_that_cannot_be_read_are_those_of_another_project(tmp_path: Path):
    folder = tmp_path / "dist-packages"
    (folder / "graphc-9.dist-info").mkdir(parents=True)
    with pytest.warns(UserWarning, match="another project"):
        warn_of_other_distributions([str(folder)])


@pytest.mark.parametrize("name", ["graphc_compiler-0.2.0.dist-info", "graphcalc-2.0.0.dist-info", "graphc-notes"])
def test_other_names_are_none(tmp_path: Path, name: str):
    assert other_distributions([str(packages(tmp_path, name)), "/nowhere/site-packages", ""]) == []


def test_folders_that_hold_no_packages_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    listed = []
    monkeypatch.setattr(os, "listdir", lambda folder: listed.append(folder) or [])
    other_distributions([str(tmp_path), str(tmp_path / "site-packages"), str(tmp_path / "site-packages")])
    assert listed == [str(Path(graphc.__file__).parents[1]), str(tmp_path / "site-packages")]


def test_the_import_of_graphc_warns_at_the_line_of_the_import(tmp_path: Path):
    folder = packages(tmp_path, "graphc-0.1.3.dist-info")
    program = tmp_path / "program.py"
    program.write_text(f"import sys\nsys.path.append({str(folder)!r})\nimport graphc\nimport graphc.nn\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stderr.startswith(f"{program}:3: UserWarning: the distribution graphc 0.1.3 in {folder} ")
    assert done.stderr.count("UserWarning") == 1
