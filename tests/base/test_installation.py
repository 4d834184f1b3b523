"""The pip command for each kind of installation."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphc.base import installation
from graphc.base.installation import DISTRIBUTION, Installation, install_command, read_installation
from tests.architecture.scan import ROOT


def record(folder: Path, direct_url: dict[str, Any] | None) -> None:
    """Write the metadata that pip writes."""
    info = folder / "graphc_compiler-0.2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {DISTRIBUTION}\nVersion: 0.2.0\n")
    if direct_url is not None:
        (info / "direct_url.json").write_text(json.dumps(direct_url))


def clone(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    return folder


def test_an_installation_from_an_index_names_the_distribution(tmp_path: Path):
    record(tmp_path, None)
    found = read_installation(tmp_path, [str(tmp_path)])
    assert found.command("torch") == f"pip install '{DISTRIBUTION}[torch]'"
    assert str(found) == "from a package index"


def test_an_installation_from_a_folder_names_the_folder(tmp_path: Path):
    source = clone(tmp_path / "a clone")
    record(tmp_path / "packages", {"url": source.as_uri(), "dir_info": {}})
    found = read_installation(tmp_path / "packages", [])
    assert found.command("images", "onnx") == f"cd '{source}' && pip install '.[images,onnx]'"
    assert str(found) == f"from {source}"


def test_an_editable_installation_stays_editable(tmp_path: Path):
    source = clone(tmp_path / "clone")
    record(tmp_path / "packages", {"url": source.as_uri(), "dir_info": {"editable": True}})
    found = read_installation(source, [str(tmp_path / "packages")])
    assert found.command("torch") == f"cd {source} && pip install -e '.[torch]'"
    assert str(found) == f"linked to {source}"


@pytest.mark.parametrize("editable", [False, True])
def test_a_clone_on_the_path_is_not_what_is_installed_behind_it(tmp_path: Path, editable: bool):
    first, second = clone(tmp_path / "first"), clone(tmp_path / "second")
    record(tmp_path / "packages", {"url": second.as_uri(), "dir_info": {"editable": editable}})
    found = read_installation(first, [str(first), str(tmp_path / "packages")])
    assert found.command("torch") == f"cd {first} && pip install '.[torch]'"


def test_a_clone_without_metadata_is_a_folder(tmp_path: Path):
    source = clone(tmp_path / "clone")
    assert read_installation(source, [str(tmp_path)]) == Installation(source)


def test_a_package_without_metadata_and_project_is_one_of_an_index(tmp_path: Path):
    assert read_installation(tmp_path, []) == Installation()


def test_archives_and_repositories_are_named_by_their_address(tmp_path: Path):
    record(tmp_path / "a", {"url": "file:///wheels/graphc_compiler-0.2.0-py3-none-any.whl", "archive_info": {}})
    record(
        tmp_path / "b", {"url": "https://host/graphc.git", "vcs_info": {"vcs": "git", "commit_id": "0123", "x": None}}
    )
    archive, repository = (read_installation(tmp_path / name, []).command("onnx") for name in "ab")
    address = "file:///wheels/graphc_compiler-0.2.0-py3-none-any.whl"
    assert archive == f"pip install '{DISTRIBUTION}[onnx] @ {address}'"
    assert repository == f"pip install '{DISTRIBUTION}[onnx] @ git+https://host/graphc.git@0123'"


def test_a_dependency_group_is_that_of_the_folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(installation, "installation", lambda: Installation(Path("/my clone")))
    assert installation.group_command("bench") == "pip install --group '/my clone/pyproject.toml:bench'"
    assert installation.reinstall_command() == "cd '/my clone' && pip install --force-reinstall --no-deps ."
    monkeypatch.setattr(installation, "installation", Installation)
    assert installation.group_command("bench") == "pip install --group bench"


def test_this_clone_is_named_wherever_the_process_stands(tmp_path: Path):
    code = "from graphc.base.installation import install_command; print(install_command('torch'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, env={"PATH": ""}
    )
    assert done.stdout.strip() == install_command("torch")
    assert str(ROOT) in install_command("torch")


def test_the_examples_of_the_documentation_are_right():
    assert doctest.testmod(installation).failed == 0
