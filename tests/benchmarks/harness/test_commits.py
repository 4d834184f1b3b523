"""Trees of commits, of a small repository of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.harness import commits

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    for name, text in (
        ("graphc/__init__.py", "OLD = 1"),
        ("benchmarks/workers/peer.py", "old"),
        ("tools/map.py", "old"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "graphc_launch.py").write_text("old")
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git[:3], "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "first"], check=True)
    (root / "graphc" / "__init__.py").write_text("NEW = 2")
    (root / "benchmarks" / "worker.py").write_text("new")
    return root


def test_a_tree_is_the_commits_package_under_the_measuring_code_of_now(repository: Path, tmp_path: Path):
    tree = commits.extract("HEAD", tmp_path / "then", repository)
    assert (tree / "graphc" / "__init__.py").read_text() == "OLD = 1"
    assert (tree / "benchmarks" / "worker.py").read_text() == "new"
    assert (tree / "tools" / "map.py").exists()


def test_a_copy_is_what_lies_there_now(repository: Path, tmp_path: Path):
    tree = commits.copy_present(tmp_path / "now", repository)
    assert (tree / "graphc" / "__init__.py").read_text() == "NEW = 2"
    assert (tree / "graphc_launch.py").read_text() == "old"


def test_an_unknown_commit_is_an_error(repository: Path, tmp_path: Path):
    with pytest.raises(ValueError, match="'nothing' is not a commit"):
        commits.extract("nothing", tmp_path / "then", repository)
    assert not (tmp_path / "then").exists()
